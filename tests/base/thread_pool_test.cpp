#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>

#include "tests/support/process.h"

namespace tiny {
namespace {

struct Job {
  std::vector<std::atomic<int>> runs;
  std::atomic<int> worker_max{0};
  explicit Job(size_t n) : runs(n) {}
  static void piece(void* context, int64_t piece, int worker) noexcept {
    auto& job = *static_cast<Job*>(context);
    job.runs[static_cast<size_t>(piece)].fetch_add(1);
    int seen = job.worker_max.load();
    while (seen < worker && !job.worker_max.compare_exchange_weak(seen, worker)) {
    }
  }
  bool each_once() const {
    for (const auto& r : runs)
      if (r.load() != 1) return false;
    return true;
  }
};

void run_all(ThreadPool& pool, Job& job, bool wake = true) {
  const auto n = static_cast<int64_t>(job.runs.size());
  if (pool.try_acquire()) {
    pool.run(n, Job::piece, &job, wake);
  } else {
    for (int64_t i = 0; i < n; ++i) Job::piece(&job, i, 0);
  }
}

TEST(ThreadPool, EveryPieceRunsOnceWhateverTheCount) {
  for (int workers : {1, 2, 3, 8}) {
    ThreadPool pool(workers);
    for (size_t n : {0u, 1u, 2u, 3u, 7u, 64u, 1000u}) {
      Job job(n);
      run_all(pool, job, n % 2 == 0);
      EXPECT_TRUE(job.each_once()) << workers << " " << n;
      EXPECT_LT(job.worker_max.load(), workers);
    }
  }
}

TEST(ThreadPool, ManySmallJobsInARowAllFinish) {
  ThreadPool pool(4);
  for (int i = 0; i < 20000; ++i) {
    Job job(5);
    run_all(pool, job);
    ASSERT_TRUE(job.each_once()) << i;
  }
}

// Runs two pieces, each of which waits for the other: only two threads can finish them.  The pool
// must have been acquired.
void meet(ThreadPool& pool) {
  std::atomic<int> here{0};
  pool.run(
      2,
      [](void* context, int64_t, int) noexcept {
        auto& count = *static_cast<std::atomic<int>*>(context);
        count.fetch_add(1);
        while (count.load() < 2) std::this_thread::yield();
      },
      &here, true);
  EXPECT_EQ(here.load(), 2);
}

TEST(ThreadPool, ThreadsThatSleepAreWoken) {
  ThreadPool pool(2);
  Job first(4);
  run_all(pool, first);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(pool.try_acquire());
  meet(pool);
}

TEST(ThreadPool, WhoFindsItTakenGetsNoAndCanWorkAlone) {
  ThreadPool pool(2);
  ASSERT_TRUE(pool.try_acquire());
  EXPECT_FALSE(pool.try_acquire());
  pool.release();
  EXPECT_TRUE(pool.try_acquire());
  pool.release();
}

TEST(ThreadPool, SeveralCallersAtOnceAllGetTheirWorkDone) {
  ThreadPool pool(3);
  std::atomic<int> bad{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 3000; ++i) {
        Job job(7);
        run_all(pool, job);
        if (!job.each_once()) bad.fetch_add(1);
      }
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(bad.load(), 0);
}

TEST(ThreadPool, AForkedChildHasThreadsOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends children that start threads";
#endif
  ThreadPool pool(2);
  Job before(8);
  run_all(pool, before);
  ASSERT_TRUE(pool.try_acquire());  // the child must not find it taken for ever
  const testing::Ended child = testing::run_apart(20, [&] {
    if (!pool.try_acquire()) return "the pool is taken";
    meet(pool);
    return HasFailure() ? "the pieces did not meet" : "";
  });
  EXPECT_EQ(child.text, "");
  EXPECT_EQ(child.status, 0);
  pool.release();
  Job after(8);
  run_all(pool, after);
  EXPECT_TRUE(after.each_once());
}

TEST(ThreadPool, AChildThatNeverUsesItCanDestroyIt) {
  auto* pool = new ThreadPool(2);
  Job job(4);
  run_all(*pool, job);
  const testing::Ended child = testing::run_apart(20, [&] {
    delete pool;
    return "";
  });
  EXPECT_EQ(child.status, 0);
  delete pool;
}

TEST(ThreadPool, TheProcessMayExitWhileAJobRuns) {
  const testing::Ended child = testing::run_apart(20, []() -> std::string {
    auto* pool = new ThreadPool(2);
    std::thread([pool] {
      if (!pool->try_acquire()) _exit(2);
      pool->run(
          1000000, [](void*, int64_t, int) noexcept { std::this_thread::yield(); }, nullptr, true);
    }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    exit(0);
  });
  EXPECT_EQ(child.status, 0);
}

using Task = void (*)(void* data, size_t index);

// Threads that live on between jobs and come late to the tasks of each, as a pool that breaks its
// word has them.
struct Stragglers {
  std::vector<std::thread> threads;
  std::atomic<Task> task{nullptr};
  std::atomic<void*> data{nullptr};
  std::atomic<bool> stop{false};

  explicit Stragglers(size_t count) {
    for (size_t index = 0; index < count; ++index)
      threads.emplace_back([this, index] {
        while (!stop.load()) {
          if (const Task t = task.load()) t(data.load(), index);
          std::this_thread::yield();
        }
      });
  }
  ~Stragglers() {
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }
  static void run(void* user, Task task, void* data, size_t) {
    auto& self = *static_cast<Stragglers*>(user);
    self.data = data;
    self.task = task;
  }
};

void run_one_by_one(void* user, Task task, void* data, size_t count) {
  *static_cast<size_t*>(user) = count;
  for (size_t i = 0; i < count; ++i) task(data, i);
}

TEST(ThreadPool, TheCallersThreadsAreAskedForAsManyTasksAsThereAreWorkersOrPieces) {
  size_t asked = 0;
  ThreadPool pool(3, {run_one_by_one, &asked});
  for (size_t n : {1u, 2u, 3u, 50u}) {
    Job job(n);
    ASSERT_TRUE(pool.try_acquire());
    EXPECT_FALSE(pool.try_acquire());
    pool.run(static_cast<int64_t>(n), Job::piece, &job, true);
    EXPECT_TRUE(job.each_once()) << n;
    EXPECT_EQ(asked, std::min<size_t>(n, 3));
  }
}

TEST(ThreadPool, TasksThatComeLateOrNeverChangeNothing) {
  std::unique_ptr<Stragglers> stragglers = std::make_unique<Stragglers>(3);
  ThreadPool pool(3, {Stragglers::run, stragglers.get()});
  for (int i = 0; i < 3000; ++i) {
    Job job(static_cast<size_t>(i % 9));
    run_all(pool, job);
    ASSERT_TRUE(job.each_once()) << i;
    ASSERT_LT(job.worker_max.load(), 3);
  }
  stragglers.reset();  // before the pool
}

}  // namespace
}  // namespace tiny

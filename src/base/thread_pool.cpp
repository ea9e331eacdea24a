#include "base/thread_pool.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/wait.h"

namespace tiny {

ThreadPool::ThreadPool(int workers, const OwnThreads& own)
    : workers_(std::max(1, workers)),
      own_(own),
      at_work_(own.run ? static_cast<size_t>(workers_) : 0) {
  threads_.reserve(static_cast<size_t>(workers_ - 1));
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, Status::OutOfMemory, "no memory for the thread pool");
  wiped_on_fork_ = madvise(memory, page, MADV_WIPEONFORK) == 0;
  state_ = new (memory) std::atomic<uint64_t>(kFresh);
}

ThreadPool::~ThreadPool() {
  // In a forked child the threads are the parent's and not here.
  if (state_->load() == (process() << 2 | kRunning)) {
    stop_.store(true);
    bell_.fetch_add(1);
    futex_wake(bell_, INT_MAX);
    for (const Thread& t : threads_) pthread_join(t.handle, nullptr);
  }
  munmap(state_, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

// Where no page can be had that a child finds zeroed, a child is told by its number.
uint64_t ThreadPool::process() const {
  return wiped_on_fork_ ? 0 : static_cast<uint64_t>(getpid());
}

bool ThreadPool::try_acquire() {
  if (workers_ == 1) return false;
  if (is_callers()) return !taken_.exchange(true, std::memory_order_acquire);
  const uint64_t running = process() << 2 | kRunning, starting = process() << 2 | kStarting;
  uint64_t state = state_->load(std::memory_order_acquire);
  if (state != running) {
    // The first job of this process: what a parent's threads left behind is void.
    if (state == starting || !state_->compare_exchange_strong(state, starting)) return false;
    start();
    state_->store(running, std::memory_order_release);
    return true;
  }
  return !taken_.exchange(true, std::memory_order_acquire);
}

void ThreadPool::release() {
  taken_.store(false, std::memory_order_release);
}

void ThreadPool::start() {
  taken_.store(true);
  ticket_.store(0);
  count_.store(0);
  done_.store(0);
  waiting_.store(0);
  asleep_.store(0);
  threads_.clear();
  // The host's signals are the host's threads' to handle.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int worker = 1; worker < workers_; ++worker) {
    Thread& t = threads_.emplace_back(Thread{this, worker, {}});
    if (pthread_create(&t.handle, nullptr, thread_main, &t) == 0) continue;
    threads_.pop_back();  // with fewer threads it is slower, not wrong
    break;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadPool::publish(int64_t count, Piece piece, void* context, bool wake) {
  const uint64_t number = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  // Closed before the fields change: who has read some of the old and some of the new cannot claim.
  ticket_.store(number << 32);
  count_.store(count, std::memory_order_relaxed);
  piece_.store(piece, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  ticket_.store((number + 1) << 32);
  bell_.fetch_add(1);
  if (wake && asleep_.load() > 0) futex_wake(bell_, INT_MAX);
}

int64_t ThreadPool::claim_all(int worker) {
  int64_t did = 0;
  uint64_t ticket = ticket_.load();
  const uint64_t number = ticket >> 32;
  while (ticket >> 32 == number && (number & 1) == 0) {
    const int64_t count = count_.load(std::memory_order_relaxed);
    const Piece piece = piece_.load(std::memory_order_relaxed);
    void* context = context_.load(std::memory_order_relaxed);
    const auto next = static_cast<int64_t>(ticket & UINT32_MAX);
    if (next >= count) break;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1)) continue;
    piece(context, next, worker);
    ++did;
    // The job is open until the last claimed piece is counted here.
    if (done_.fetch_add(1) + 1 == static_cast<uint32_t>(count) && waiting_.load() != 0)
      futex_wake(done_, 1);
    ticket = ticket_.load();
  }
  return did;
}

int64_t ThreadPool::wait_for_claimed(int64_t count, const StopSignal* stop) {
  const auto all = static_cast<uint32_t>(count);
  const auto finished = [&] { return done_.load() == all; };
  if (finished()) return 0;
  const auto start = std::chrono::steady_clock::now();
  if (!spin_until(finished)) {
    waiting_.store(1);
    for (uint32_t done = done_.load(); done != all; done = done_.load()) {
      futex_wait(done_, done, stop ? kAskNanoseconds : 0);
      if (stop) stop->is_over();
    }
    waiting_.store(0);
  }
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

ThreadPool::Share ThreadPool::run(int64_t count, Piece piece, void* context, bool wake,
                                  const StopSignal* stop) {
  if (count == 0) {
    release();
    return {};
  }
  invariant(count > 0 && count < UINT32_MAX, "a job has less than 2^32 pieces");
  publish(count, piece, context, wake);
  Share share;
  share.did = count / std::min<int64_t>(count, workers_);
  if (is_callers())
    run_on_callers(count);
  else
    share.did = claim_all(0);
  share.waited = wait_for_claimed(count, stop);
  release();
  return share;
}

// Comes late or twice, from a caller's pool that breaks its word, and finds nothing to claim, or
// works on the job of the moment.
void ThreadPool::own_task(void* pool, size_t index) {
  auto& self = *static_cast<ThreadPool*>(pool);
  if (index >= self.at_work_.size() || self.at_work_[index].exchange(true)) return;
  self.claim_all(static_cast<int>(index));
  self.at_work_[index].store(false);
}

void ThreadPool::run_on_callers(int64_t count) {
  own_.run(own_.user, own_task, this, static_cast<size_t>(std::min<int64_t>(count, workers_)));
  own_task(this, 0);
}

// False when the pool ends.
bool ThreadPool::wait_for_job(uint32_t seen) {
  const auto called = [&] { return bell_.load() != seen || stop_.load(); };
  if (!spin_until(called)) {
    asleep_.fetch_add(1);
    while (!called()) futex_wait(bell_, seen);
    asleep_.fetch_sub(1);
  }
  return !stop_.load();
}

void* ThreadPool::thread_main(void* argument) {
  const auto* thread = static_cast<const Thread*>(argument);
  ThreadPool& pool = *thread->pool;
  pthread_setname_np(pthread_self(), "tiny-worker");
  for (;;) {
    const uint32_t seen = pool.bell_.load();
    pool.claim_all(thread->worker);
    if (!pool.wait_for_job(seen)) return nullptr;
  }
}

namespace {

struct Pieces {
  const std::function<void(int64_t, int)>& piece;
  const StopSignal& stop;
  std::atomic<bool> failed{false};
  std::exception_ptr failure{};

  void run(int64_t i, int worker) noexcept {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      stop.check();
      piece(i, worker);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  }
};

}  // namespace

void for_each_piece(ThreadPool* pool, int64_t count, const StopSignal& stop,
                    const std::function<void(int64_t piece, int worker)>& piece) {
  Pieces pieces{piece, stop};
  const auto run = [](void* all, int64_t i, int worker) noexcept {
    static_cast<Pieces*>(all)->run(i, worker);
  };
  if (count > 1 && pool && pool->try_acquire())
    pool->run(count, run, &pieces, true, &stop);
  else
    for (int64_t i = 0; i < count; ++i) run(&pieces, i, 0);
  if (pieces.failure) std::rethrow_exception(pieces.failure);
}

}  // namespace tiny

// The caller's own threads: kernels that are split run there, and whatever they do values are
// right.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tiny.h"

namespace {

using Task = void (*)(void* data, size_t index);

// What a pool of the caller's was asked for.
struct Calls {
  std::atomic<int64_t> jobs{0};
  std::atomic<int64_t> tasks{0};
  std::atomic<size_t> most{0};
  bool late = false;  // of the last call's tasks one is left to be called after the next
  Task task = nullptr;
  void* data = nullptr;

  void count(size_t tasks_of_job) {
    ++jobs;
    tasks += static_cast<int64_t>(tasks_of_job);
    most = std::max(most.load(), tasks_of_job);
  }
};

struct Part {
  Task task;
  void* data;
  size_t index;
};
void* part_main(void* part) {
  const auto& p = *static_cast<Part*>(part);
  p.task(p.data, p.index);
  return nullptr;
}

// A thread for every task.
void run_on_threads(void* user, Task task, void* data, size_t count) {
  static_cast<Calls*>(user)->count(count);
  std::vector<Part> parts;
  for (size_t i = 0; i < count; ++i) parts.push_back({task, data, i});
  std::vector<pthread_t> threads(count);
  for (size_t i = 0; i < count; ++i)
    ASSERT_EQ(pthread_create(&threads[i], nullptr, part_main, &parts[i]), 0);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

void run_serially(void* user, Task task, void* data, size_t count) {
  static_cast<Calls*>(user)->count(count);
  for (size_t i = count; i-- > 0;) task(data, i);
}

void run_nothing(void* user, Task, void*, size_t count) {
  static_cast<Calls*>(user)->count(count);
}

// Calls tasks twice at once, with numbers that it was not given, and one of the last job.
void run_wildly(void* user, Task task, void* data, size_t count) {
  auto& calls = *static_cast<Calls*>(user);
  calls.count(count);
  std::thread twin([&] {
    for (size_t i = 0; i < count; ++i) task(data, i);
  });
  for (size_t i = 0; i < count + 5; ++i) task(data, i);
  twin.join();
  if (calls.task) calls.task(calls.data, 0);
  calls.task = task;
  calls.data = data;
}

using Run = void (*)(void*, Task, void*, size_t);

class OwnThreads : public ::testing::TestWithParam<Run> {
 protected:
  void SetUp() override {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", "cpu"), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "threads", 3), TINY_OK);
    ASSERT_EQ(tiny_options_set_thread_pool(options, GetParam(), &calls_), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
  }
  void TearDown() override { tiny_context_release(context_); }

  Calls calls_;
  tiny_context* context_ = nullptr;
};

TEST_P(OwnThreads, ComputeWhatIsSplit) {
  constexpr int64_t kSide = 192;
  tiny_tensor *row = nullptr, *a = nullptr, *c = nullptr;
  const int64_t dims[] = {kSide, kSide};
  ASSERT_EQ(tiny_arange(context_, TINY_FLOAT32, kSide * kSide, &row), TINY_OK);
  ASSERT_EQ(tiny_reshape(row, dims, 2, &a), TINY_OK);
  tiny_tensor *x = nullptr, *product = nullptr;
  ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, dims, 2, &x), TINY_OK);
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, dims, 2, 1, &c), TINY_OK);
  ASSERT_EQ(tiny_matmul(x, c, &product), TINY_OK);
  tiny_program* program = nullptr;
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_program_compile(&x, 1, &product, 1, &program), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  ASSERT_EQ(tiny_run_set_input(run, 0, a), TINY_OK);
  std::vector<float> got(kSide * kSide);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_read_output(run, 0, got.data(), got.size() * sizeof(float)), TINY_OK);
    for (int64_t r = 0; r < kSide; ++r) {
      const int64_t sum = r * kSide * kSide + kSide * (kSide - 1) / 2;
      ASSERT_EQ(got[static_cast<size_t>(r * kSide + r)], static_cast<float>(sum));
    }
  }
  EXPECT_GT(calls_.jobs, 0);
  EXPECT_GE(calls_.tasks, 2 * calls_.jobs);
  EXPECT_LE(calls_.most, 3u);
  tiny_run_release(run);
  tiny_program_release(program);
  for (tiny_tensor* t : {row, a, c, x, product}) tiny_tensor_release(t);
}

INSTANTIATE_TEST_SUITE_P(Pools, OwnThreads,
                         ::testing::Values(run_on_threads, run_serially, run_nothing, run_wildly));

TEST(ThreadPool, OfNoOptionsIsAnErrorAndNoneIsTheLibrarysOwn) {
  Calls calls;
  EXPECT_EQ(tiny_options_set_thread_pool(nullptr, run_serially, &calls),
            TINY_ERROR_INVALID_ARGUMENT);
  tiny_options* options = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  EXPECT_EQ(tiny_options_set_thread_pool(options, run_serially, &calls), TINY_OK);
  EXPECT_EQ(tiny_options_set_thread_pool(options, nullptr, nullptr), TINY_OK);
  EXPECT_EQ(tiny_options_set_int(options, "threads", 2), TINY_OK);
  tiny_context* context = nullptr;
  ASSERT_EQ(tiny_context_create(options, &context), TINY_OK);
  tiny_options_release(options);
  tiny_tensor *a = nullptr, *b = nullptr;
  ASSERT_EQ(tiny_arange(context, TINY_FLOAT32, 1 << 20, &a), TINY_OK);
  ASSERT_EQ(tiny_binary(TINY_ADD, a, a, &b), TINY_OK);
  ASSERT_EQ(tiny_realize(&b, 1), TINY_OK);
  EXPECT_EQ(calls.jobs, 0);
  tiny_tensor_release(a);
  tiny_tensor_release(b);
  tiny_context_release(context);
}

void count_call(void* user) {
  ++*static_cast<int*>(user);
}

// The caller's memory, of which `live` pieces are out.
struct Memory {
  int64_t live = 0;
  int ended_with = -1;  // `live` when the deleter was called
};
void* take(void* user, size_t bytes, size_t alignment) {
  ++static_cast<Memory*>(user)->live;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void give(void* user, void* memory, size_t, size_t) {
  --static_cast<Memory*>(user)->live;
  std::free(memory);
}
void end(void* user) {
  auto& memory = *static_cast<Memory*>(user);
  memory.ended_with = static_cast<int>(memory.live);
}

TEST(Deleters, AreCalledOnceWhenNothingCallsBackAnyMore) {
  tiny_options* options = nullptr;
  int first = 0, second = 0;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  EXPECT_EQ(tiny_options_add_deleter(options, nullptr, nullptr), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_options_add_deleter(nullptr, count_call, &first), TINY_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(tiny_options_add_deleter(options, count_call, &first), TINY_OK);
  tiny_context* context = nullptr;
  ASSERT_EQ(tiny_context_create(options, &context), TINY_OK);
  ASSERT_EQ(tiny_options_add_deleter(options, count_call, &second), TINY_OK);
  tiny_options_release(options);
  EXPECT_EQ(first + second, 0);
  tiny_tensor* a = nullptr;
  ASSERT_EQ(tiny_arange(context, TINY_FLOAT32, 3, &a), TINY_OK);
  tiny_context_release(context);
  EXPECT_EQ(first + second, 0);
  tiny_tensor_release(a);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(Deleters, AwaitTheMemoryThatARunHolds) {
  Memory memory;
  tiny_options* options = nullptr;
  tiny_context* context = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  ASSERT_EQ(tiny_options_set_allocator(options, take, give, &memory), TINY_OK);
  ASSERT_EQ(tiny_options_add_deleter(options, end, &memory), TINY_OK);
  ASSERT_EQ(tiny_context_create(options, &context), TINY_OK);
  tiny_options_release(options);
  const int64_t dims[] = {4};
  const float data[4] = {};
  tiny_tensor* a = nullptr;
  ASSERT_EQ(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 1, data, sizeof data, &a), TINY_OK);
  struct DLManagedTensorVersioned* lent = nullptr;
  ASSERT_EQ(tiny_tensor_to_dlpack(a, &lent), TINY_OK);
  tiny_tensor_release(a);
  tiny_context_release(context);
  EXPECT_EQ(memory.ended_with, -1);
  EXPECT_EQ(memory.live, 1);
  tiny_dlpack_release(lent);
  EXPECT_EQ(memory.ended_with, 0);
}

}  // namespace

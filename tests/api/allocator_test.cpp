// The caller's allocator: all memory of tensors and runs comes from it and goes back.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tiny.h"

namespace {

struct Arena {
  std::mutex mutex;
  std::map<void*, std::pair<size_t, size_t>> live;  // bytes and alignment
  int64_t given = 0;
  size_t bytes = 0;
  int64_t left = -1;  // requests that are served yet; < 0: all
  size_t shift = 0;
};

void* allocate(void* user, size_t bytes, size_t alignment) {
  auto& arena = *static_cast<Arena*>(user);
  const std::lock_guard lock(arena.mutex);
  if (arena.left == 0) return nullptr;
  --arena.left;
  const size_t whole = (bytes + alignment - 1) / alignment * alignment + alignment;
  auto* memory = static_cast<char*>(aligned_alloc(alignment, whole)) + arena.shift;
  arena.live[memory] = {bytes, alignment};
  ++arena.given;
  arena.bytes += bytes;
  return memory;
}

void release(void* user, void* memory, size_t bytes, size_t alignment) {
  auto& arena = *static_cast<Arena*>(user);
  const std::lock_guard lock(arena.mutex);
  EXPECT_EQ(arena.live.count(memory), 1u);
  EXPECT_EQ(arena.live[memory].first, bytes);
  EXPECT_EQ(arena.live[memory].second, alignment);
  arena.live.erase(memory);
  free(static_cast<char*>(memory) - arena.shift);
}

class OwnAllocator : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", GetParam()), TINY_OK);
    ASSERT_EQ(tiny_options_set_allocator(options, allocate, release, &arena_), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK);
    tiny_options_release(options);
  }
  tiny_status floats(int64_t count, tiny_tensor** out) {
    const std::vector<float> values(static_cast<size_t>(count), 2.0f);
    return tiny_tensor_from_data(context_, TINY_FLOAT32, &count, 1, values.data(),
                                 values.size() * sizeof(float), out);
  }

  Arena arena_;
  tiny_context* context_ = nullptr;
};

TEST_P(OwnAllocator, GivesTheMemoryOfTensorsAndRunsAndGetsItBack) {
  constexpr int64_t kCount = 1 << 20;  // more than a huge page
  tiny_tensor* a = nullptr;
  tiny_tensor* sum = nullptr;
  ASSERT_EQ(floats(kCount, &a), TINY_OK) << tiny_last_error();
  EXPECT_EQ(arena_.live.size(), 1u);
  EXPECT_GE(arena_.bytes, kCount * sizeof(float));
  const void* data = nullptr;
  ASSERT_EQ(tiny_tensor_data(a, &data), TINY_OK);
  EXPECT_EQ(arena_.live.begin()->first, data);
  tiny_tensor* x = nullptr;
  ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, &kCount, 1, &x), TINY_OK);
  ASSERT_EQ(tiny_binary(TINY_MUL, a, x, &sum), TINY_OK);
  tiny_tensor* total = nullptr;
  ASSERT_EQ(tiny_reduce(TINY_SUM, sum, nullptr, 0, 0, &total), TINY_OK);
  tiny_tensor* spread = nullptr;
  ASSERT_EQ(tiny_binary(TINY_DIV, sum, total, &spread), TINY_OK);
  tiny_program* program = nullptr;
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_program_compile(&x, 1, &spread, 1, &program), TINY_OK) << tiny_last_error();
  const int64_t before = arena_.given;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  ASSERT_EQ(tiny_run_set_input(run, 0, a), TINY_OK);
  const int64_t created = arena_.given;
  EXPECT_GE(created, before + 2);  // an output, and what is between the kernels
  ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
  EXPECT_EQ(arena_.given, created);
  for (tiny_tensor* t : {a, sum, x, total, spread}) tiny_tensor_release(t);
  tiny_program_release(program);
  tiny_context_release(context_);
  EXPECT_GE(arena_.live.size(), 2u);  // the run's
  tiny_run_release(run);
  EXPECT_TRUE(arena_.live.empty());
}

TEST_P(OwnAllocator, ThatHasNoMemoryOrCannotAlignIsAnError) {
  tiny_tensor* a = nullptr;
  arena_.left = 0;
  EXPECT_EQ(floats(4, &a), TINY_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(std::string(tiny_last_error()).find("the allocator that was set has no memory"),
            std::string::npos)
      << tiny_last_error();
  arena_.left = -1;
  arena_.shift = 64;
  EXPECT_EQ(floats(4, &a), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(tiny_last_error()).find("aligned to 256"), std::string::npos)
      << tiny_last_error();
  EXPECT_TRUE(arena_.live.empty());
  arena_.shift = 0;
  ASSERT_EQ(floats(4, &a), TINY_OK);
  tiny_tensor_release(a);
  EXPECT_TRUE(arena_.live.empty());
  tiny_context_release(context_);
}

INSTANTIATE_TEST_SUITE_P(Devices, OwnAllocator, ::testing::Values("cpu", "interp"));

TEST(Allocator, HasBothFunctionsOrNeither) {
  tiny_options* options = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  EXPECT_EQ(tiny_options_set_allocator(options, allocate, nullptr, nullptr),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_options_set_allocator(options, nullptr, nullptr, nullptr), TINY_OK);
  EXPECT_EQ(tiny_options_set_allocator(nullptr, allocate, release, nullptr),
            TINY_ERROR_INVALID_ARGUMENT);
  tiny_options_release(options);
}

}  // namespace

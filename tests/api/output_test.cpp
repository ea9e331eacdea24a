// Outputs of runs in tensors that the caller chose: what is written where, what is refused, and
// what the tensor and its views are afterwards.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/api_values.h"
#include "tiny.h"

namespace {

constexpr int64_t kCount = 1000;  // more than one vector, and a rest
using Floats = std::vector<float>;
using tiny::testing::error_has;

// A program of y = x * captured + 1 and z = y again, and w = sum(x).
class Output : public ::testing::TestWithParam<const char*>, protected tiny::testing::ApiValues {
 protected:
  void SetUp() override {
    open(GetParam());
    captured_ = wrap(captured_memory_.data(), {kCount});
    tiny_tensor* x = nullptr;
    ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, &kCount, 1, &x), TINY_OK);
    tiny_tensor* one = nullptr;
    tiny_tensor* product = nullptr;
    tiny_tensor* y = nullptr;
    tiny_tensor* w = nullptr;
    ASSERT_EQ(tiny_scalar_float(context_, 1, &one), TINY_OK);
    ASSERT_EQ(tiny_binary(TINY_MUL, x, captured_, &product), TINY_OK);
    ASSERT_EQ(tiny_binary(TINY_ADD, product, one, &y), TINY_OK);
    ASSERT_EQ(tiny_reduce(TINY_SUM, x, nullptr, 0, 0, &w), TINY_OK);
    tiny_tensor* outputs[] = {y, y, w};
    tiny_program* program = nullptr;
    ASSERT_EQ(tiny_program_compile(&x, 1, outputs, 3, &program), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_create(program, &run_), TINY_OK);
    tiny_program_release(program);
    for (tiny_tensor* t : {x, one, product, y, w}) tiny_tensor_release(t);
    std::iota(x_memory_.begin(), x_memory_.end(), 0.0f);
    x_ = wrap(x_memory_.data(), {kCount});
    ASSERT_EQ(tiny_run_set_input(run_, 0, x_), TINY_OK) << tiny_last_error();
  }
  void TearDown() override {
    tiny_run_release(run_);
    close();
  }
  tiny_tensor* wrap(float* data, std::vector<int64_t> dims, const int64_t* strides = nullptr) {
    tiny_tensor* out = nullptr;
    int64_t lowest = 0, highest = 0;  // that the strides reach, from `data`
    int64_t step = 1;
    for (size_t i = dims.size(); i-- > 0; step *= dims[i]) {
      const int64_t reach = (dims[i] - 1) * (strides ? strides[i] : step);
      (reach < 0 ? lowest : highest) += reach;
    }
    EXPECT_EQ(
        tiny_tensor_wrap(context_, TINY_FLOAT32, dims.data(), strides, dims.size(), data + lowest,
                         static_cast<size_t>(highest - lowest + 1) * sizeof(float), -lowest, 0,
                         nullptr, nullptr, &out),
        TINY_OK)
        << tiny_last_error();
    return keep(out);
  }
  void refuse(tiny_tensor* t, const std::string& part, size_t index = 0,
              tiny_status status = TINY_ERROR_INVALID_ARGUMENT) {
    EXPECT_EQ(tiny_run_set_output(run_, index, t), status);
    EXPECT_TRUE(error_has(part.c_str())) << tiny_last_error();
  }

  tiny_run* run_ = nullptr;
  Floats captured_memory_ = Floats(kCount, 2.0f);
  Floats x_memory_ = Floats(kCount);
  tiny_tensor* captured_ = nullptr;
  tiny_tensor* x_ = nullptr;
};

TEST_P(Output, IsWrittenIntoWrappedMemoryWhateverItsAlignment) {
  Floats memory(kCount + 2, -1.0f);
  tiny_tensor* y = wrap(memory.data() + 1, {kCount});
  ASSERT_EQ(tiny_run_set_output(run_, 0, y), TINY_OK) << tiny_last_error();
  EXPECT_EQ(memory[1], -1);  // nothing has run
  for (float first : {0.0f, 100.0f}) {
    x_memory_[0] = first;
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
    EXPECT_EQ(memory[1], 2 * first + 1);
    EXPECT_EQ(memory[kCount], 2 * (kCount - 1) + 1);
    EXPECT_EQ(memory.front(), -1);
    EXPECT_EQ(memory.back(), -1);
    EXPECT_EQ(read(y)[0], 2 * first + 1);
    Floats copy(kCount);
    EXPECT_EQ(tiny_run_read_output(run_, 0, copy.data(), kCount * sizeof(float)), TINY_OK);
    EXPECT_EQ(copy, Floats(memory.begin() + 1, memory.end() - 1));
    EXPECT_EQ(tiny_run_read_output(run_, 1, copy.data(), kCount * sizeof(float)), TINY_OK);
    EXPECT_EQ(copy[0], 2 * first + 1);
  }
}

TEST_P(Output, IsWrittenIntoComputedTensorsAndConstantsAndParts) {
  tiny_tensor* zeros = nullptr;
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, &kCount, 1, 0, &zeros), TINY_OK);
  keep(zeros);
  const int64_t dims[] = {3, kCount}, begin[] = {1, 0}, end[] = {2, kCount};
  tiny_tensor* rows = nullptr;
  tiny_tensor* row = nullptr;
  tiny_tensor* flat = nullptr;
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, dims, 2, 7, &rows), TINY_OK);
  ASSERT_EQ(tiny_unary(TINY_NEG, keep(rows), &rows), TINY_OK);
  ASSERT_EQ(tiny_slice(keep(rows), begin, end, nullptr, 2, &row), TINY_OK);
  ASSERT_EQ(tiny_reshape(keep(row), &kCount, 1, &flat), TINY_OK);
  keep(flat);
  ASSERT_EQ(tiny_run_set_output(run_, 0, zeros), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_set_output(run_, 1, flat), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(zeros)[5], 0);
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(zeros)[5], 11);
  EXPECT_EQ(read(zeros), read(flat));  // the same value, twice
  const Floats all = read(rows);
  EXPECT_EQ(all[kCount - 1], -7);
  EXPECT_EQ(all[kCount + 5], 11);
  EXPECT_EQ(all[2 * kCount], -7);
}

TEST_P(Output, GoesBackToTheRunsOwnMemory) {
  Floats memory(kCount);
  tiny_tensor* y = wrap(memory.data(), {kCount});
  ASSERT_EQ(tiny_run_set_output(run_, 0, y), TINY_OK);
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK);
  tiny_tensor* taken = nullptr;
  EXPECT_EQ(tiny_run_output_tensor(run_, 0, &taken), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("use that tensor")) << tiny_last_error();
  ASSERT_EQ(tiny_run_set_output(run_, 0, nullptr), TINY_OK) << tiny_last_error();
  x_memory_[0] = 50;
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(memory[0], 1);
  ASSERT_EQ(tiny_run_output_tensor(run_, 0, &taken), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(keep(taken))[0], 101);
  ASSERT_EQ(tiny_run_set_output(run_, 0, y), TINY_OK);  // and again
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK);
  EXPECT_EQ(memory[0], 101);
}

TEST_P(Output, MakesGraphsOfTheOldElementsInvalidAndNewOnesSeeTheResult) {
  Floats memory(kCount, 3.0f);
  tiny_tensor* y = wrap(memory.data(), {kCount});
  tiny_tensor* computed = nullptr;
  tiny_tensor* lazy = nullptr;
  tiny_tensor* after = nullptr;
  ASSERT_EQ(tiny_unary(TINY_NEG, y, &computed), TINY_OK);
  ASSERT_EQ(tiny_realize(&computed, 1), TINY_OK);
  keep(computed);
  ASSERT_EQ(tiny_unary(TINY_SQUARE, y, &lazy), TINY_OK);
  keep(lazy);
  ASSERT_EQ(tiny_run_set_output(run_, 0, y), TINY_OK);
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK);
  EXPECT_EQ(read(computed)[0], -3);
  float values[kCount];
  EXPECT_EQ(tiny_tensor_read(lazy, values, sizeof values), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("a program has written to since")) << tiny_last_error();
  ASSERT_EQ(tiny_unary(TINY_NEG, y, &after), TINY_OK);
  EXPECT_EQ(read(keep(after))[4], -9);
}

TEST_P(Output, FeedsTheNextRunWithoutACopy) {
  Floats a(kCount), b(kCount);
  tiny_tensor* first = wrap(a.data(), {kCount});
  tiny_tensor* second = wrap(b.data(), {kCount});
  for (int step = 0; step < 3; ++step) {  // x -> 2 x + 1, to and fro
    // The old output must go before it can be the input.
    ASSERT_EQ(tiny_run_set_output(run_, 0, nullptr), TINY_OK);
    ASSERT_EQ(tiny_run_set_input(run_, 0, step % 2 ? second : first), TINY_OK);
    ASSERT_EQ(tiny_run_set_output(run_, 0, step % 2 ? first : second), TINY_OK)
        << tiny_last_error();
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  }
  EXPECT_EQ(b, Floats(kCount, 7.0f));
  EXPECT_EQ(a, Floats(kCount, 3.0f));
}

TEST_P(Output, ThatCannotBeIsRefusedByName) {
  Floats memory(2 * kCount);
  const int64_t backwards[] = {-1};
  tiny_tensor* y = wrap(memory.data(), {kCount});
  refuse(wrap(memory.data() + kCount - 1, {kCount}, backwards), "are not row-major");
  refuse(wrap(memory.data(), {kCount - 1}), "output \"outputs[0]\" has the shape [1000]; got [999]",
         0, TINY_ERROR_SHAPE);
  refuse(x_, "shares memory with that of input \"inputs[0]\"");
  refuse(captured_, "shares memory with one that the program captured");
  refuse(y, "has 3 outputs; got index 3", 3);
  ASSERT_EQ(tiny_run_set_output(run_, 0, y), TINY_OK);
  refuse(wrap(memory.data() + kCount - 1, {kCount}), "shares memory with that of output", 1);
  refuse(wrap(memory.data(), {}), "shares memory with that of output \"outputs[0]\"", 2);
  EXPECT_EQ(tiny_run_set_input(run_, 0, y), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("input \"inputs[0]\": the tensor shares memory with that of output"))
      << tiny_last_error();
  tiny_tensor* scalar = nullptr;
  ASSERT_EQ(tiny_scalar_float(context_, 1, &scalar), TINY_OK);
  refuse(keep(scalar), "a scalar is a number", 2);
  tiny_tensor* whole = nullptr;
  ASSERT_EQ(tiny_arange(context_, TINY_INT32, kCount, &whole), TINY_OK);
  refuse(keep(whole), "is of type float32; got int32", 0, TINY_ERROR_DTYPE);
  tiny_tensor* placeholder = nullptr;
  ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, &kCount, 1, &placeholder), TINY_OK);
  refuse(keep(placeholder), "depends on an input");
  EXPECT_EQ(tiny_run_set_output(nullptr, 0, y), TINY_ERROR_INVALID_ARGUMENT);
  // What was set before stands.
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(memory[3], 7);
}

TEST_P(Output, HoldsItsMemoryUntilItIsUnset) {
  static int deleted = 0;
  deleted = 0;
  Floats memory(kCount);
  tiny_tensor* y = nullptr;
  ASSERT_EQ(tiny_tensor_wrap(
                context_, TINY_FLOAT32, &kCount, nullptr, 1, memory.data(), kCount * sizeof(float),
                0, 0, [](void*) { ++deleted; }, nullptr, &y),
            TINY_OK);
  ASSERT_EQ(tiny_run_set_output(run_, 0, y), TINY_OK);
  tiny_tensor_release(y);
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK);
  EXPECT_EQ(memory[1], 3);
  EXPECT_EQ(deleted, 0);
  ASSERT_EQ(tiny_run_set_output(run_, 0, nullptr), TINY_OK);
  EXPECT_EQ(deleted, 1);
}

TEST_P(Output, ThatAProgramWritesItselfCannotBeSet) {
  tiny_tensor* x = nullptr;
  tiny_tensor* sum = nullptr;
  Floats memory(kCount), other(kCount);
  tiny_tensor* state = wrap(memory.data(), {kCount});
  ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, &kCount, 1, &x), TINY_OK);
  ASSERT_EQ(tiny_binary(TINY_ADD, state, keep(x), &sum), TINY_OK);
  ASSERT_EQ(tiny_assign(state, keep(sum)), TINY_OK);
  tiny_program* program = nullptr;
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_program_compile(&x, 1, &state, 1, &program), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  tiny_program_release(program);
  EXPECT_EQ(tiny_run_set_output(run, 0, wrap(other.data(), {kCount})), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("is a tensor that the program writes")) << tiny_last_error();
  tiny_run_release(run);
}

TEST_P(Output, HasNoValueBeforeAnExecutionAndAfterAFailedOne) {
  Floats copy(kCount);
  tiny_tensor* y = nullptr;
  const auto expect_none = [&](const char* reason) {
    EXPECT_EQ(tiny_run_read_output(run_, 0, copy.data(), kCount * sizeof(float)),
              TINY_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(error_has(reason)) << tiny_last_error();
    EXPECT_EQ(tiny_run_output_tensor(run_, 0, &y), TINY_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(error_has(reason)) << tiny_last_error();
    EXPECT_EQ(y, nullptr);
  };
  expect_none("output \"outputs[0]\" has no value: the run was not executed");
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_run_read_output(run_, 0, copy.data(), kCount * sizeof(float)), TINY_OK);
  tiny_cancel* cancel = nullptr;
  ASSERT_EQ(tiny_cancel_create(&cancel), TINY_OK);
  ASSERT_EQ(tiny_run_set_cancel(run_, cancel), TINY_OK);
  ASSERT_EQ(tiny_cancel_set(cancel), TINY_OK);
  EXPECT_EQ(tiny_run_execute(run_), TINY_ERROR_CANCELLED);
  expect_none("has no value: the last execution failed");
  ASSERT_EQ(tiny_cancel_clear(cancel), TINY_OK);
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_run_read_output(run_, 0, copy.data(), kCount * sizeof(float)), TINY_OK);
  EXPECT_EQ(copy[1], 3);
  ASSERT_EQ(tiny_run_set_output(run_, 0, nullptr), TINY_OK);
  expect_none("where it goes was set after the last execution");
  tiny_cancel_release(cancel);
}

TEST_P(Output, TakenTwiceIsTheSameTensor) {
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  tiny_tensor* first = nullptr;
  tiny_tensor* second = nullptr;
  tiny_tensor* other = nullptr;
  ASSERT_EQ(tiny_run_output_tensor(run_, 0, &first), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_output_tensor(run_, 0, &second), TINY_OK) << tiny_last_error();
  keep(first);
  keep(second);
  EXPECT_EQ(read(first)[3], 7);
  EXPECT_EQ(read(second)[3], 7);
  Floats copy(kCount);
  ASSERT_EQ(tiny_run_read_output(run_, 0, copy.data(), kCount * sizeof(float)), TINY_OK);
  EXPECT_EQ(copy[3], 7);
  // Output 1 is the same value, but a tensor of its own: a write to one is not seen in the other.
  ASSERT_EQ(tiny_run_output_tensor(run_, 1, &other), TINY_OK) << tiny_last_error();
  keep(other);
  tiny_tensor* zero = nullptr;
  ASSERT_EQ(tiny_scalar_float(context_, 0, &zero), TINY_OK);
  ASSERT_EQ(tiny_assign(first, keep(zero)), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(first)[3], 0);
  EXPECT_EQ(read(second)[3], 0);
  EXPECT_EQ(read(other)[3], 7);
  // What was taken stays; the next execution has memory of its own.
  x_memory_[3] = 50;
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(other)[3], 7);
  ASSERT_EQ(tiny_run_output_tensor(run_, 0, &second), TINY_OK) << tiny_last_error();
  keep(second);
  EXPECT_EQ(read(second)[3], 101);
  EXPECT_EQ(read(first)[3], 0);
  ASSERT_EQ(tiny_run_output_tensor(run_, 1, &second), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(keep(second))[3], 101);
}

TEST_P(Output, TakenOfAValueThatIsAlsoWrittenElsewhereIsItsOwn) {
  Floats memory(kCount);
  ASSERT_EQ(tiny_run_set_output(run_, 0, wrap(memory.data(), {kCount})), TINY_OK);
  tiny_tensor* y = nullptr;
  for (const float x : {3.0f, 50.0f}) {
    x_memory_[3] = x;
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_output_tensor(run_, 1, &y), TINY_OK) << tiny_last_error();
    keep(y);
    EXPECT_EQ(memory[3], 2 * x + 1);
    memory[3] = -1;
    EXPECT_EQ(read(y)[3], 2 * x + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Output, ::testing::Values("cpu", "interp"));

}  // namespace

// Runs that read and write the caller's memory: what is bound, what is refused, and what of it
// holds with variables.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/api_values.h"
#include "tiny.h"

namespace {

using Floats = std::vector<float>;

class Bind : public ::testing::TestWithParam<const char*>, protected tiny::testing::ApiValues {
 protected:
  void SetUp() override { open(GetParam()); }
  void TearDown() override {
    tiny_run_release(run_);
    tiny_program_release(program_);
    tiny_variable_release(variable_);
    close();
  }
  // A run of the outputs x * 2, x * 2 again, and x + y.
  void make_run(const std::vector<int64_t>& dims) {
    tiny_tensor *x = input(dims), *y = input(dims), *two = nullptr, *twice = nullptr,
                *sum = nullptr;
    ASSERT_EQ(tiny_scalar_float(context_, 2, &two), TINY_OK);
    ASSERT_EQ(tiny_binary(TINY_MUL, x, keep(two), &twice), TINY_OK);
    ASSERT_EQ(tiny_binary(TINY_ADD, x, y, &sum), TINY_OK);
    tiny_tensor* inputs[] = {x, y};
    tiny_tensor* outputs[] = {keep(twice), twice, keep(sum)};
    ASSERT_EQ(tiny_program_compile(inputs, 2, outputs, 3, &program_), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_create(program_, &run_), TINY_OK);
  }
  void make_run_of_variable() {
    int64_t n = 0;
    ASSERT_EQ(tiny_variable_create(context_, "N", 2, 64, &variable_), TINY_OK);
    ASSERT_EQ(tiny_variable_dim(variable_, &n), TINY_OK);
    make_run({n, 2});
  }
  tiny_status bind(size_t index, const Floats& data) {
    return tiny_run_bind_input(run_, index, data.data(), data.size() * sizeof(float));
  }
  tiny_status bind_out(size_t index, Floats& data) {
    return tiny_run_bind_output(run_, index, data.data(), data.size() * sizeof(float));
  }
  void expect_outputs(const Floats& twice, const Floats& sum) {
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
    for (size_t i = 0; i < 3; ++i) {
      Floats got(twice.size());
      ASSERT_EQ(tiny_run_read_output(run_, i, got.data(), got.size() * sizeof(float)), TINY_OK)
          << tiny_last_error();
      EXPECT_EQ(got, i < 2 ? twice : sum) << "output " << i;
    }
  }
  static void expect_error(tiny_status got, tiny_status want,
                           const std::vector<std::string>& parts) {
    EXPECT_EQ(got, want) << tiny_last_error();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(tiny_last_error()).find(part), std::string::npos)
          << '"' << tiny_last_error() << "\" has no " << part;
  }

  tiny_program* program_ = nullptr;
  tiny_run* run_ = nullptr;
  tiny_variable* variable_ = nullptr;
};

TEST_P(Bind, ExecutionsReadAndWriteTheMemory) {
  make_run({3});
  Floats x{1, 2, 3}, y{10, 20, 30}, twice(3), again(3), sum(3);
  ASSERT_EQ(bind(0, x), TINY_OK) << tiny_last_error();
  ASSERT_EQ(bind(1, y), TINY_OK);
  ASSERT_EQ(bind_out(0, twice), TINY_OK) << tiny_last_error();
  ASSERT_EQ(bind_out(1, again), TINY_OK);
  ASSERT_EQ(bind_out(2, sum), TINY_OK);
  expect_outputs({2, 4, 6}, {11, 22, 33});
  EXPECT_EQ(twice, (Floats{2, 4, 6}));
  EXPECT_EQ(again, twice);
  EXPECT_EQ(sum, (Floats{11, 22, 33}));
  x[0] = 5;
  expect_outputs({10, 4, 6}, {15, 22, 33});
  EXPECT_EQ(sum[0], 15);
  Floats other{7, 8, 9}, elsewhere(3);
  ASSERT_EQ(bind(0, other), TINY_OK);
  ASSERT_EQ(bind_out(2, elsewhere), TINY_OK);
  expect_outputs({14, 16, 18}, {17, 28, 39});
  EXPECT_EQ(elsewhere, (Floats{17, 28, 39}));
  EXPECT_EQ(sum[0], 15);
  // Into memory of the run's own again.
  for (size_t i = 0; i < 3; ++i) ASSERT_EQ(tiny_run_bind_output(run_, i, nullptr, 0), TINY_OK);
  ASSERT_EQ(bind(1, x), TINY_OK);
  expect_outputs({14, 16, 18}, {12, 10, 12});
  EXPECT_EQ(elsewhere, (Floats{17, 28, 39}));
  tiny_tensor* taken = nullptr;
  ASSERT_EQ(tiny_run_output_tensor(run_, 2, &taken), TINY_OK) << tiny_last_error();
  Floats got(3);
  ASSERT_EQ(tiny_tensor_read(keep(taken), got.data(), 12), TINY_OK);
  EXPECT_EQ(got, (Floats{12, 10, 12}));
}

TEST_P(Bind, MemoryAndTensorsTakeTurns) {
  make_run({2});
  Floats x{1, 2}, y{3, 4}, sum(2), memory{5, 6};
  const int64_t dims[] = {2};
  tiny_tensor* tensor = nullptr;
  ASSERT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, dims, 1, memory.data(), 8, &tensor),
            TINY_OK);
  keep(tensor);
  ASSERT_EQ(bind(0, x), TINY_OK);
  ASSERT_EQ(bind(1, y), TINY_OK);
  expect_outputs({2, 4}, {4, 6});
  ASSERT_EQ(tiny_run_set_input(run_, 0, tensor), TINY_OK) << tiny_last_error();
  expect_outputs({10, 12}, {8, 10});
  ASSERT_EQ(bind(0, x), TINY_OK);
  ASSERT_EQ(tiny_run_set_output(run_, 2, tensor), TINY_OK) << tiny_last_error();
  expect_outputs({2, 4}, {4, 6});
  ASSERT_EQ(bind_out(2, sum), TINY_OK) << tiny_last_error();
  expect_outputs({2, 4}, {4, 6});
  EXPECT_EQ(sum, (Floats{4, 6}));
  ASSERT_EQ(tiny_run_set_output(run_, 2, nullptr), TINY_OK);
  sum = {0, 0};
  expect_outputs({2, 4}, {4, 6});
  EXPECT_EQ(sum, (Floats{0, 0}));
}

TEST_P(Bind, WhatCannotBeIsRefused) {
  make_run({3});
  Floats x{1, 2, 3}, y{10, 20, 30}, out(6), wide(4);
  ASSERT_EQ(bind(0, x), TINY_OK);
  ASSERT_EQ(bind(1, y), TINY_OK);
  expect_error(bind(0, wide), TINY_ERROR_SHAPE, {"inputs[0]", "[3]", "12 bytes", "got 16"});
  expect_error(tiny_run_bind_input(run_, 2, x.data(), 12), TINY_ERROR_INVALID_ARGUMENT,
               {"index 2"});
  expect_error(tiny_run_bind_output(run_, 3, x.data(), 12), TINY_ERROR_INVALID_ARGUMENT,
               {"index 3"});
  expect_error(tiny_run_bind_input(run_, 0, nullptr, 12), TINY_ERROR_INVALID_ARGUMENT, {"NULL"});
  const auto* odd = reinterpret_cast<const std::byte*>(wide.data()) + 1;
  expect_error(tiny_run_bind_input(run_, 0, odd, 12), TINY_ERROR_INVALID_ARGUMENT,
               {"inputs[0]", "aligned", "float32"});
  expect_error(bind_out(2, y), TINY_ERROR_INVALID_ARGUMENT, {"outputs[2]", "shares", "inputs[1]"});
  ASSERT_EQ(tiny_run_bind_output(run_, 0, out.data(), 12), TINY_OK);
  expect_error(tiny_run_bind_output(run_, 2, out.data() + 2, 12), TINY_ERROR_INVALID_ARGUMENT,
               {"outputs[2]", "outputs[0]"});
  ASSERT_EQ(tiny_run_bind_output(run_, 2, out.data() + 3, 12), TINY_OK) << tiny_last_error();
  expect_error(tiny_run_bind_input(run_, 0, out.data() + 1, 12), TINY_ERROR_INVALID_ARGUMENT,
               {"inputs[0]", "shares", "outputs[0]"});
  // What was bound before is as it was.
  expect_outputs({2, 4, 6}, {11, 22, 33});
  EXPECT_EQ(out, (Floats{2, 4, 6, 11, 22, 33}));
}

TEST_P(Bind, VariablesSayTheSizes) {
  make_run_of_variable();
  Floats x(2 * 64), y(x), sum(x);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 100;
  }
  for (const int64_t n : {2, 7, 64, 64}) {
    const size_t bytes = static_cast<size_t>(n) * 2 * sizeof(float);
    ASSERT_EQ(tiny_run_bind_input(run_, 0, x.data(), bytes), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_bind_input(run_, 1, y.data(), bytes), TINY_OK);
    ASSERT_EQ(tiny_run_set_variable(run_, variable_, n), TINY_OK);
    ASSERT_EQ(tiny_run_bind_output(run_, 2, sum.data(), bytes), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
    for (size_t i = 0; i < static_cast<size_t>(2 * n); ++i) ASSERT_EQ(sum[i], x[i] + 100);
  }
  ASSERT_EQ(tiny_run_set_variable(run_, variable_, 3), TINY_OK);
  expect_error(tiny_run_execute(run_), TINY_ERROR_SHAPE, {"inputs[0]", "[3, 2]", "24", "512"});
  ASSERT_EQ(tiny_run_bind_input(run_, 0, x.data(), 24), TINY_OK);
  ASSERT_EQ(tiny_run_bind_input(run_, 1, y.data(), 24), TINY_OK);
  expect_error(tiny_run_execute(run_), TINY_ERROR_SHAPE, {"outputs[2]", "24", "512"});
  ASSERT_EQ(tiny_run_bind_output(run_, 2, sum.data(), 24), TINY_OK);
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  // Memory of another size does not fit, though the variable is as it was.
  ASSERT_EQ(tiny_run_bind_input(run_, 1, y.data(), 32), TINY_OK);
  expect_error(tiny_run_execute(run_), TINY_ERROR_SHAPE, {"inputs[1]", "24", "32"});
}

INSTANTIATE_TEST_SUITE_P(Devices, Bind, ::testing::Values("cpu", "interp", "far"));

}  // namespace

// Programs with variables, made by hand through the C ABI: one program for every size.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/api_values.h"
#include "tiny.h"

namespace tiny {
namespace {

class Variable : public ::testing::Test, protected testing::ApiValues {
 protected:
  void SetUp() override { open("cpu"); }
  void TearDown() override {
    for (tiny_variable* v : variables_) tiny_variable_release(v);
    tiny_run_release(run_);
    tiny_program_release(program_);
    close();
  }

  tiny_variable* variable(const char* name, int64_t min, int64_t max) {
    tiny_variable* out = nullptr;
    EXPECT_EQ(tiny_variable_create(context_, name, min, max, &out), TINY_OK) << tiny_last_error();
    variables_.push_back(out);
    return out;
  }
  int64_t dim(const tiny_variable* v) {
    int64_t out = 0;
    EXPECT_EQ(tiny_variable_dim(v, &out), TINY_OK);
    return out;
  }
  tiny_tensor* binary(tiny_binary_op op, tiny_tensor* a, tiny_tensor* b) {
    tiny_tensor* out = nullptr;
    const tiny_status status = tiny_binary(op, a, b, &out);
    return keep(status, out);
  }
  // 1, 2, 3, ..
  tiny_tensor* counted(const std::vector<int64_t>& dims) {
    std::vector<float> data(1);
    for (int64_t d : dims) data.resize(data.size() * static_cast<size_t>(d));
    std::iota(data.begin(), data.end(), 1.f);
    return floats(dims, data);
  }
  void compile(const std::vector<tiny_tensor*>& inputs, const std::vector<tiny_tensor*>& outputs) {
    ASSERT_EQ(tiny_program_compile(inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                                   &program_),
              TINY_OK)
        << tiny_last_error();
    ASSERT_EQ(tiny_run_create(program_, &run_), TINY_OK);
  }
  std::vector<int64_t> output_shape(size_t index) {
    std::vector<int64_t> dims(8);
    size_t rank = 0;
    EXPECT_EQ(tiny_run_output_shape(run_, index, dims.data(), dims.size(), &rank), TINY_OK)
        << tiny_last_error();
    dims.resize(rank);
    return dims;
  }
  std::vector<float> output(size_t index, size_t count) {
    std::vector<float> out(count);
    EXPECT_EQ(tiny_run_read_output(run_, index, out.data(), count * sizeof(float)), TINY_OK)
        << tiny_last_error();
    return out;
  }
  void expect_error(tiny_status got, tiny_status want, const std::vector<std::string>& words) {
    EXPECT_EQ(got, want) << tiny_last_error();
    for (const std::string& word : words)
      EXPECT_NE(std::string(tiny_last_error()).find(word), std::string::npos)
          << word << " in: " << tiny_last_error();
  }

  tiny_program* program_ = nullptr;
  tiny_run* run_ = nullptr;
  std::vector<tiny_variable*> variables_;
};

TEST_F(Variable, IsBoundByTheShapesOfInputs) {
  tiny_variable* n = variable("N", 2, 64);
  tiny_tensor* x = input({dim(n), 3});
  tiny_tensor* y = input({dim(n), 1});
  tiny_tensor *sum = binary(TINY_ADD, x, y), *total = nullptr;
  const int64_t axis = 0;
  ASSERT_EQ(tiny_reduce(TINY_SUM, sum, &axis, 1, 0, &total), TINY_OK) << tiny_last_error();
  tensors_.push_back(total);
  compile({x, y}, {sum, total});
  for (const int64_t size : {5, 2, 64, 5}) {
    ASSERT_EQ(tiny_run_set_input(run_, 0, counted({size, 3})), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_set_input(run_, 1, counted({size, 1})), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
    EXPECT_EQ(output_shape(0), (std::vector<int64_t>{size, 3}));
    const std::vector<float> sums = output(0, static_cast<size_t>(size * 3));
    std::vector<float> totals(3);
    for (int64_t i = 0; i < size * 3; ++i) {
      const int64_t row = i / 3;
      const auto want = static_cast<float>(i + 1 + row + 1);
      ASSERT_EQ(sums[static_cast<size_t>(i)], want) << "N = " << size << " at " << i;
      totals[static_cast<size_t>(i % 3)] += want;
    }
    EXPECT_EQ(output(1, 3), totals);
  }
}

TEST_F(Variable, IsSetWhereNoInputHasIt) {
  tiny_variable* n = variable("N", 1, 100);
  tiny_tensor *count = nullptr, *twos = nullptr, *total = nullptr;
  const int64_t dims[] = {dim(n)};
  ASSERT_EQ(tiny_arange(context_, TINY_FLOAT32, dim(n), &count), TINY_OK) << tiny_last_error();
  tensors_.push_back(count);
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, dims, 1, 2, &twos), TINY_OK) << tiny_last_error();
  tensors_.push_back(twos);
  tiny_tensor* product = binary(TINY_MUL, count, twos);
  ASSERT_EQ(tiny_reduce(TINY_SUM, product, nullptr, 0, 0, &total), TINY_OK) << tiny_last_error();
  tensors_.push_back(total);
  float value = 0;
  expect_error(tiny_tensor_read(total, &value, sizeof value), TINY_ERROR_INVALID_ARGUMENT,
               {"\"N\"", "program"});
  expect_error(tiny_realize(&product, 1), TINY_ERROR_INVALID_ARGUMENT, {"N", "program"});
  compile({}, {total, product});
  expect_error(tiny_run_execute(run_), TINY_ERROR_INVALID_ARGUMENT, {"\"N\""});
  for (const int64_t size : {1, 100, 7}) {
    ASSERT_EQ(tiny_run_set_variable(run_, n, size), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
    EXPECT_EQ(output(0, 1)[0], static_cast<float>(size * (size - 1)));
    EXPECT_EQ(output_shape(1), std::vector<int64_t>{size});
  }
}

TEST_F(Variable, DimensionsThatDependOnItGoFromShapesToDims) {
  tiny_variable* n = variable("N", 2, 16);
  tiny_tensor *x = input({dim(n), 4}), *joined = nullptr, *flat = nullptr, *back = nullptr;
  tiny_tensor* twice[] = {x, x};
  ASSERT_EQ(tiny_concat(twice, 2, 0, &joined), TINY_OK) << tiny_last_error();
  tensors_.push_back(joined);
  int64_t dims[2];
  size_t rank = 0;
  ASSERT_EQ(tiny_tensor_shape(x, dims, 2, &rank), TINY_OK) << tiny_last_error();
  EXPECT_EQ(dims[0], dim(n));
  EXPECT_EQ(dims[1], 4);
  ASSERT_EQ(tiny_tensor_shape(joined, dims, 2, &rank), TINY_OK) << tiny_last_error();
  EXPECT_NE(dims[0], dim(n));
  EXPECT_LT(dims[0], -1);
  const int64_t all = -1;
  ASSERT_EQ(tiny_reshape(joined, &all, 1, &flat), TINY_OK) << tiny_last_error();
  tensors_.push_back(flat);
  ASSERT_EQ(tiny_reshape(flat, dims, 2, &back), TINY_OK) << tiny_last_error();
  tensors_.push_back(back);
  compile({x}, {back});
  ASSERT_EQ(tiny_run_set_input(run_, 0, counted({3, 4})), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(output_shape(0), (std::vector<int64_t>{6, 4}));
  const std::vector<float> got = output(0, 24);
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(got[i], static_cast<float>(i % 12 + 1));
}

TEST_F(Variable, SlicesEndWhereItSays) {
  tiny_variable* n = variable("N", 2, 16);
  tiny_tensor *x = input({dim(n), 4}), *column = nullptr;
  const int64_t begin[] = {0, 1}, end[] = {dim(n), 2};
  ASSERT_EQ(tiny_slice(x, begin, end, nullptr, 2, &column), TINY_OK) << tiny_last_error();
  tensors_.push_back(column);
  int64_t dims[2];
  size_t rank = 0;
  ASSERT_EQ(tiny_tensor_shape(column, dims, 2, &rank), TINY_OK) << tiny_last_error();
  EXPECT_EQ(dims[0], dim(n));
  EXPECT_EQ(dims[1], 1);
  compile({x}, {column});
  ASSERT_EQ(tiny_run_set_input(run_, 0, counted({3, 4})), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(output_shape(0), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(output(0, 3), (std::vector<float>{2, 6, 10}));
}

// Decoding: the keys that there are grow from run to run.
TEST_F(Variable, OneRowWeighsAsManyKeysAsTheRunHas) {
  constexpr size_t kHeads = 2, kWidth = 64;
  tiny_variable* n = variable("KEYS", 1, 1000);
  tiny_tensor *q = input({kHeads, 1, kWidth}), *k = input({kHeads, dim(n), kWidth}),
              *v = input({kHeads, dim(n), kWidth});
  tiny_tensor *across = nullptr, *scores = nullptr, *weights = nullptr, *out = nullptr;
  const int64_t axes[] = {0, 2, 1};
  ASSERT_EQ(tiny_permute(k, axes, 3, &across), TINY_OK) << tiny_last_error();
  tensors_.push_back(across);
  ASSERT_EQ(tiny_matmul(q, across, &scores), TINY_OK) << tiny_last_error();
  tensors_.push_back(scores);
  ASSERT_EQ(tiny_softmax(scores, 2, &weights), TINY_OK) << tiny_last_error();
  tensors_.push_back(weights);
  ASSERT_EQ(tiny_matmul(weights, v, &out), TINY_OK) << tiny_last_error();
  tensors_.push_back(out);
  compile({q, k, v}, {out});
  const auto value = [](size_t i) { return static_cast<float>(i * 7919 % 61) / 61 - 0.5F; };
  const size_t counts[] = {1, 2, 15, 16, 17, 63, 64, 65, 511, 1000, 3};
  for (const size_t keys : counts) {
    std::vector<std::vector<float>> data;
    tiny_tensor* const ports[] = {q, k, v};
    for (size_t p = 0; p < std::size(ports); ++p) {
      const int64_t rows = p == 0 ? 1 : static_cast<int64_t>(keys);
      const int64_t dims[] = {kHeads, rows, kWidth};
      std::vector<float>& of_port = data.emplace_back(kHeads * static_cast<size_t>(rows) * kWidth);
      for (size_t i = 0; i < of_port.size(); ++i) of_port[i] = value(i + 5 * p);
      tiny_tensor* t = nullptr;
      ASSERT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, dims, 3, of_port.data(),
                                      of_port.size() * sizeof(float), &t),
                TINY_OK)
          << tiny_last_error();
      tensors_.push_back(t);
      ASSERT_EQ(tiny_run_set_input(run_, p, t), TINY_OK) << tiny_last_error();
    }
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
    const std::vector<float> got = output(0, kHeads * kWidth);
    for (size_t h = 0; h < kHeads; ++h) {
      std::vector<double> sums(kWidth);
      double total = 0;
      for (size_t i = 0; i < keys; ++i) {
        const size_t row = (h * keys + i) * kWidth;
        double score = 0;
        for (size_t d = 0; d < kWidth; ++d)
          score += double{data[0][h * kWidth + d]} * double{data[1][row + d]};
        const double weight = std::exp(score);
        total += weight;
        for (size_t d = 0; d < kWidth; ++d) sums[d] += weight * double{data[2][row + d]};
      }
      for (size_t d = 0; d < kWidth; ++d)
        ASSERT_NEAR(got[h * kWidth + d], sums[d] / total, 1e-5) << keys << " keys";
    }
  }
}

TEST_F(Variable, OutOfItsRangeIsAnErrorThatNamesIt) {
  tiny_variable* n = variable("rows", 2, 8);
  tiny_tensor* x = input({dim(n), 2});
  compile({x}, {binary(TINY_ADD, x, x)});
  for (const int64_t size : {1, 9}) {
    expect_error(tiny_run_set_input(run_, 0, counted({size, 2})), TINY_ERROR_SHAPE,
                 {"\"rows\"", "from 2 to 8"});
    expect_error(tiny_run_set_variable(run_, n, size), TINY_ERROR_INVALID_ARGUMENT,
                 {"\"rows\"", "from 2 to 8", std::to_string(size)});
  }
  expect_error(tiny_run_set_input(run_, 0, counted({3, 3})), TINY_ERROR_SHAPE, {"dimension 1"});
  expect_error(tiny_run_set_input(run_, 0, counted({6})), TINY_ERROR_SHAPE, {"2 dimensions"});
  expect_error(tiny_run_execute(run_), TINY_ERROR_INVALID_ARGUMENT, {"inputs[0]"});
  expect_error(tiny_run_set_variable(run_, variable("columns", 2, 8), 3),
               TINY_ERROR_INVALID_ARGUMENT, {"\"columns\"", "\"rows\" from 2 to 8"});
}

TEST_F(Variable, InputsMustAgreeOnItWhenTheRunExecutes) {
  tiny_variable* n = variable("N", 2, 8);
  tiny_tensor *x = input({dim(n)}), *y = input({dim(n)});
  compile({x, y}, {binary(TINY_MUL, x, y)});
  ASSERT_EQ(tiny_run_set_input(run_, 0, counted({4})), TINY_OK);
  ASSERT_EQ(tiny_run_set_input(run_, 1, counted({5})), TINY_OK);
  expect_error(tiny_run_execute(run_), TINY_ERROR_SHAPE, {"inputs[0]", "[5]", "[4]"});
  ASSERT_EQ(tiny_run_set_input(run_, 0, counted({5})), TINY_OK);
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(output(0, 5), (std::vector<float>{1, 4, 9, 16, 25}));
  ASSERT_EQ(tiny_run_set_variable(run_, n, 3), TINY_OK);
  float gone[3];
  expect_error(tiny_run_read_output(run_, 0, gone, sizeof gone), TINY_ERROR_INVALID_ARGUMENT,
               {"executed"});
  expect_error(tiny_run_execute(run_), TINY_ERROR_SHAPE, {"inputs[0]"});
}

TEST_F(Variable, OutputsAreTakenAndSetAtTheRunsSize) {
  tiny_variable* n = variable("N", 2, 300);
  tiny_tensor* x = input({dim(n), 3});
  compile({x}, {binary(TINY_ADD, x, x)});
  tiny_tensor *mine = nullptr, *taken = nullptr;
  const std::vector<int64_t> dims = {100, 3};
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, dims.data(), 2, 0, &mine), TINY_OK);
  tensors_.push_back(mine);
  expect_error(tiny_run_set_output(run_, 0, mine), TINY_ERROR_INVALID_ARGUMENT, {"\"N\""});
  ASSERT_EQ(tiny_run_set_input(run_, 0, counted(dims)), TINY_OK);
  ASSERT_EQ(tiny_run_set_output(run_, 0, mine), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  std::vector<float> got(300);
  ASSERT_EQ(tiny_tensor_read(mine, got.data(), got.size() * sizeof(float)), TINY_OK);
  for (size_t i = 0; i < 300; ++i) ASSERT_EQ(got[i], static_cast<float>(2 * i + 2));
  ASSERT_EQ(tiny_run_set_input(run_, 0, counted({7, 3})), TINY_OK);
  expect_error(tiny_run_execute(run_), TINY_ERROR_SHAPE, {"outputs[0]", "[100, 3]", "[7, 3]"});
  ASSERT_EQ(tiny_run_set_output(run_, 0, nullptr), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_output_tensor(run_, 0, &taken), TINY_OK) << tiny_last_error();
  tensors_.push_back(taken);
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(output(0, 21).back(), 42.f);
}

TEST_F(Variable, WhatMustKnowASizeSaysSo) {
  tiny_variable *n = variable("N", 2, 8), *m = variable("M", 2, 8);
  tiny_tensor *x = input({dim(n)}), *y = input({dim(m)}), *sum = nullptr;
  expect_error(tiny_binary(TINY_ADD, x, y, &sum), TINY_ERROR_UNSUPPORTED, {"N", "M"});
  int64_t count = 0;
  expect_error(tiny_tensor_numel(x, &count), TINY_ERROR_UNSUPPORTED, {"N"});
  tiny_tensor* wide = input({dim(variable("N", 2, 9))});
  tiny_tensor* both[] = {x, wide};
  expect_error(tiny_program_compile(both, 2, both, 2, &program_), TINY_ERROR_INVALID_ARGUMENT,
               {"\"N\"", "two variables"});
}

TEST_F(Variable, IsOneOfItsNameAndRange) {
  tiny_variable *n = variable("N", 2, 8), *same = variable("N", 2, 8);
  EXPECT_EQ(dim(n), dim(same));
  EXPECT_NE(dim(n), dim(variable("N", 2, 9)));
  const char* name = nullptr;
  int64_t min = 0, max = 0;
  ASSERT_EQ(tiny_variable_name(n, &name), TINY_OK);
  EXPECT_STREQ(name, "N");
  ASSERT_EQ(tiny_variable_range(n, &min, &max), TINY_OK);
  EXPECT_EQ(min, 2);
  EXPECT_EQ(max, 8);
  tiny_variable* out = n;
  for (const auto& [low, high] :
       {std::pair<int64_t, int64_t>{-1, 4}, {5, 5}, {7, 3}, {2, INT64_MAX}})
    expect_error(tiny_variable_create(context_, "K", low, high, &out), TINY_ERROR_INVALID_ARGUMENT,
                 {"\"K\"", std::to_string(low), std::to_string(high)});
  EXPECT_EQ(out, nullptr);
  expect_error(tiny_variable_create(context_, "", 2, 3, &out), TINY_ERROR_INVALID_ARGUMENT,
               {"name"});
  expect_error(tiny_variable_create(context_, nullptr, 2, 3, &out), TINY_ERROR_INVALID_ARGUMENT,
               {"name"});
}

// tiny_dim_*: what they make goes where dimensions go, and comes back from shapes.
TEST_F(Variable, DimensionsAreCalculatedWith) {
  const int64_t n = dim(variable("N", 2, 64)), m = dim(variable("M", 1, 8));
  using Operation = tiny_status (*)(tiny_context*, int64_t, int64_t, int64_t*);
  const auto made = [&](Operation operation, int64_t a, int64_t b) {
    int64_t out = 0;
    EXPECT_EQ(operation(context_, a, b, &out), TINY_OK) << tiny_last_error();
    return out;
  };
  const auto range = [&](int64_t d) {
    std::pair<int64_t, int64_t> out;
    EXPECT_EQ(tiny_dim_range(context_, d, &out.first, &out.second), TINY_OK) << tiny_last_error();
    return out;
  };
  const auto text = [&](int64_t d) {
    tiny_report* report = nullptr;
    EXPECT_EQ(tiny_dim_text(context_, d, &report), TINY_OK) << tiny_last_error();
    std::string out = tiny_report_text(report);
    tiny_report_release(report);
    return out;
  };
  using Pair = std::pair<int64_t, int64_t>;
  const int64_t twice = made(tiny_dim_mul, n, 2), more = made(tiny_dim_add, twice, 1);
  EXPECT_EQ(made(tiny_dim_add, n, n), twice);
  EXPECT_EQ(made(tiny_dim_sub, more, 1), twice);
  EXPECT_EQ(made(tiny_dim_sub, n, n), 0);
  EXPECT_EQ(made(tiny_dim_floor_div, twice, 2), n);
  EXPECT_EQ(made(tiny_dim_floor_mod, twice, 2), 0);
  EXPECT_EQ(made(tiny_dim_add, 3, 4), 7);
  EXPECT_EQ(made(tiny_dim_floor_div, -7, 2), -4);
  EXPECT_EQ(made(tiny_dim_min, n, 100), n);
  EXPECT_EQ(made(tiny_dim_max, n, 2), n);
  EXPECT_EQ(range(more), Pair(5, 129));
  EXPECT_EQ(range(made(tiny_dim_sub, 3, n)), Pair(-61, 1));
  EXPECT_EQ(range(made(tiny_dim_mul, n, m)), Pair(2, 512));
  EXPECT_EQ(range(made(tiny_dim_max, n, m)).second, 64);
  EXPECT_EQ(range(made(tiny_dim_min, n, 8)), Pair(2, 8));
  EXPECT_EQ(range(made(tiny_dim_floor_div, n, 3)), Pair(0, 21));
  EXPECT_EQ(range(made(tiny_dim_floor_mod, n, 8)), Pair(0, 7));
  EXPECT_EQ(made(tiny_dim_floor_mod, -7, 4), 1);
  EXPECT_EQ(range(17), Pair(17, 17));
  EXPECT_EQ(text(n), "N");
  EXPECT_EQ(text(more), "2*N + 1");
  EXPECT_EQ(text(made(tiny_dim_sub, made(tiny_dim_mul, n, m), n)), "-N + M*N");
  EXPECT_EQ(text(made(tiny_dim_sub, 7, n)), "-N + 7");
  EXPECT_EQ(text(-3), "-3");
  int64_t out = 5;
  expect_error(tiny_dim_floor_div(context_, 8, 0, &out), TINY_ERROR_INVALID_ARGUMENT,
               {"tiny_dim_floor_div", "b is 0", "at least 1"});
  EXPECT_EQ(out, 0);
  expect_error(tiny_dim_floor_mod(context_, 8, made(tiny_dim_sub, n, 2), &out),
               TINY_ERROR_INVALID_ARGUMENT, {"at least 1"});
  const int64_t large = dim(variable("L", 1, INT64_C(1) << 40));
  expect_error(tiny_dim_mul(context_, large, large, &out), TINY_ERROR_LIMIT, {"L", "2^40"});
  expect_error(tiny_dim_mul(context_, large, INT64_C(1) << 40, &out), TINY_ERROR_LIMIT, {"L"});
  expect_error(tiny_dim_add(nullptr, 1, 2, &out), TINY_ERROR_INVALID_ARGUMENT, {"context"});
  expect_error(tiny_dim_add(context_, 1, 2, nullptr), TINY_ERROR_INVALID_ARGUMENT, {"out"});

  tiny_tensor *x = input({n}), *padded = nullptr, *tiled = nullptr;
  const int64_t none = 0, rest = made(tiny_dim_floor_mod, n, 2);
  tiny_tensor* ones = nullptr;
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, &rest, 1, 1, &ones), TINY_OK) << tiny_last_error();
  tensors_.push_back(ones);
  ASSERT_EQ(tiny_pad(x, &none, &n, 1, 7, &padded), TINY_OK) << tiny_last_error();
  tensors_.push_back(padded);
  int64_t got = 0;
  size_t rank = 0;
  ASSERT_EQ(tiny_tensor_shape(padded, &got, 1, &rank), TINY_OK);
  EXPECT_EQ(got, twice);
  ASSERT_EQ(tiny_tile(counted({2}), &n, 1, &tiled), TINY_OK) << tiny_last_error();
  tensors_.push_back(tiled);
  compile({x}, {padded, tiled, ones});
  expect_error(tiny_run_dim(run_, n, &got), TINY_ERROR_INVALID_ARGUMENT, {"\"N\""});
  ASSERT_EQ(tiny_run_set_input(run_, 0, counted({3})), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  EXPECT_EQ(output(0, 6), (std::vector<float>{1, 2, 3, 7, 7, 7}));
  EXPECT_EQ(output(1, 6), (std::vector<float>{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(output_shape(2), std::vector<int64_t>{1});
  EXPECT_EQ(tiny_run_dim(run_, more, &got), TINY_OK) << tiny_last_error();
  EXPECT_EQ(got, 7);
  EXPECT_EQ(tiny_run_dim(run_, 12, &got), TINY_OK) << tiny_last_error();
  EXPECT_EQ(got, 12);
  expect_error(tiny_run_dim(run_, m, &got), TINY_ERROR_INVALID_ARGUMENT, {"no variable \"M\""});
}

// A number that stands for a dimension is, as an element, what the run has for it.
TEST_F(Variable, ScalarsFollowIt) {
  const int64_t n = dim(variable("N", 2, 64));
  int64_t twice = 0;
  ASSERT_EQ(tiny_dim_mul(context_, n, 2, &twice), TINY_OK);
  const auto scalar = [&](int64_t value) {
    tiny_tensor* out = nullptr;
    const tiny_status status = tiny_scalar_int(context_, value, &out);
    return keep(status, out);
  };
  tiny_tensor *x = input({dim(variable("N", 2, 64)), 2}), *size = scalar(n);
  tiny_tensor* mean = nullptr;
  const int64_t axis = 0;
  ASSERT_EQ(tiny_reduce(TINY_SUM, x, &axis, 1, 0, &mean), TINY_OK);
  tensors_.push_back(mean);
  tiny_tensor *divided = binary(TINY_DIV, mean, size), *scaled = binary(TINY_MUL, x, scalar(twice));
  tiny_tensor* whole = binary(TINY_ADD, size, scalar(1));
  tiny_dtype dtype = 0;
  ASSERT_EQ(tiny_tensor_dtype(scaled, &dtype), TINY_OK);
  EXPECT_EQ(dtype, TINY_FLOAT32) << "a scalar takes the dtype of what it meets";
  compile({x}, {divided, scaled, whole});
  for (const int64_t rows : {3, 8}) {
    ASSERT_EQ(tiny_run_set_input(run_, 0, counted({rows, 2})), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
    const auto r = static_cast<float>(rows);
    EXPECT_EQ(output(0, 2), (std::vector<float>{r, r + 1})) << "of 1, 3, 5, .. and 2, 4, 6, ..";
    const std::vector<float> got = output(1, static_cast<size_t>(2 * rows));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<float>(i + 1) * 2 * r);
    int64_t sum = 0;
    ASSERT_EQ(tiny_run_read_output(run_, 2, &sum, sizeof sum), TINY_OK) << tiny_last_error();
    EXPECT_EQ(sum, rows + 1);
  }
  int64_t value = 0;
  expect_error(tiny_tensor_read(size, &value, sizeof value), TINY_ERROR_INVALID_ARGUMENT,
               {"\"N\""});
}

// What arithmetic or a conversion has made of such a number is no element.
TEST_F(Variable, NumbersThatStandForNothingAreNoElements) {
  const int64_t n = dim(variable("N", 2, 64)), one[] = {1}, zero[] = {0};
  tiny_context* other = nullptr;
  ASSERT_EQ(tiny_context_create(nullptr, &other), TINY_OK);
  tiny_variable* theirs = nullptr;
  ASSERT_EQ(tiny_variable_create(other, "N", 2, 64, &theirs), TINY_OK);
  const int64_t foreign = dim(theirs);
  tiny_variable_release(theirs);
  tiny_context_release(other);
  tiny_tensor *x = counted({6}), *out = nullptr;
  for (const int64_t wrong : {n + 1, n - 1000, n + (INT64_C(1) << 39), foreign}) {
    expect_error(tiny_scalar_int(context_, wrong, &out), TINY_ERROR_INVALID_ARGUMENT,
                 {"value", std::to_string(wrong), "tiny_dim_add"});
    EXPECT_EQ(out, nullptr);
  }
  const auto rounded = static_cast<double>(n);
  expect_error(tiny_scalar_float(context_, rounded, &out), TINY_ERROR_INVALID_ARGUMENT,
               {"value", "tiny_scalar_int"});
  expect_error(tiny_full(context_, TINY_FLOAT32, one, 1, rounded, &out),
               TINY_ERROR_INVALID_ARGUMENT, {"value", "tiny_scalar_int"});
  expect_error(tiny_pad(x, zero, one, 1, rounded, &out), TINY_ERROR_INVALID_ARGUMENT,
               {"value", "tiny_scalar_int"});
  for (const int64_t number : {INT64_MIN, INT64_MAX, -(INT64_C(1) << 62), INT64_C(-1), -n}) {
    ASSERT_EQ(tiny_scalar_int(context_, number, &out), TINY_OK) << tiny_last_error();
    int64_t value = 0;
    EXPECT_EQ(tiny_tensor_read(out, &value, sizeof value), TINY_OK);
    EXPECT_EQ(value, number);
    tiny_tensor_release(out);
  }
  for (const double number : {-1e300, -0x1p62, -4e18, 1e18, std::nan(""), -HUGE_VAL}) {
    ASSERT_EQ(tiny_scalar_float(context_, number, &out), TINY_OK) << tiny_last_error();
    tiny_tensor_release(out);
  }
}

// Whatever takes dimensions, of which some are no sizes and no dimensions of the context.
TEST_F(Variable, NumbersThatStandForNothingAreNoSizes) {
  const int64_t n = dim(variable("N", 2, 64));
  tiny_context* other = nullptr;
  ASSERT_EQ(tiny_context_create(nullptr, &other), TINY_OK);
  tiny_variable* theirs = nullptr;
  ASSERT_EQ(tiny_variable_create(other, "N", 2, 64, &theirs), TINY_OK);
  const int64_t foreign = dim(theirs);
  tiny_variable_release(theirs);
  tiny_context_release(other);
  EXPECT_NE(foreign, n);
  tiny_tensor *x = counted({6}), *i = nullptr, *out = nullptr;
  ASSERT_EQ(tiny_arange(context_, TINY_INT64, 2, &i), TINY_OK);
  tensors_.push_back(i);
  const int64_t zero = 0, one = 1;
  float data = 0;
  using Call = std::function<tiny_status(const int64_t*)>;
  const std::vector<std::pair<const char*, Call>> calls = {
      {"dims[0]", [&](const int64_t* d) { return tiny_input(context_, TINY_FLOAT32, d, 1, &out); }},
      {"dims[0]",
       [&](const int64_t* d) { return tiny_full(context_, TINY_FLOAT32, d, 1, 0, &out); }},
      {"dims[0]",
       [&](const int64_t* d) {
         return tiny_tensor_from_data(context_, TINY_FLOAT32, d, 1, &data, sizeof data, &out);
       }},
      {"count", [&](const int64_t* d) { return tiny_arange(context_, TINY_INT32, *d, &out); }},
      {"dims[0]", [&](const int64_t* d) { return tiny_reshape(x, d, 1, &out); }},
      {"dims[0]", [&](const int64_t* d) { return tiny_expand(x, d, 1, &out); }},
      {"dims[0]", [&](const int64_t* d) { return tiny_as_strided(x, d, &one, 1, 0, &out); }},
      {"repeats[0]", [&](const int64_t* d) { return tiny_tile(x, d, 1, &out); }},
      {"before[0]", [&](const int64_t* d) { return tiny_pad(x, d, &zero, 1, 0, &out); }},
      {"after[0]", [&](const int64_t* d) { return tiny_pad(x, &zero, d, 1, 0, &out); }},
      {"begin[0]", [&](const int64_t* d) { return tiny_slice(x, d, &one, nullptr, 1, &out); }},
      {"end[0]", [&](const int64_t* d) { return tiny_slice(x, &zero, d, nullptr, 1, &out); }},
      {"depth", [&](const int64_t* d) { return tiny_one_hot(i, *d, x, x, -1, &out); }},
      {"sizes[0]", [&](const int64_t* d) { return tiny_split(x, 0, d, 1, &out, 1); }},
      {"a is",
       [&](const int64_t* d) {
         int64_t sum = 0;
         return tiny_dim_add(context_, *d, 1, &sum);
       }},
  };
  for (const int64_t wrong : {foreign, n + 1, n - 1, n - (n / 2), -n, n / 2, n / 3, n + 64})
    for (const auto& [name, call] : calls) {
      expect_error(call(&wrong), TINY_ERROR_INVALID_ARGUMENT,
                   {name, std::to_string(wrong), "no dimension of this context"});
      EXPECT_EQ(out, nullptr);
    }
  for (const auto& [name, call] : calls)
    if (name == std::string("sizes[0]"))
      expect_error(call(&n), TINY_ERROR_UNSUPPORTED, {name, "N"});
  const int64_t free = TINY_DIM_FREE;
  expect_error(tiny_input(context_, TINY_FLOAT32, &free, 1, &out), TINY_ERROR_SHAPE, {"negative"});
  int64_t below = 0;
  ASSERT_EQ(tiny_dim_sub(context_, n, 5, &below), TINY_OK);
  expect_error(tiny_full(context_, TINY_FLOAT32, &below, 1, 0, &out), TINY_ERROR_UNSUPPORTED,
               {"N"});
  expect_error(tiny_arange(context_, TINY_INT32, below, &out), TINY_ERROR_UNSUPPORTED, {"N"});
}

}  // namespace
}  // namespace tiny

// Programs of graphs with Variables: one for all sizes gives what a program for each gives.
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/reduce.h"
#include "tensor/run.h"
#include "tensor/scan.h"
#include "tensor/top_k.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;

class VariableProgram : public ::testing::TestWithParam<std::string> {
 protected:
  Dim variable(const char* name, int64_t min, int64_t max) {
    return Dim(context_->graph().variable(name, min, max));
  }
  Tensor input(const Shape& shape) { return make_placeholder(context_, kFloat32, shape); }
  // Numbers that differ from place to place and with the seed.
  Tensor some(const Ints& shape, int64_t seed) {
    Floats values(static_cast<size_t>(product(to_shape(shape)).value()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((static_cast<int64_t>(i) * 37 + seed) % 101) / 16 - 3;
    return testing::floats(context_, values, shape);
  }
  Floats run(TensorRun& run, const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) run.set_input(i, inputs[i]);
    run.execute();
    Floats out(static_cast<size_t>(run.output_ports()[0].bytes / 4));
    run.read_output(0, out.data());
    return out;
  }

  Ref<Context> context_ = testing::new_context(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices, VariableProgram, ::testing::Values("interp", "cpu", "c"),
                         [](const auto& info) { return info.param; });

void expect_near(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 1e-4F * (1 + std::abs(want[i]))) << i;
}

TEST_P(VariableProgram, GivesWhatAProgramForTheSizeGives) {
  const Tensor weight = some({24, 16}, 5);
  const auto layers = [&](const Tensor& x) {
    const Tensor hidden = relu(matmul(x, weight));
    return softmax(add(hidden, mean(hidden, {0}, true)), -1);
  };
  const Tensor x = input({variable("batch", 2, 200), 24});
  const Ref<const TensorProgram> program = compile_tensors(context_, {{x}}, {{layers(x)}});
  ASSERT_EQ(program->variables.size(), 1u);
  EXPECT_EQ(program->variables[0].name, "batch");
  const Ref<TensorRun> shared = make_ref<TensorRun>(context_, program);
  for (const int64_t size : {7, 2, 64, 200, 7}) {
    const Tensor data = some({size, 24}, size);
    const Tensor fixed = input({size, 24});
    const Ref<TensorRun> own =
        make_ref<TensorRun>(context_, compile_tensors(context_, {{fixed}}, {{layers(fixed)}}));
    expect_near(run(*shared, {data}), run(*own, {data}));
  }
}

TEST_P(VariableProgram, HasSeveralVariablesInOneShape) {
  const Dim rows = variable("rows", 1, 20), columns = variable("columns", 1, 30);
  const Tensor x = input({rows, columns});
  const Tensor y = input({columns, rows});
  const Ref<const TensorProgram> program = compile_tensors(context_, {{x, y}}, {{matmul(x, y)}});
  const Ref<TensorRun> shared = make_ref<TensorRun>(context_, program);
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{3, 4}, {20, 30}, {1, 1}, {4, 3}, {1, 9}}) {
    const Tensor a = some({m, n}, 1), b = some({n, m}, 2);
    expect_near(run(*shared, {a, b}), testing::floats_of(matmul(a, b)));
  }
}

TEST_P(VariableProgram, SortsAddsUpAndTakesElementsOfAnyBatch) {
  const auto results = [&](const Tensor& x) -> std::vector<Tensor> {
    const TopK best = top_k(x, 2, 1, true);
    return {best.values, cumsum(x, 1), take_along_axis(x, best.indices, 1)};
  };
  const Tensor x = input({variable("N", 1, 40), 6, variable("M", 1, 30)});
  const Ref<TensorRun> shared =
      make_ref<TensorRun>(context_, compile_tensors(context_, {{x}}, results(x)));
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{3, 4}, {40, 30}, {1, 1}}) {
    const Tensor data = some({n, 6, m}, 1);
    const std::vector<Tensor> want = results(data);
    run(*shared, {data});
    for (size_t i = 0; i < want.size(); ++i) {
      Floats got(static_cast<size_t>(shared->output_ports()[i].bytes / 4));
      shared->read_output(i, got.data());
      expect_near(got, testing::floats_of(want[i]));
    }
  }
}

TEST_P(VariableProgram, ConvolvesABatchOfAnySize) {
  const Tensor weight = some({4, 3, 3, 3}, 9);
  const Window same{{}, {}, {1, 1}, {1, 1}};
  const Tensor x = input({variable("N", 1, 9), 3, 6, 5});
  const Ref<const TensorProgram> program =
      compile_tensors(context_, {{x}}, {{conv(x, weight, Tensor(), same)}});
  const Ref<TensorRun> shared = make_ref<TensorRun>(context_, program);
  for (const int64_t size : {4, 1, 9}) {
    const Tensor data = some({size, 3, 6, 5}, size);
    expect_near(run(*shared, {data}), testing::floats_of(conv(data, weight, Tensor(), same)));
  }
}

TEST_P(VariableProgram, RunsOnSeveralThreadsWithDifferentSizes) {
  const Tensor x = input({variable("N", 2, 500)});
  const Ref<const TensorProgram> program =
      compile_tensors(context_, {{x}}, {{sum(mul(x, x), {0})}});
  std::vector<Ref<TensorRun>> runs;
  for (int64_t i = 0; i < 4; ++i) {
    runs.push_back(make_ref<TensorRun>(context_, program));
    runs.back()->set_input(0, full(context_, kFloat32, {100 * (i + 1)}, 2));
  }
  std::vector<std::thread> threads;
  for (const Ref<TensorRun>& run : runs)
    threads.emplace_back([&run] {
      for (int i = 0; i < 50; ++i) run->execute();
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < runs.size(); ++i) {
    float total = 0;
    runs[i]->read_output(0, &total);
    EXPECT_EQ(total, 400 * static_cast<float>(i + 1));
  }
}

TEST_P(VariableProgram, OutputsOfOneValueAreSetAtTheRunsSize) {
  const Tensor x = input({variable("N", 2, 50)});
  const Tensor y = add(x, x);
  const Ref<const TensorProgram> program = compile_tensors(context_, {{x}}, {{y, y}});
  const Ref<TensorRun> run = make_ref<TensorRun>(context_, program);
  Tensor first = some({3}, 1), second = some({3}, 2);
  run->set_input(0, testing::floats(context_, {1, 2, 3}));
  run->set_output(0, &first);
  run->set_output(1, &second);
  run->execute();
  EXPECT_EQ(testing::floats_of(first), (Floats{2, 4, 6}));
  EXPECT_EQ(testing::floats_of(second), (Floats{2, 4, 6}));
  run->set_output(0, nullptr);
  run->set_output(1, nullptr);
  run->set_variable(0, 2);
  EXPECT_THROW(run->execute(), Error);  // the input has three elements
  run->set_input(0, testing::floats(context_, {4, 5}));
  run->execute();
  EXPECT_EQ(testing::floats_of(run->take_output(1)), (Floats{8, 10}));
}

TEST_P(VariableProgram, InputsWhoseSizeIsAFormulaFitTheVariables) {
  const Dim n = variable("N", 2, 50);
  const Tensor x = input({n}), pairs = input({n + n});
  const Ref<const TensorProgram> program =
      compile_tensors(context_, {{x, pairs}}, {{add(sum(x, {0}), sum(pairs, {0}))}});
  const Ref<TensorRun> run = make_ref<TensorRun>(context_, program);
  run->set_input(1, full(context_, kFloat32, {6}, 10));
  EXPECT_THROW(run->execute(), Error);  // x is not there
  EXPECT_EQ(this->run(*run, {full(context_, kFloat32, {3}, 1)}), Floats{63});
  for (const int64_t size : {5, 7, 102}) {
    EXPECT_THROW(run->set_input(1, full(context_, kFloat32, {size}, 10)), Error);
    EXPECT_THROW(run->execute(), Error);
  }
  run->set_input(1, full(context_, kFloat32, {8}, 10));  // N is 4
  EXPECT_THROW(run->execute(), Error);                   // x has three elements
  run->set_input(1, full(context_, kFloat32, {6}, 10));
  run->set_input(0, full(context_, kFloat32, {4}, 1));
  EXPECT_THROW(run->execute(), Error);
  run->set_input(1, full(context_, kFloat32, {8}, 10));
  run->execute();
  float total = 0;
  run->read_output(0, &total);
  EXPECT_EQ(total, 84);
}

TEST_P(VariableProgram, CannotBeRealised) {
  const Dim n = variable("N", 2, 50);
  for (Tensor t : {sum(arange(context_, kFloat32, n), {0}), sum(input({n}), {0})}) {
    Tensor* one[] = {&t};
    EXPECT_THROW(realize(one), Error);
    float value = 0;
    EXPECT_THROW(read(t, &value, sizeof value), Error);
  }
}

// Keys of a model that generates: written where the run is, in place.
TEST_P(VariableProgram, WritesWhereTheVariableSays) {
  Tensor cache = some({2, 8, 3}, 0);
  Floats want = testing::floats_of(cache);
  const Dim at = variable("at", 0, 7);
  const Tensor x = input({2, 1, 3});
  Tensor part = slice(cache, {0, at, 0}, {2, at + 1, 3}, {1, 1, 1});
  assign(part, x);
  const Tensor sums = sum(slice(cache, {0, 0, 0}, {2, at + 1, 3}, {1, 1, 1}), {1});
  const Ref<TensorRun> shared =
      make_ref<TensorRun>(context_, compile_tensors(context_, {{x}}, {{sums, cache}}));
  for (const int64_t i : {0, 1, 5, 7, 2}) {
    const Tensor data = some({2, 1, 3}, i);
    shared->set_variable(0, i);
    const Floats got = run(*shared, {data});
    const Floats given = testing::floats_of(data);
    Floats sum_of(6);
    for (size_t row = 0; row < 2; ++row)
      for (size_t k = 0; k < 3; ++k) {
        want[(row * 8 + static_cast<size_t>(i)) * 3 + k] = given[row * 3 + k];
        for (size_t j = 0; j <= static_cast<size_t>(i); ++j)
          sum_of[row * 3 + k] += want[(row * 8 + j) * 3 + k];
      }
    expect_near(got, sum_of);
    EXPECT_EQ(testing::floats_of(cache), want);
  }
}

}  // namespace
}  // namespace tiny

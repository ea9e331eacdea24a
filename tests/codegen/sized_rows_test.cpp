// Attention of few rows over as many keys as a run has: along blocks, which end where the keys do,
// the values of the same rows over exactly so many keys.
#include <gtest/gtest.h>

#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/run.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"
#include "tests/support/machines.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

constexpr int64_t kHeads = 2, kKeysMax = 12000, kWidth = 64;

using testing::context_on;
using testing::kMachines;
using testing::Machine;

testing::Floats values(int64_t count, int64_t step) {
  testing::Floats data;
  for (int64_t i = 0; i < count; ++i) data.push_back(static_cast<float>(i * step % 61 - 30) / 16);
  return data;
}

Tensor attention(const Ref<Context>& context, const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor scale = full(context, kFloat32, Shape{}, 0.25);
  const Tensor scores = mul(matmul(q, permute(k, {0, 2, 1})), scale);
  return matmul(softmax(scores, 2), v);
}

// A program for any number of keys.
class Rows {
 public:
  Rows(const Ref<Context>& context, int64_t rows) : context_(context), rows_(rows) {
    const UOp n = context->graph().variable("n", 1, kKeysMax);
    const Dim sizes[] = {Dim(rows), Dim(n), Dim(n)};
    const UOp variables[] = {n};
    const Ref<TensorProgram> program = make_ref<TensorProgram>();
    program->variables = {{"n", 1, kKeysMax}};
    std::vector<UOp> nodes;
    std::vector<Tensor> inputs;
    for (const Dim& size : sizes) {
      const Shape shape{Dim(kHeads), size, Dim(kWidth)};
      nodes.push_back(make_input(*context, kFloat32, product(shape)));
      inputs.push_back(reshape(Tensor(context, nodes.back()), shape));
      program->inputs.push_back(make_port(cat("input ", nodes.size()), kFloat32, shape, variables));
      program->inputs.back().number = std::ssize(nodes) - 1;
    }
    const Tensor output = attention(context, inputs[0], inputs[1], inputs[2]);
    program->outputs.push_back(make_port("output", kFloat32, output.shape(), variables));
    program->outputs.back().number = 0;
    program->compiled = compile_program(*context, {{output.node()}}, nodes, variables);
    run_ = make_ref<TensorRun>(context, program);
  }

  void expect_oracles_values(int64_t keys) {
    SCOPED_TRACE(cat(rows_, " rows, ", keys, " keys"));
    const auto tensor = [&](int64_t size, int64_t step) {
      return testing::floats(context_, values(kHeads * size * kWidth, step),
                             {kHeads, size, kWidth});
    };
    const Tensor parts[] = {tensor(rows_, 7), tensor(keys, 11), tensor(keys, 13)};
    const reference::Values want =
        reference::evaluate(attention(context_, parts[0], parts[1], parts[2]).node());
    run_->set_variable(0, keys);
    for (size_t i = 0; i < 3; ++i) run_->set_input(i, parts[i]);
    run_->execute();
    testing::Floats out(static_cast<size_t>(run_->output_ports()[0].bytes) / sizeof(float));
    run_->read_output(0, out.data());
    EXPECT_EQ(reference::difference(want, out.data()), "");
  }

 private:
  Ref<Context> context_;
  int64_t rows_;
  Ref<TensorRun> run_;
};

TEST(SizedRows, HaveTheOraclesValuesOverAnyNumberOfKeys) {
  for (const Machine& machine : kMachines)
    for (const int64_t rows : {1, 7, 12, 16}) {
      SCOPED_TRACE(::testing::PrintToString(machine));
      Rows program(context_on(machine), rows);
      for (const int64_t keys : {1, 31, 33, 511, 513}) program.expect_oracles_values(keys);
    }
}

}  // namespace
}  // namespace tiny

// Loops of different rows run as one: the same bits, whatever the rows' number and length.
#include "codegen/linear/overlap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny::testing {
namespace {

struct Row {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> of;  // of two inputs
};

std::vector<Row> rows_of_several_loops() {
  return {
      {"softmax", [](const Tensor& x, const Tensor&) { return softmax(x, 1); }},
      {"softmax times an input",
       [](const Tensor& x, const Tensor& y) { return mul(softmax(x, 1), y); }},
      {"log of softmax", [](const Tensor& x, const Tensor&) { return log_softmax(x, 1); }},
      {"layer_norm",
       [](const Tensor& x, const Tensor&) { return layer_norm(x, Tensor(), Tensor(), 1, 1e-5); }},
      {"layer_norm times an input, and added",
       [](const Tensor& x, const Tensor& y) {
         return add(mul(layer_norm(x, Tensor(), Tensor(), 1, 1e-5), y), x);
       }},
      {"share of the sum",
       [](const Tensor& x, const Tensor&) { return div(x, sum(mul(x, x), {1}, true)); }},
  };
}

Kernel only_kernel(const Ref<Context>& context, const Tensor& value) {
  const UOp stored = context->graph().make(Op::Contiguous, {value.node()});
  const Schedule schedule = make_schedule({&stored, 1}, context->backend().machine());
  EXPECT_EQ(schedule.kernels.size(), 1U);
  return schedule.kernels.front().kernel;
}

// The chosen list without OVERLAP.
std::string list_for(const Ref<Context>& context, const Tensor& value) {
  const Machine& target = context->backend().machine();
  std::vector<Option> list =
      choose_options(prepare_kernel(only_kernel(context, value), target), target);
  std::erase_if(list, [](const Option& o) { return o.kind == OptionKind::Overlap; });
  return to_text(list);
}

Flags flags_with(const std::string& device, const std::string& isa, const std::string& list) {
  Flags flags = flags_for(device, isa);
  flags.opts = list;
  flags.noopt = list.empty() ? 1 : 0;
  flags.spec = 1;
  flags.threads = 2;
  return flags;
}

Floats inputs(int64_t count, int64_t step) {
  Floats out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(static_cast<int64_t>(i) * step % 1009 - 500) / 128;
  return out;
}

// Whether some innermost loop both stores to a parameter and sets an accumulator.
bool stores_beside_a_reduction(const LinearProgram& program) {
  bool stores = false, sets = false;
  for (const LinearOp& op : program.ops) {
    if (op.op == Op::Loop) stores = sets = false;
    if (op.op == Op::EndLoop && stores && sets) return true;
    if (op.op == Op::EndLoop) stores = sets = false;
    sets |= op.op == Op::Set;
    stores |= op.op == Op::Store && program.ops[op.src[0]].op != Op::Scratch;
  }
  return false;
}

// With the list, and with OVERLAP behind.
void expect_same_bits(const Row& row, const BackendInfo& backend, const std::string& isa,
                      const Ints& shape, const std::string& list) {
  Floats results[2];
  bool is_joined[2] = {};
  for (const bool overlaps : {false, true}) {
    const std::string full = overlaps ? (list.empty() ? "" : list + "; ") + "OVERLAP r0" : list;
    const Ref<Context> context = make_ref<Context>(flags_with(backend.name, isa, full));
    const Tensor x = floats(context, inputs(shape[0] * shape[1], 7), shape);
    const Tensor y = floats(context, inputs(shape[0] * shape[1], 11), shape);
    const Tensor value = row.of(x, y);
    PipelineOptions options;
    options.verify = true;
    options.optimise = !full.empty();
    options.options_text = full;
    is_joined[overlaps] = stores_beside_a_reduction(
        generate(only_kernel(context, value), context->backend().machine(), options).program);
    results[overlaps] = floats_of(value);
  }
  const std::string where = cat(row.name, " of ", shape[0], "x", shape[1], " on ", backend.name,
                                " ", isa, " with ", list);
  EXPECT_EQ(results[0], results[1]) << where;
  EXPECT_FALSE(is_joined[0]) << where;
  EXPECT_TRUE(is_joined[1]) << where;
}

TEST(Overlap, RowsKeepTheirBits) {
  const Ints shapes[] = {{2, 300}, {3, 1000}, {4, 128}, {7, 333}, {33, 190}};
  for (const BackendInfo& backend : computing_backends())
    for (const std::string isa : {"auto", "avx2"}) {
      if (isa == "avx2" && backend.name != "cpu") continue;
      for (const Row& row : rows_of_several_loops())
        for (const Ints& shape : shapes) {
          if (backend.name == "c" && shape[1] != 333) continue;  // a compiler runs for each
          const Ref<Context> context = make_ref<Context>(flags_with(backend.name, isa, ""));
          const Tensor x = float_input(context, shape), y = float_input(context, shape);
          expect_same_bits(row, backend, isa, shape, list_for(context, row.of(x, y)));
          expect_same_bits(row, backend, isa, shape, "");
        }
    }
}

}  // namespace
}  // namespace tiny::testing

// No op of a linear program is wider than the target's registers, wherever options put lanes that
// fit the target: along what is gathered, checked and stored by index too.
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/text.h"
#include "codegen/choose/choose.h"
#include "codegen/options/actions.h"
#include "codegen/pipeline.h"
#include "schedule/schedule.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scatter.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

Tensor input(const Ref<Context>& context, DType dtype, const Ints& shape) {
  const int64_t count = product(to_shape(shape)).value();
  return reshape(Tensor(context, make_input(*context, dtype, count)), to_shape(shape));
}
Tensor floats(const Ref<Context>& context, const Ints& shape) {
  return input(context, kFloat32, shape);
}

Tensor gathered(const Ref<Context>& context) {
  return gather(floats(context, {1000}), input(context, kInt64, {640}));
}
Tensor gathered_rows(const Ref<Context>& context) {
  const Tensor rows = gather(floats(context, {100, 48}), input(context, kInt32, {37}));
  return add(rows, floats(context, {37, 48}));
}
Tensor gathered_by_bytes(const Ref<Context>& context) {
  return gather(floats(context, {3, 200}), input(context, kInt8, {64, 16}), 1);
}
Tensor taken(const Ref<Context>& context) {
  return take_along_axis(floats(context, {40, 64}), input(context, kInt64, {40, 64}), 1);
}
Tensor summed(const Ref<Context>& context) {
  return sum(gather(floats(context, {100, 64}), input(context, kInt32, {32, 16})), {1});
}
Tensor scattered(const Ref<Context>& context) {
  return scatter_elements(floats(context, {30, 64}), input(context, kInt64, {20, 64}),
                          floats(context, {20, 64}), 0, Fold::Add);
}
// Rows of 60 out of 5 times 48: where tiles of 16 end beyond them a row is none of the 5.
Tensor rows_of_joined(const Tensor& columns) {
  return reshape(permute(columns, {0, 2, 1}), to_shape({4, 60, 24}));
}
Tensor multiplied_rows(const Ref<Context>& context) {
  return matmul(rows_of_joined(floats(context, {5, 24, 48})), floats(context, {24, 20}));
}
// The same of sums over two of six, where a condition on a row is no condition on a quotient alone.
Tensor multiplied_sums(const Ref<Context>& context) {
  const Tensor x = floats(context, {6, 24, 48});
  return matmul(rows_of_joined(add(slice_axis(x, 0, 0, 5), slice_axis(x, 0, 1, 6))),
                floats(context, {24, 20}));
}
// Rows of 12 times 13 with a place before: it is in no row, and in row (i + 12) / 13 - 1.
Tensor shifted_rows(const Ref<Context>& context) {
  const Tensor rows = add(floats(context, {24, 12, 13}), floats(context, {12, 13}));
  return sum(pad(reshape(rows, to_shape({24, 156})), {0, 1}, {0, 1}), {0});
}
// The frame of rows of 14, which lie side by side one place further: it is told by a remainder.
Tensor shifted_frames(const Ref<Context>& context) {
  const Tensor framed = pad(floats(context, {24, 3, 14}), {0, 0, 1}, {0, 0, 1}, 2);
  const Tensor row = pad(reshape(framed, to_shape({24, 48})), {0, 0}, {0, 1});
  return add(max(slice_axis(row, 1, 1, 49), {0}), floats(context, {48}));
}
using Maker = Tensor (*)(const Ref<Context>&);

// The type that is too wide in the program; "" if none is.
std::string too_wide(const LinearProgram& program, const Target& target) {
  for (const LinearOp& op : program.ops)
    if (op.dtype != kVoid && op.dtype.lanes * op.dtype.bytes() > target.vector_bytes)
      return to_string(op.dtype);
  return "";
}

// The kernel under one list that fits; false if it does not.
bool try_list(const Kernel& kernel, const std::vector<Option>& list, const Machine& target) {
  try {
    if (!fits_target(apply_options(kernel, list), target)) return false;
  } catch (const Error&) {
    return false;
  }
  PipelineOptions pipeline;
  pipeline.verify = true;
  pipeline.options_text = to_text(list);
  const CodegenResult made = generate(kernel, target, pipeline);
  const std::string wide = too_wide(made.program, target);
  EXPECT_EQ(wide, "") << target.name << " with " << to_text(list) << " of\n" << uops_text(kernel);
  return true;
}

std::vector<Option> lanes_over(const Kernel& kernel, const KernelRange& r, int64_t lanes) {
  return parse_options(
      cat("TILE r", r.range.int_arg(), " ", lanes, "; VEC r", kernel.next_range_number()));
}

TEST(Lanes, FitRegistersWhereverOptionsPutThem) {
  for (const Maker make : {gathered, gathered_rows, gathered_by_bytes, taken, summed, scattered,
                           multiplied_rows, multiplied_sums, shifted_rows, shifted_frames})
    for (const Machine& target : {avx512_machine(), avx2_machine()}) {
      const Ref<Context> context = testing::planning_context();
      const UOp stored = context->graph().make(Op::Contiguous, {make(context).node()});
      size_t tried = 0, with_lanes = 0;
      for (const ScheduledKernel& k : make_schedule({&stored, 1}, target).kernels) {
        const Kernel kernel = prepare_kernel(k.kernel, target);
        for (const std::vector<Option>& first :
             {std::vector<Option>(), choose_options(kernel, target)})
          for (const Action& action : possible_actions(apply_options(kernel, first), target)) {
            std::vector<Option> list = first;
            list.insert(list.end(), action.begin(), action.end());
            tried += try_list(kernel, list, target) ? 1 : 0;
          }
        for (const KernelRange& r : kernel.ranges)
          for (const int64_t lanes : {4, 8, 16, 32})
            with_lanes += try_list(kernel, lanes_over(kernel, r, lanes), target) ? 1 : 0;
      }
      EXPECT_GT(tried, 4u);
      EXPECT_GT(with_lanes, 0u);
    }
}

}  // namespace
}  // namespace tiny

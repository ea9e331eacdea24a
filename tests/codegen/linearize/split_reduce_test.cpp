// Sums whose outer loops lie outside of their store's: which add their parts into the destination,
// and how, where the destination holds something before.
#include "codegen/linearize/split_reduce.h"

#include <gtest/gtest.h>

#include "codegen/pipeline.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

constexpr int64_t kRows = 21, kSteps = 150, kColumns = 40;
// 150 steps are two blocks of 64, and one of 22.
constexpr const char* kBlocks = "TILE r2 64; ORDER r2 r0 r1 r3";

Tensor numbers(const Ref<Context>& context, const Ints& shape) {
  testing::Floats values;
  for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
    values.push_back(static_cast<float>(i * 7 % 17) - 8);
  return testing::floats(context, values, shape);
}

struct Operands {
  explicit Operands(const Ref<Context>& context)
      : sums(matmul(numbers(context, {kRows, kSteps}), numbers(context, {kSteps, kColumns}))),
        before(numbers(context, {kRows, kColumns})),
        row(numbers(context, {kColumns})) {}
  Tensor sums, before, row;
};

enum class Way { Whole, Last, First };  // not in parts; the store's value made last, or first

struct Case {
  const char* what;
  Way way;
  Tensor (*make)(const Operands&);
};

Tensor half(const Tensor& x) {
  return mul(x, full(Ref<Context>(&x.context()), kFloat32, {}, 0.5));
}

const Case kCases[] = {
    {"the sum", Way::Last, [](const Operands& o) { return o.sums; }},
    {"relu(sum + row)", Way::Last, [](const Operands& o) { return relu(add(o.sums, o.row)); }},
    {"before + sum", Way::First, [](const Operands& o) { return add(o.before, o.sums); }},
    {"sum + row + before", Way::First,
     [](const Operands& o) { return add(add(o.sums, o.row), o.before); }},
    {"before - sum / 2", Way::First, [](const Operands& o) { return sub(o.before, half(o.sums)); }},
    {"sum * row + before", Way::First,
     [](const Operands& o) { return add(mul(o.sums, o.row), o.before); }},
    {"(before - sum) / 2", Way::First,
     [](const Operands& o) { return half(sub(o.before, o.sums)); }},
    {"relu(before + sum)", Way::Whole,
     [](const Operands& o) { return relu(add(o.before, o.sums)); }},
    {"before * sum", Way::Whole, [](const Operands& o) { return mul(o.before, o.sums); }},
    {"before + before * sum", Way::Whole,
     [](const Operands& o) { return add(o.before, mul(o.before, o.sums)); }},
};

TEST(SplitReduction, MayAddIntoWhatHoldsAnAddend) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    const Ref<Context> context = testing::planning_context();
    const UOp stored = context->graph().make(Op::Contiguous, {c.make(Operands(context)).node()});
    const Machine& target = context->backend().machine();
    const Schedule schedule = make_schedule({&stored, 1}, target);
    ASSERT_EQ(schedule.kernels.size(), 1u);
    const Kernel kernel =
        apply_options(prepare_kernel(schedule.kernels[0].kernel, target), parse_options(kBlocks));
    const SplitReduction split = split_outer_reduction(kernel);
    EXPECT_EQ(static_cast<bool>(split.outer), c.way != Way::Whole);
    EXPECT_EQ(static_cast<bool>(split.added), c.way == Way::First);
    EXPECT_EQ(can_add_into_destination(kernel), c.way != Way::Whole);
  }
}

// Small whole numbers: every order of the sum has the same value.
TEST(SplitReduction, HasTheSumsValues) {
  for (const char* device : {"cpu", "interp"})
    for (const Case& c : kCases) {
      SCOPED_TRACE(cat(device, ": ", c.what));
      Flags flags = testing::flags_for(device);
      flags.noopt = 1;
      const testing::Floats want = testing::floats_of(c.make(Operands(make_ref<Context>(flags))));
      flags.noopt = 0;
      flags.opts = kBlocks;
      EXPECT_EQ(testing::floats_of(c.make(Operands(make_ref<Context>(flags)))), want);
    }
}

// What is updated in place is read once, by the first block.
TEST(SplitReduction, UpdatesInPlace) {
  Flags flags = testing::flags_for("cpu");
  flags.noopt = 1;
  const testing::Floats want =
      testing::floats_of(kCases[4].make(Operands(make_ref<Context>(flags))));
  flags.noopt = 0;
  flags.opts = kBlocks;
  Operands o(make_ref<Context>(flags));
  assign(o.before, kCases[4].make(o));
  EXPECT_EQ(testing::floats_of(o.before), want);
}

}  // namespace
}  // namespace tiny

// Windows whose values a stage holds for a product: what lies beyond the edges of the picture is
// jumped over or masked, the values are the oracle's, and the product stands once.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text.h"
#include "codegen/pipeline.h"
#include "engine/compile.h"
#include "ir/nest.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

struct Picture {
  Ints size;
  int64_t channels = 0;
  int64_t outputs = 0;
  int64_t window = 3;
  int64_t stride = 1;
  Ints before;  // padding
  Ints after;
  bool is_pool = false;
};

Tensor values(const Ref<Context>& context, const Ints& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  testing::Floats data;
  for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
    data.push_back(static_cast<float>(static_cast<int64_t>(random() % 33) - 16) / 16);
  return testing::floats(context, data, shape);
}

// A window for each channel, then a product over the channels; channels last.
Tensor network(const Ref<Context>& context, const Picture& p) {
  const Tensor x = permute(values(context, {1, p.size[0], p.size[1], p.channels}, 1), {0, 3, 1, 2});
  Window window;
  window.strides = {p.stride, p.stride};
  window.before = p.before;
  window.after = p.after;
  Tensor inner;
  if (p.is_pool) {
    inner = max_pool(x, window.with_kernel({p.window, p.window}));
  } else {
    const Tensor w = values(context, {p.channels, 1, p.window, p.window}, 2);
    inner = relu(conv(x, w, Tensor(), window.with_groups(p.channels)));
  }
  const Tensor w = values(context, {p.outputs, p.channels, 1, 1}, 3);
  return permute(conv(inner, w, Tensor(), {}), {0, 2, 3, 1});
}

const Picture kPictures[] = {
    {{28, 28}, 32, 32, 3, 1, {1, 1}, {1, 1}},       {{14, 14}, 32, 16, 3, 1, {1, 1}, {1, 1}},
    {{7, 7}, 64, 32, 3, 1, {1, 1}, {1, 1}},         {{29, 23}, 32, 24, 3, 2, {1, 1}, {1, 1}},
    {{14, 16}, 16, 24, 5, 1, {2, 2}, {2, 2}},       {{20, 28}, 32, 16, 3, 1, {2, 1}, {0, 3}},
    {{40, 56}, 32, 16, 3, 1, {1, 1}, {1, 1}},       {{21, 28}, 32, 16, 3, 1, {1, 1}, {1, 1}, true},
    {{27, 27}, 16, 32, 3, 2, {0, 0}, {0, 0}, true},
};

TEST(WindowEdges, HaveTheOraclesValues) {
  for (const Picture& p : kPictures) {
    SCOPED_TRACE(cat(p.size[0], "x", p.size[1], " by ", p.window, "/", p.stride));
    reference::Values want;
    for (const char* isa : {"auto", "avx2"}) {
      Flags flags = testing::flags_for("cpu", isa);
      flags.threads = 1;
      const Ref<Context> context = make_ref<Context>(flags);
      const Tensor output = network(context, p);
      if (isa[1] == 'u') want = reference::evaluate(output.node());
      EXPECT_EQ(reference::difference(want, testing::floats_of(output).data()), "") << isa;
    }
  }
}

// Of so many channels that the tile of a window is of two rows.
const Picture kLarge = {{28, 28}, 144, 32, 3, 1, {1, 1}, {1, 1}};

// The program of the one kernel that a value, or a picture's network, is.
LinearProgram program_of(const Ref<Context>& context, const Tensor& made) {
  const UOp stored = context->graph().make(Op::Contiguous, {made.node()});
  const Schedule schedule = make_schedule({&stored, 1}, avx512_machine(), true);
  EXPECT_EQ(schedule.kernels.size(), 1U);
  PipelineOptions options;
  options.verify = true;
  return generate(schedule.kernels.front().kernel, avx512_machine(), options).program;
}

LinearProgram program_of(const Picture& p) {
  const Ref<Context> context = testing::planning_context();
  return program_of(context, network(context, p));
}

size_t count(const LinearProgram& program, Op op) {
  return static_cast<size_t>(
      std::ranges::count_if(program.ops, [op](const LinearOp& o) { return o.op == op; }));
}

TEST(WindowEdges, RepeatNothingOfTheProduct) {
  Picture plain = kLarge;
  plain.before = plain.after = {0, 0};
  plain.size = {30, 30};  // the same outputs, of which none is at an edge
  const LinearProgram with = program_of(kLarge);
  const LinearProgram without = program_of(plain);
  EXPECT_EQ(count(with, Op::Loop), count(without, Op::Loop));
  EXPECT_EQ(count(with, Op::Fma), count(without, Op::Fma));
  EXPECT_EQ(count(with, Op::Store), count(without, Op::Store));
}

// Loops of so many steps.
int64_t loops_of(const LinearProgram& program, int64_t steps) {
  return std::ranges::count_if(program.ops, [&](const LinearOp& op) {
    if (op.op != Op::Loop) return false;
    const LinearOp& begin = program.ops[op.src[0]];
    const LinearOp& end = program.ops[op.src[1]];
    return begin.op == Op::Const && end.op == Op::Const && end.imm - begin.imm == steps;
  });
}

// A tile of several rows and columns is at four edges, which the loops that fill it know.
TEST(WindowEdges, PeelWhatFillsATileAndNotItsProduct) {
  const LinearProgram program = program_of({{112, 112}, 32, 16, 3, 1, {1, 1}, {1, 1}});
  EXPECT_EQ(loops_of(program, 32), 1) << nest_text(program);
}

// Where a tile's edge is known, nothing is multiplied with what lies beyond it.
TEST(WindowEdges, ProductsWithPaddingAreLeftOut) {
  const Ref<Context> context = testing::planning_context();
  const Tensor x = permute(values(context, {1, 7, 7, 32}, 1), {0, 3, 1, 2});
  Window window;
  window.before = window.after = {1, 1};
  const Tensor y = conv(x, values(context, {32, 1, 3, 3}, 2), Tensor(), window.with_groups(32));
  const LinearProgram program = program_of(context, permute(y, {0, 2, 3, 1}));
  EXPECT_GE(count(program, Op::Fma), 100U) << nest_text(program);
  for (const LinearOp& op : program.ops) {
    if (op.op != Op::Fma) continue;
    for (const size_t factor : {size_t{0}, size_t{1}})
      EXPECT_NE(program.ops[op.src[factor]].op, Op::Const) << nest_text(program);
  }
}

// A picture in whose padding windows of one row lie as a whole.
Tensor padded_rows(const Ref<Context>& context, int64_t columns) {
  Window padding;
  padding.before = {1, 0};
  padding.after = {2, 0};
  const Ints filter = {80, 80, 1, columns};
  return conv(values(context, {1, 80, 4, 37}, 1), values(context, filter, 2), Tensor(), padding);
}

// Sums of nothing but padding have no steps, so that none asks for an edge that no window crosses.
TEST(WindowEdges, SumsOfPaddingHaveNoSteps) {
  for (const int64_t columns : {1, 3}) {
    SCOPED_TRACE(columns);
    const Ref<Context> planning = testing::planning_context();
    const LinearProgram program = program_of(planning, padded_rows(planning, columns));
    EXPECT_GE(count(program, Op::Fma), 10U) << nest_text(program);
    EXPECT_EQ(count(program, Op::Where), 0U) << nest_text(program);
    reference::Values want;
    for (const char* isa : {"auto", "avx2"}) {
      Flags flags = testing::flags_for("cpu", isa);
      flags.threads = 1;
      const Ref<Context> context = make_ref<Context>(flags);
      const Tensor output = padded_rows(context, columns);
      if (isa[1] == 'u') want = reference::evaluate(output.node());
      EXPECT_EQ(reference::difference(want, testing::floats_of(output).data()), "") << isa;
    }
  }
}

TEST(WindowEdges, RowsBeyondAnEdgeAreJumpedOver) {
  const LinearProgram program = program_of(kLarge);
  EXPECT_EQ(count(program, Op::If) - count(program, Op::Poll), 2U) << nest_text(program);
}

// One window along a long row, its steps in a loop.
struct Row {
  int64_t size = 0;
  int64_t channels = 0;
  int64_t outputs = 0;
  int64_t window = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;
  int64_t after = 0;
};
const Row kRows[] = {
    {470, 1, 32, 100, 1, 1, 50, 50}, {211, 2, 16, 64, 2, 1, 31, 40}, {150, 1, 7, 40, 1, 3, 60, 58},
    {90, 1, 32, 64, 3, 1, 63, 63},   {70, 1, 33, 48, 1, 1, 0, 47},   {333, 4, 48, 25, 8, 1, 12, 12},
};

Tensor network(const Ref<Context>& context, const Row& r) {
  Window window;
  window.strides = {r.stride};
  window.dilations = {r.dilation};
  window.before = {r.before};
  window.after = {r.after};
  return conv(values(context, {1, r.channels, r.size}, 1),
              values(context, {r.outputs, r.channels, r.window}, 2), Tensor(), window);
}

TEST(WindowEdges, LongWindowsHaveTheOraclesValues) {
  for (const Row& r : kRows) {
    SCOPED_TRACE(cat(r.size, " by ", r.window, "/", r.stride, " and ", r.dilation));
    reference::Values want;
    for (const char* isa : {"auto", "avx2"}) {
      Flags flags = testing::flags_for("cpu", isa);
      flags.threads = 1;
      const Ref<Context> context = make_ref<Context>(flags);
      const Tensor output = network(context, r);
      if (isa[1] == 'u') want = reference::evaluate(output.node());
      EXPECT_EQ(reference::difference(want, testing::floats_of(output).data()), "") << isa;
    }
  }
}

// Where a tile's windows lie within the row, as most do, a loop of their own asks nothing.
TEST(WindowEdges, LongWindowsAskOnlyAtTheEdges) {
  const Ref<Context> context = testing::planning_context();
  const UOp stored = context->graph().make(Op::Contiguous, {network(context, kRows[0]).node()});
  const Schedule schedule = make_schedule({&stored, 1}, avx512_machine(), true);
  ASSERT_EQ(schedule.kernels.size(), 1U);
  PipelineOptions options;
  options.options_text = "TILE r1 14; TILE r0 16; ORDER r0 r1 r2 r3 r4; VEC r4; UPCAST r3";
  const LinearProgram program =
      generate(schedule.kernels.front().kernel, avx512_machine(), options).program;
  int64_t asks = 0, sums = 0, free = 0;
  for (const LinearOp& op : program.ops) {
    if (op.op == Op::EndLoop && sums > 0 && asks == 0) ++free;
    if (op.op == Op::Loop || op.op == Op::EndLoop) asks = sums = 0;
    asks += op.op == Op::Where ? 1 : 0;
    sums += op.op == Op::Fma ? 1 : 0;
  }
  EXPECT_GE(free, 1) << nest_text(program);
}

}  // namespace
}  // namespace tiny

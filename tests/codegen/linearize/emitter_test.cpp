// Ops as values are made: folded, widened, and placed where their operands allow.
#include "codegen/linearize/emitter.h"

#include <gtest/gtest.h>

namespace tiny {
namespace {

TEST(Emitter, MakesConstantsAndBroadcastsOnce) {
  LinearProgram program;
  Emitter emit(program);
  EXPECT_EQ(emit.index_constant(7), emit.index_constant(7));
  EXPECT_NE(emit.index_constant(7), emit.constant(kInt32, 7));
  const LinearId begin = emit.add(0, Op::LaunchArg, kInt64, {}, 0);
  const LinearId wide = emit.widened(begin, 8);
  EXPECT_EQ(emit.op(wide).op, Op::Broadcast);
  EXPECT_EQ(emit.widened(begin, 8), wide);
  EXPECT_NE(emit.widened(begin, 4), wide);
  EXPECT_EQ(emit.widened(wide, 8), wide);
  const LinearId lanes = emit.widened(emit.index_constant(7), 8);
  EXPECT_EQ(emit.op(lanes).op, Op::Const);
  EXPECT_EQ(emit.op(lanes).dtype.lanes, 8);
}

TEST(Emitter, FoldsConstantsAndWhatChangesNothing) {
  LinearProgram program;
  Emitter emit(program);
  const LinearId x = emit.add(0, Op::LaunchArg, kInt64, {}, 0);
  const LinearId y = emit.add(0, Op::LaunchArg, kInt64, {}, 1);
  const LinearId zero = emit.index_constant(0);
  const LinearId one = emit.index_constant(1);
  EXPECT_EQ(emit.elementwise(Op::Add, kInt64, {one, emit.index_constant(4)}),
            emit.index_constant(5));
  EXPECT_EQ(emit.elementwise(Op::Add, kInt64, {x, zero}), x);
  EXPECT_EQ(emit.elementwise(Op::Add, kInt64, {zero, x}), x);
  EXPECT_EQ(emit.elementwise(Op::Mul, kInt64, {one, x}), x);
  EXPECT_EQ(emit.elementwise(Op::Where, kInt64, {emit.constant(kBool, 1), x, y}), x);
  EXPECT_EQ(emit.elementwise(Op::Where, kInt64, {emit.constant(kBool, 0), x, y}), y);
  EXPECT_EQ(emit.op(emit.equals(x, 3)).op, Op::Equal);
  // A float sum with 0 is another number for -0.
  const LinearId f = emit.elementwise(Op::Cast, kFloat32, {x});
  EXPECT_NE(emit.elementwise(Op::Add, kFloat32, {f, emit.constant(kFloat32, 0)}), f);
}

TEST(Emitter, PlacesOpsInTheOutermostBlockThatSeesTheirOperands) {
  LinearProgram program;
  Emitter emit(program);
  const LinearId end = emit.add(0, Op::LaunchArg, kInt64, {}, 1);
  const LinearId outer = emit.open(Op::Loop, kInt64, {emit.index_constant(0), end}, 1);
  const LinearId inner = emit.open(Op::Loop, kInt64, {emit.index_constant(0), end}, 1);
  const LinearId twice = emit.index_constant(2);
  EXPECT_EQ(emit.depth_of(emit.elementwise(Op::Mul, kInt64, {end, twice})), 0u);
  EXPECT_EQ(emit.depth_of(emit.elementwise(Op::Mul, kInt64, {outer, twice})), 1u);
  EXPECT_EQ(emit.depth_of(emit.elementwise(Op::Add, kInt64, {outer, inner})), 2u);
  emit.close();
  emit.close();
  emit.flatten();
  EXPECT_NO_THROW(verify(program)) << to_string(program);
}

TEST(Emitter, TellsHowDeepTheFactsOfAValueLie) {
  LinearProgram program;
  Emitter emit(program);
  emit.rely_on(2);
  emit.rely_on(1);
  EXPECT_EQ(emit.start_value(), 2u);
  EXPECT_EQ(emit.relied_on(), 0u);
  emit.rely_on(1);
  EXPECT_EQ(emit.relied_on(), 1u);
}

}  // namespace
}  // namespace tiny

// Index expressions under loops, coordinates and lanes.
#include "codegen/linearize/index_forms.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "tests/codegen/linearize/nest_kernel.h"

namespace tiny {
namespace {

class Forms : public ::testing::Test {
 protected:
  Forms()
      : outer(k.range(10, RangeKind::Loop)),
        inner(k.range(20, RangeKind::Loop)),
        row(k.range(4, RangeKind::Upcast)),
        lane(k.range(16, RangeKind::Vec)) {}

  testing::NestKernel k;
  UOp outer, inner, row, lane;
};

TEST_F(Forms, TakeAnIndexApart) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  nest.open_loop(1, 5, 2);  // the inner range's loop lies outside of the other
  nest.open_loop(0, 6, 4);
  const UOp e = add(add(add(mul(outer, 100), mul(inner, 7)), add(mul(row, 30), mul(lane, 2))), 5);
  nest.fix(2, 3);
  const IndexForm& form = forms.form_of(e);
  EXPECT_EQ(form.constant, 95);
  EXPECT_EQ(form.lane, 2);
  EXPECT_FALSE(form.vector_atom);
  ASSERT_EQ(form.terms.size(), 2u);
  EXPECT_TRUE(form.terms[0].atom == inner);
  EXPECT_EQ(form.terms[0].coefficient, 7);
  EXPECT_TRUE(form.terms[1].atom == outer);
  EXPECT_EQ(form.terms[1].depth, 4u);
  EXPECT_TRUE(form.inner == mul(outer, 100));
  EXPECT_TRUE(form.outer == mul(inner, 7));
  nest.fix(2, 1);
  EXPECT_EQ(forms.form_of(e).constant, 35);
}

TEST_F(Forms, FollowTheNestOfLoops) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  const UOp e = add(mul(outer, 3), inner);
  nest.open_loop(0, 5, 1);
  nest.open_loop(1, 6, 2);
  EXPECT_TRUE(forms.form_of(e).inner == inner);
  nest.close(1);
  nest.close(0);
  nest.open_iteration(0, 2);
  nest.open_loop(1, 7, 1);
  EXPECT_EQ(forms.form_of(e).constant, 6);
  EXPECT_EQ(forms.form_of(e).terms.size(), 1u);
  EXPECT_FALSE(forms.form_of(e).outer);
}

TEST_F(Forms, SetLanesThatAreNoStepApart) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  const UOp e = add(mul(lane, k.graph.variable("n", 1, 9)), mul(floor_div(lane, 4), 3));
  const IndexForm& form = forms.form_of(e);
  EXPECT_EQ(form.lane, 0);
  EXPECT_TRUE(form.terms.empty());
  ASSERT_TRUE(form.vector_atom);
  EXPECT_EQ(nest.free_of(form.vector_atom), nest.lanes());
}

TEST_F(Forms, PutCoordinatesIn) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  const UOp e = add(mul(floor_div(add(row, 1), 2), 10), outer);
  EXPECT_EQ(forms.fixed(e)->terms.size(), 2u);
  nest.fix(2, 3);
  EXPECT_EQ(*forms.fixed(e), (Affine{20, {{outer, 1}}}));
}

TEST_F(Forms, HaveExtremesOverWhatIsPending) {
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  const UOp e = add(sub(add(mul(outer, 8), mul(row, 2)), lane), 1);
  const Affine sum = *affine(e);
  const RangeSet pending = nest.pending_in(nest.free_of(e));
  EXPECT_EQ(*forms.extreme(sum, outer, pending, Extreme::Largest), (Affine{1 + 2 * 3, {}}));
  EXPECT_EQ(*forms.extreme(sum, outer, pending, Extreme::Smallest), (Affine{1 - 15, {}}));
  EXPECT_EQ(*forms.extreme(sum, row, bit(3), Extreme::Largest), (Affine{1, {{outer, 8}}}));
  const Affine opaque = *affine(add(outer, floor_div(lane, 3)));
  EXPECT_FALSE(forms.extreme(opaque, outer, pending, Extreme::Largest));
}

TEST_F(Forms, FlattenAccesses) {
  const UOp buffer = k.graph.make(Op::Param, {}, int64_t{0}, kFloat32);
  const UOp load = k.graph.make(Op::Load, {buffer, outer, inner}, ViewArg{{10, 20}, {-1, 10}, 9});
  LoopNest nest(k.kernel);
  IndexForms forms(nest);
  EXPECT_EQ(*affine(forms.flat_index(load)),
            (Affine{9, affine(sub(mul(inner, 10), outer))->terms}));
  const UOp stage = k.graph.make(Op::Stage, {load, outer, inner}, StageArg{{32, 1}});
  EXPECT_TRUE(forms.flat_index(stage) == add(mul(outer, 32), inner));
  const UOp read = k.graph.make(Op::Index, {stage, row, lane});
  EXPECT_EQ(*affine(forms.flat_index(read)), *affine(add(mul(row, 32), lane)));
}

}  // namespace
}  // namespace tiny

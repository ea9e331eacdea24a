#include "autograd/rule_functions.h"
#include "base/error.h"
#include "ir/build.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

UOp number(const UOp& like, double value) {
  return broadcast_to(like.graph().constant(like.dtype(), value), shape_of(like));
}

// What is the greatest or lowest shares alike; NaN is both.
void of_extremum_of_axes(Step& step) {
  const UOp& x = step.source(0);
  const UOp best = make_expand(step.node(), shape_of(x));
  const UOp is_best = logical_or(equal(x, best), not_equal(x, x));
  const UOp count = make_reduce(where(is_best, number(x, 1), number(x, 0)), Op::Add,
                                step.node().reduce_arg().axes);
  const UOp share = make_expand(div(number(count, 1), count), shape_of(x));
  step.give(0, step.reached().expanded(shape_of(x)).times(share).where(is_best));
}

// Whether a value's last axes are what lies in its windows, and these are folded.
bool folds_windows(const UOp& reduce) {
  const UOp& x = reduce.src(0);
  if (x.op() != Op::Unfold) return false;
  const Unfolding windows = unfolding(x);
  const Ints& axes = reduce.reduce_arg().axes;
  const auto n = std::ssize(windows.along);
  if (std::ssize(axes) != n) return false;
  for (int64_t i = 0; i < n; ++i)
    if (axes[static_cast<size_t>(i)] != windows.axis + n + i) return false;
  return true;
}

// Of windows the first that is it has all: its place in the window is stored, in a byte where that
// holds it.
void of_extremum_of_windows(Step& step) {
  const UOp& x = step.source(0);
  const Shape& shape = shape_of(x);
  const Ints& axes = step.node().reduce_arg().axes;
  Graph& graph = x.graph();
  Shape window(shape.size(), Dim(1));
  int64_t count = 1;
  for (int64_t a : axes) {
    const auto axis = static_cast<size_t>(a);
    window[axis] = shape[axis];
    count *= shape[axis].value();
  }
  const DType dtype = count <= UINT8_MAX ? kUInt8 : kInt32;
  const auto spread = [&](const UOp& u) { return make_expand(u, shape); };
  const UOp place = spread(make_reshape(make_iota(graph, count, dtype), window));
  const UOp nowhere = broadcast_to(graph.constant_int(dtype, count), shape);
  const UOp is_best = logical_or(equal(x, spread(step.node())), not_equal(x, x));
  const UOp first = make_reduce(where(is_best, place, nowhere), Op::Min, axes);
  const UOp stored = graph.make(Op::Contiguous, {first});
  step.give(0, step.reached().expanded(shape).where(equal(place, spread(stored))));
}

// The product of the others: all of it by the element, but where that is 0; of two zeros none
// counts.  One zero among the others makes the slope 0 whatever it is next to, yet the slope's own
// slope is not: a term adds the other zeros, which are none, times what they are multiplied by.
void of_product_of_axes(Step& step) {
  const UOp& x = step.source(0);
  const Ints& axes = step.node().reduce_arg().axes;
  const UOp zero = number(x, 0);
  const UOp one = number(x, 1);
  const UOp is_zero = equal(x, zero);
  const auto spread = [&](const UOp& reduced) { return make_expand(reduced, shape_of(x)); };
  const UOp zeros = spread(make_reduce(where(is_zero, one, zero), Op::Add, axes));
  const UOp others = spread(make_reduce(where(is_zero, one, x), Op::Mul, axes));
  const UOp without = div(others, where(is_zero, one, x));
  const UOp alone = where(is_zero, where(equal(zeros, one), others, zero),
                          where(equal(zeros, zero), without, zero));
  const UOp own = where(is_zero, x, zero);
  const UOp other_zeros = sub(spread(make_reduce(own, Op::Add, axes)), own);
  const UOp beside = where(is_zero, where(equal(zeros, number(x, 2)), others, zero),
                           where(equal(zeros, one), without, zero));
  const UOp slope = add(alone, mul(other_zeros, beside));
  step.give(0, step.reached().expanded(shape_of(x)).times(slope));
}

}  // namespace

void of_reduce(Step& step) {
  switch (step.node().reduce_arg().op) {
    case Op::Add:
      return step.give(0, step.reached().expanded(shape_of(step.source(0))));
    case Op::Max:
    case Op::Min:
      return folds_windows(step.node()) ? of_extremum_of_windows(step) : of_extremum_of_axes(step);
    case Op::Mul:
      return of_product_of_axes(step);
    default:
      invariant(false, "floats are folded by a sum, a product or the greatest");
  }
}

}  // namespace tiny

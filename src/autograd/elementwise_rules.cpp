#include <cmath>
#include <numbers>

#include "autograd/rule_functions.h"
#include "ir/build.h"
#include "shape/bound.h"
#include "shape/movement_axis.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

UOp number(const UOp& like, double value) {
  return broadcast_to(like.graph().constant(like.dtype(), value), shape_of(like));
}

// 1 / x.
UOp inverse(const UOp& x) {
  return div(number(x, 1), x);
}

UOp sign_of(const UOp& x) {
  const UOp zero = number(x, 0);
  return where(less(zero, x), number(x, 1), where(less(x, zero), number(x, -1), zero));
}

}  // namespace

void of_neg(Step& step) {
  step.scale(0, number(step.node(), -1));
}

// 0 at 0.
void of_abs(Step& step) {
  step.scale(0, sign_of(step.source(0)));
}

void of_sqrt(Step& step) {
  step.scale(0, div(number(step.node(), 0.5), step.node()));
}

void of_exp(Step& step) {
  step.scale(0, step.node());
}

void of_log(Step& step) {
  step.scale(0, inverse(step.source(0)));
}

void of_sin(Step& step) {
  step.scale(0, elementwise(Op::Cos, {step.source(0)}));
}

void of_cos(Step& step) {
  step.scale(0, neg(elementwise(Op::Sin, {step.source(0)})));
}

void of_tanh(Step& step) {
  const UOp& y = step.node();
  step.scale(0, sub(number(y, 1), mul(y, y)));
}

// 2 / sqrt(pi) exp(-x^2).
void of_erf(Step& step) {
  const UOp& x = step.source(0);
  const UOp bell = elementwise(Op::Exp, {neg(mul(x, x))});
  step.scale(0, mul(number(x, 2 * std::numbers::inv_sqrtpi), bell));
}

void of_cast(Step& step) {
  const DType from = step.source(0).dtype();
  if (from.is_float() && step.node().dtype().is_float()) step.give(0, step.reached().as(from));
}

void of_add(Step& step) {
  for (const size_t i : {size_t{0}, size_t{1}})
    if (step.wants(i)) step.give(i, step.reached());
}

void of_mul(Step& step) {
  for (const size_t i : {size_t{0}, size_t{1}})
    if (step.wants(i)) step.give(i, step.reached().times(step.source(1 - i)));
}

void of_div(Step& step) {
  const UOp per = inverse(step.source(1));
  if (step.wants(0)) step.scale(0, per);
  if (step.wants(1)) step.scale(1, neg(mul(step.node(), per)));
}

// b a^(b - 1), and a^b log a.  A power 0 is 1 whatever a is, and 0 to a positive power 0 whatever
// the power: neither changes.
void of_pow(Step& step) {
  const UOp& a = step.source(0);
  const UOp& b = step.source(1);
  const UOp zero = number(a, 0);
  if (step.wants(0)) {
    const UOp slope = mul(b, elementwise(Op::Pow, {a, sub(b, number(b, 1))}));
    step.scale(0, where(equal(b, zero), zero, slope));
  }
  if (step.wants(1)) {
    const UOp slope = mul(step.node(), elementwise(Op::Log, {a}));
    step.scale(1, where(logical_and(equal(a, zero), less_equal(zero, b)), zero, slope));
  }
}

// What an extremum's source gets of its slope where it is equal to the other one.
static double share_of_equal(const UOp& other) {
  if (!is_bound(other)) return 0.5;
  return corner_of(other) == Corner::Closed ? 1 : 0;
}

// To the one that it is; of equals half to each, but for bounds: relu's slope at 0 is 0, and clip's
// at its bounds 1.  The other gets exactly nothing, as from `where`: the slope of sqrt(relu(x)) is
// 0 below 0, and not 0 times inf.
void of_extremum(Step& step) {
  const UOp& a = step.source(0);
  const UOp& b = step.source(1);
  const bool is_max = step.node().op() == Op::Max;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!step.wants(i)) continue;
    const UOp& x = i == 0 ? a : b;
    const UOp& other = i == 0 ? b : a;
    const UOp& low = is_max ? x : other;
    const UOp& high = is_max ? other : x;
    const double share = share_of_equal(other);
    // Of NaN and a number it is NaN: x keeps what reaches it where neither is the greater.
    const UOp loses = share == 0 ? less_equal(low, high) : less(low, high);
    Adjoint reached = step.reached();
    if (share != 0 && share != 1)
      reached = reached.times(where(equal(x, other), number(x, share), number(x, 1)));
    step.give(i, reached.where(logical_not(loses)));
  }
}

// What is not chosen gets exactly nothing, whatever its own slope is there.
void of_where(Step& step) {
  const UOp& chosen = step.source(0);
  if (step.wants(1)) step.give(1, step.reached().where(chosen));
  if (step.wants(2)) step.give(2, step.reached().where(logical_not(chosen)));
}

void of_fma(Step& step) {
  for (const size_t i : {size_t{0}, size_t{1}})
    if (step.wants(i)) step.give(i, step.reached().times(step.source(1 - i)));
  if (step.wants(2)) step.give(2, step.reached());
}

}  // namespace tiny

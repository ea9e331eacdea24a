#include "codegen/linearize/predicates.h"

#include <algorithm>

namespace tiny {

namespace {

constexpr uint64_t kConditionUse = 3;  // of an instance: whether it is not negative

}  // namespace

Condition Predicates::condition(const UOp& e, int64_t lanes) {
  Condition c;
  if (const auto depth = prover_.proven(e)) {
    c.depth = *depth;
    return c;
  }
  if (prover_.impossible(e)) {
    c.kind = Condition::False;
    return c;
  }
  const IndexForm& form = forms_.form_of(e);
  const bool is_scalar = !form.vector_atom && form.lane == 0;
  c.kind = is_scalar ? Condition::Scalar : Condition::Lanes;
  LinearId& holds = is_scalar ? c.scalar : c.mask;
  InstanceKey key = nest_.key_of(e);
  key.use = kConditionUse;
  if (const BlockTree::Remembered* known = emit_.recall(key)) {
    holds = known->id;
    emit_.rely_on(known->depth);
    return c;
  }
  const size_t relied_before = emit_.start_value();
  holds = holds_of(e, form, lanes);
  emit_.remember(key, holds, emit_.relied_on());
  emit_.rely_on(relied_before);
  return c;
}

LinearId Predicates::holds_of(const UOp& e, const IndexForm& form, int64_t lanes) {
  const LinearId zero = emit_.index_constant(0);
  if (form.vector_atom) return emit_.elementwise(Op::LessEqual, kBool, {zero, values_.value_of(e)});
  const int64_t lane = form.lane;
  const LinearId base = values_.scalar_of(form);
  if (lane == 0) return emit_.elementwise(Op::LessEqual, kBool, {zero, base});
  // base + lane * l >= 0 holds from -base/lane upwards, or up to base/-lane.
  const int64_t step = lane > 0 ? lane : -lane;
  const LinearId quotient =
      step == 1 ? base
                : emit_.elementwise(Op::FloorDiv, kInt64, {base, emit_.index_constant(step)});
  LinearId low = zero;
  LinearId high = emit_.index_constant(lanes);
  if (lane > 0)
    low = emit_.elementwise(Op::Neg, kInt64, {quotient});
  else
    high = emit_.elementwise(Op::Add, kInt64, {quotient, emit_.index_constant(1)});
  const size_t depth = std::max(emit_.depth_of(low), emit_.depth_of(high));
  return emit_.add(depth, Op::LaneRange, kBool.with_lanes(lanes), {low, high});
}

LinearId Predicates::bool_of(const Condition& c, int64_t lanes) {
  switch (c.kind) {
    case Condition::True:
    case Condition::False:
      return emit_.constant(kBool.with_lanes(lanes), c.kind == Condition::True ? 1 : 0);
    case Condition::Scalar:
      return emit_.widened(c.scalar, lanes);
    case Condition::Lanes:
      break;
  }
  return c.mask;
}

Guards Predicates::all_of(std::span<const Condition> conditions, int64_t lanes) {
  Guards g;
  const auto both = [this](std::optional<LinearId>& sum, LinearId next) {
    sum = sum ? emit_.elementwise(Op::And, kBool, {*sum, next}) : next;
  };
  for (const Condition& c : conditions) {
    g.never |= c.kind == Condition::False;
    g.depth = std::max(g.depth, c.depth);
    if (c.kind == Condition::Scalar) both(g.scalar, c.scalar);
    if (c.kind == Condition::Lanes) both(g.mask, c.mask);
  }
  if (g.mask && g.scalar) {
    both(g.mask, emit_.widened(*g.scalar, lanes));
    g.scalar.reset();
  }
  return g;
}

}  // namespace tiny

#include "rules/identities.h"

#include <cmath>
#include <limits>

#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/fold.h"

namespace tiny {

namespace {

using namespace pattern_words;

// Whether every value of `from` is one of `to`.
bool holds_exactly(DType to, DType from) {
  if (from.is_bool()) return true;
  if (from.is_float()) {
    if (!to.is_float()) return false;
    if (to.is_float8()) return to == from;  // their biases and ends differ
    return to.info().exponent >= from.info().exponent && to.digits() >= from.digits();
  }
  if (to.is_int()) {
    if (from.is_signed() == to.is_signed()) return to.bits() >= from.bits();
    return to.is_signed() && to.bits() > from.bits();
  }
  const auto digits = from.bits() - (from.is_signed() ? 1 : 0);
  return to.is_float() && !to.is_computed_wider() && digits <= to.digits();
}

// A cast of a cast is one cast where the value between loses nothing, or only high bits that the
// outer one loses too.
UOp join_casts(const Match& m) {
  const UOp& inner = m.root().src(0);
  const DType to = m.root().dtype().element();
  const DType between = inner.dtype().element();
  const DType from = inner.src(0).dtype().element();
  const bool truncates =
      from.is_int() && between.is_int() && to.is_int() && to.bits() <= between.bits();
  // An integer that comes from a float saturates; directly it would wrap.
  const bool saturates =
      from.is_int() && between.is_float() && to.is_int() && !holds_exactly(to, from);
  if (!truncates && (!holds_exactly(between, from) || saturates)) return {};
  return cast(inner.src(0), m.root().dtype());
}

UOp join_bitcasts(const Match& m) {
  return bitcast(m.root().src(0).src(0), m.root().dtype());
}

UOp drop_cast(const Match& m) {
  return m.root().dtype() == m.root().src(0).dtype() ? m.root().src(0) : UOp();
}

// x / 2^k = x * 2^-k exactly, where 2^-k is a normal number.
UOp divide_by_power_of_two(const Match& m) {
  const UOp& c = m[Wildcard::c0];
  const DType t = c.dtype();
  const double value = double_of(t, c.const_bits());
  int exponent = 0;
  if (!std::isfinite(value) || std::fabs(std::frexp(value, &exponent)) != 0.5) return {};
  const int limit = t.exponent_bias() - 2;
  if (exponent < -limit || exponent > limit) return {};
  return mul(m[Wildcard::f], m.graph().constant(t, 1 / value));
}

// Up to here an integer is what is left of it when it was multiplied, divided and rounded: the two
// roundings move it by less than 2^-6 of the smallest float that is computed with.
constexpr int64_t kStepsMax = 1 << 16;

// Steps of a size, in steps of the same size (what is quantised again as it was before).
UOp steps_again(const Match& m) {
  const UOp& x = m[Wildcard::x];
  const UOp& c = m[Wildcard::c0];
  const DType t = c.dtype();
  if (!x.dtype().is_int() || t.is_computed_wider() || t.bits() < 32) return {};
  const Interval b = tiny::bounds(x);
  const double size = double_of(t, c.const_bits());
  if (b.lo < -kStepsMax || b.hi > kStepsMax) return {};
  if (!(size >= std::numeric_limits<float>::min() &&
        size <= std::numeric_limits<float>::max() / kStepsMax))
    return {};
  return m.root().src(0).src(0).src(0);
}

// Rules of every dtype.  Floats keep their IEEE results: no reassociation, x + 0.0 is not x (for
// -0.0), x * 0 is not 0, a NaN is unequal to itself.
// Progress: every rule removes a node, or turns a division into a multiplication.
// clang-format off
constexpr WrittenRule kIdentities[] = {
    rule(f + -0.0,                          f),
    rule(x * 1,                             x),
    rule(f * -1,                            -f),
    rule(div(f, 1),                         f),
    rule(div(f, -1),                        -f),
    rule(div(f, c0),                        divide_by_power_of_two),
    rule(-(-x),                             x),
    rule((-f) * (-h),                       f * h),
    rule(abs(-f),                           abs(f)),
    rule(abs(abs(x)),                       abs(x)),
    rule(max(x, x),                         x),
    rule(min(x, x),                         x),
    rule(pow(f, 0),                         1),
    rule(pow(f, 1),                         f),

    // Rounding what is rounded.
    rule(unary(Op::Floor, unary(Op::Floor, f)),  unary(Op::Floor, f)),
    rule(unary(Op::Ceil, unary(Op::Ceil, f)),    unary(Op::Ceil, f)),
    rule(unary(Op::Trunc, unary(Op::Trunc, f)),  unary(Op::Trunc, f)),
    rule(unary(Op::Round, unary(Op::Round, f)),  unary(Op::Round, f)),

    rule(unary(Op::Round, div(unary(Op::Cast, x) * c0, c0)), steps_again),

    // Choices.
    rule(where(1, x, y),                    x),
    rule(where(0, x, y),                    y),
    rule(where(b, x, x),                    x),
    rule(where(!b, x, y),                   where(b, y, x)),
    rule(where(b, where(b, x, y), z),       where(b, x, z)),
    rule(where(b, x, where(b, y, z)),       where(b, x, z)),
    rule(where(b, where(d, x, y), y),       where(b & d, x, y)),
    rule(where(b, x, where(d, x, y)),       where(b | d, x, y)),

    // Comparisons of NaN: == is false and != is true, so that Not goes through these two only.
    rule(!(!x),                             x),
    rule(!(x == y),                         x != y),
    rule(!(x != y),                         x == y),

    // Casts.
    rule(unary(Op::Cast, x),                drop_cast),
    rule(unary(Op::Bitcast, x),             drop_cast),
    rule(unary(Op::Cast, unary(Op::Cast, x)),       join_casts),
    rule(unary(Op::Bitcast, unary(Op::Bitcast, x)), join_bitcasts),
};
// clang-format on

}  // namespace

RuleTable identities() {
  return rule_table<kIdentities>("identities");
}

}  // namespace tiny

#include "rules/float_range.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "ir/bounds.h"
#include "ir/node_map.h"

namespace tiny {

namespace {

using Range = std::optional<FloatRange>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kFloatMax = std::numeric_limits<float>::max();
constexpr double kSlack = 0x1p-16;  // more than what rounding adds, also of an exponential's steps
constexpr size_t kNodesMax = 64;    // that are looked at for one answer
constexpr int kWholeDepth = 8;

// The range of these ends and what rounds to them; none if one is NaN.
Range around(std::initializer_list<double> ends) {
  FloatRange out{kInf, -kInf};
  for (double end : ends) {
    if (std::isnan(end)) return {};
    out = {std::min(out.lo, end), std::max(out.hi, end)};
  }
  out.lo -= std::fabs(out.lo) * kSlack;
  out.hi += std::fabs(out.hi) * kSlack;
  if (out.lo < -kFloatMax) out.lo = -kInf;
  if (out.hi > kFloatMax) out.hi = kInf;
  return out;
}

Range product(const FloatRange& a, const FloatRange& b) {
  const auto has_zero = [](const FloatRange& r) { return r.lo <= 0 && r.hi >= 0; };
  if ((has_zero(a) && !b.is_finite()) || (has_zero(b) && !a.is_finite())) return {};
  return around({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
}

Range sum(const FloatRange& a, const FloatRange& b) {
  if ((a.lo == -kInf && b.hi == kInf) || (a.hi == kInf && b.lo == -kInf)) return {};
  return around({a.lo + b.lo, a.hi + b.hi});
}

Range quotient(const FloatRange& a, const FloatRange& b) {
  if ((b.lo <= 0 && b.hi >= 0) || (!a.is_finite() && !b.is_finite())) return {};
  return around({a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi});
}

class Ranges {
 public:
  Range of(const UOp& u) {
    if (const Range* known = known_.find(u)) return *known;
    if (++looked_at_ > kNodesMax) return {};
    const Range range = compute(u);
    known_.insert(u, range);
    return range;
  }

 private:
  Range cast_of(const UOp& from) {
    if (from.dtype().is_float()) return of(from);
    const Interval all = bounds(from);
    return around({static_cast<double>(all.lo), static_cast<double>(all.hi)});
  }

  // Bits of positive floats are in the floats' order.
  static Range of_bits(const UOp& from) {
    constexpr int64_t kInfinityBits = 0x7F800000;
    if (!from.dtype().is_int() || from.dtype().bits() != 32) return {};
    const Interval all = bounds(from);
    if (all.lo < 0 || all.hi > kInfinityBits) return {};
    const auto value = [](int64_t bits) {
      return double_of(kFloat32, static_cast<uint64_t>(bits));
    };
    return around({value(all.lo), value(all.hi)});
  }

  Range compute(const UOp& u) {
    if (u.dtype().element() != kFloat32) return {};
    if (u.is_const()) {
      const double value = double_of(u.dtype(), u.const_bits());
      return around({value});
    }
    if (u.op() == Op::Cast) return cast_of(u.src(0));
    if (u.op() == Op::Bitcast) return of_bits(u.src(0));
    Range src[3];
    const bool chooses = u.op() == Op::Where;
    if (!has(u.op(), kElementwise) || u.src().size() > 3) return {};
    for (size_t i = chooses ? 1 : 0; i < u.src().size(); ++i) {
      src[i] = of(u.src(i));
      if (!src[i]) return {};
    }
    return result(u.op(), src);
  }

  static Range result(Op op, const Range* src) {
    const Range &a = src[0], &b = src[1], &c = src[2];
    switch (op) {
      case Op::Neg:
        return around({-a->lo, -a->hi});
      case Op::Round:
      case Op::Floor:
      case Op::Ceil:
      case Op::Trunc:
        return around({a->lo - 1, a->hi + 1});
      case Op::Exp:
        return around({std::exp(a->lo), std::exp(a->hi)});
      case Op::Tanh:
      case Op::Erf:
        return around({-1.0, 1.0});
      case Op::Add:
        return sum(*a, *b);
      case Op::Mul:
        return product(*a, *b);
      case Op::Div:
        return quotient(*a, *b);
      case Op::Max:
        return around({std::max(a->lo, b->lo), std::max(a->hi, b->hi)});
      case Op::Min:
        return around({std::min(a->lo, b->lo), std::min(a->hi, b->hi)});
      case Op::Where:
        return around({b->lo, b->hi, c->lo, c->hi});
      case Op::Fma: {
        const Range both = product(*a, *b);
        return both ? sum(*both, *c) : Range();
      }
      default:
        return {};
    }
  }

  NodeMap<Range> known_;
  size_t looked_at_ = 0;
};

bool is_whole(const UOp& u, int depth) {
  if (u.is_const()) {
    const double value = double_of(u.dtype(), u.const_bits());
    return value == std::floor(value);
  }
  const auto all = [&] {
    return depth > 0 &&
           std::ranges::all_of(u.src(), [&](const UOp& s) { return is_whole(s, depth - 1); });
  };
  switch (u.op()) {
    case Op::Round:
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
      return true;
    case Op::Cast:
      return !u.src(0).dtype().is_float();
    // Sums of whole numbers that are rounded are multiples of a greater step.
    case Op::Add:
    case Op::Max:
    case Op::Min:
    case Op::Neg:
      return all();
    default:
      return false;
  }
}

}  // namespace

bool FloatRange::is_finite() const {
  return std::isfinite(lo) && std::isfinite(hi);
}

std::optional<FloatRange> range_of_float(const UOp& u) {
  return Ranges().of(u);
}

bool is_whole(const UOp& u) {
  return is_whole(u, kWholeDepth);
}

}  // namespace tiny

#include "ir/bounds.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "ir/build.h"
#include "ir/index_memo.h"

namespace tiny {

namespace {

constexpr int64_t kMin = INT64_MIN;
constexpr int64_t kMax = INT64_MAX;
constexpr double kWholeMax = int64_t{1} << 53;  // up to which float64 has every whole number
__extension__ typedef __int128 Wide;            // wide enough for any sum or product of two ends

int64_t clamp(Wide v) {
  return v < kMin ? kMin : v > kMax ? kMax : static_cast<int64_t>(v);
}
bool unbounded(int64_t v) {
  return v == kMin || v == kMax;
}
// Sums and negations of intervals: only a lower end of kMin and an upper end of kMax are unbounded.
Interval sum(const Interval& a, const Interval& b) {
  return {a.lo == kMin || b.lo == kMin ? kMin : clamp(static_cast<Wide>(a.lo) + b.lo),
          a.hi == kMax || b.hi == kMax ? kMax : clamp(static_cast<Wide>(a.hi) + b.hi)};
}
Interval negated(const Interval& a) {
  return {a.hi == kMax ? kMin : clamp(-static_cast<Wide>(a.hi)),
          a.lo == kMin ? kMax : clamp(-static_cast<Wide>(a.lo))};
}
int64_t mul_sat(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (unbounded(a) || unbounded(b)) return (a < 0) == (b < 0) ? kMax : kMin;
  return clamp(static_cast<Wide>(a) * b);
}
// a // b for b != 0, where an unbounded a stays so and an unbounded b is beyond any a.
int64_t div_sat(int64_t a, int64_t b) {
  if (unbounded(a)) return (a < 0) == (b < 0) ? kMax : kMin;
  if (unbounded(b)) return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
  return floor_div(a, b);
}
int64_t magnitude(const Interval& a) {
  return std::max(a.lo == kMin ? kMax : std::max(a.lo, -a.lo),
                  a.hi == kMin ? kMax : std::max(a.hi, -a.hi));
}

Interval all_of_dtype(DType t) {
  if (t.is_bool()) return {0, 1};
  if (!t.is_int() || t.bits() == 64) return {t.is_unsigned() ? 0 : kMin, kMax};
  return {int_of(t, lowest_bits(t)), int_of(t, highest_bits(t))};
}

// What is left of an exact result after wrapping.
Interval wrapped(DType t, const Interval& exact) {
  const Interval all = all_of_dtype(t);
  if (t.is_signed() && t.bits() == 64) return exact;
  if (t.bits() == 64 && exact.hi == kMax) return all;
  return all.contains(exact) ? exact : all;
}

Interval hull(const Interval& a, const Interval& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

// An interval that is one of the ends of int64, widened so that only unbounded ends look unbounded.
Interval with_finite_inside(Interval a) {
  if (a.lo == kMax) --a.lo;
  if (a.hi == kMin) ++a.hi;
  return a;
}

Interval corners(const Interval& left, const Interval& right, int64_t (*f)(int64_t, int64_t)) {
  const Interval a = with_finite_inside(left);
  const Interval b = with_finite_inside(right);
  const auto [lo, hi] = std::minmax({f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)});
  return {lo, hi};
}

Interval symmetric(int64_t m) {
  return m == kMax ? Interval{} : Interval{-m, m};
}

Interval floor_div_bounds(const Interval& a, const Interval& b) {
  if (b.lo > 0 || b.hi < 0) return corners(a, b, div_sat);
  return symmetric(magnitude(a));  // x // 0 is 0
}

Interval floor_mod_bounds(const Interval& a, const Interval& b) {
  if (b.lo > 0) {
    if (a.lo >= 0 && a.hi < b.lo) return a;
    if (b.is_single() && !unbounded(a.lo) && !unbounded(a.hi) &&
        floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo))
      return {floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo)};
    const int64_t below = b.hi == kMax ? kMax : b.hi - 1;
    return {0, a.lo >= 0 ? std::min(a.hi, below) : below};
  }
  const int64_t lo = b.lo < 0 ? (b.lo == kMin ? kMin : b.lo + 1) : 0;
  const int64_t hi = b.hi > 0 ? (b.hi == kMax ? kMax : b.hi - 1) : 0;
  return {lo, hi};
}

Interval trunc_div_bounds(const Interval& a, const Interval& b) {
  if (a.lo >= 0 && b.lo > 0) return floor_div_bounds(a, b);
  if (a.hi <= 0 && b.lo > 0) return negated(floor_div_bounds(negated(a), b));
  return symmetric(magnitude(a));
}

Interval trunc_mod_bounds(const Interval& a, const Interval& b) {
  const int64_t m = magnitude(b);
  const int64_t most = m == kMax ? kMax : std::max<int64_t>(m - 1, 0);
  // x % 0 is 0, which both ends include.
  return {a.lo < 0 ? std::max(a.lo, symmetric(most).lo) : 0, a.hi > 0 ? std::min(a.hi, most) : 0};
}

Interval shift_bounds(Op op, DType t, const Interval& a, const Interval& s) {
  if (s.lo < 0 || s.hi >= t.bits() || s.hi >= 63) return all_of_dtype(t);
  const Interval power{int64_t{1} << s.lo, int64_t{1} << s.hi};
  if (op == Op::Shl) return wrapped(t, corners(a, power, mul_sat));
  // A uint64 above INT64_MAX is unbounded here, not negative: dividing keeps that right.
  return corners(a, power, div_sat);
}

// The least 2^k - 1 that is not below v >= 0.
int64_t mask_above(int64_t v) {
  return v == 0 ? 0
                : static_cast<int64_t>(~uint64_t{0} >> std::countl_zero(static_cast<uint64_t>(v)));
}

Interval bitwise_bounds(Op op, DType t, const Interval& a, const Interval& b) {
  const bool both = a.lo >= 0 && b.lo >= 0;
  if (op == Op::And) {
    if (both) return {t.is_bool() ? std::min(a.lo, b.lo) : 0, std::min(a.hi, b.hi)};
    if (a.lo >= 0) return {0, a.hi};
    if (b.lo >= 0) return {0, b.hi};
    return all_of_dtype(t);
  }
  if (!both) return all_of_dtype(t);
  const int64_t most = mask_above(std::max(a.hi, b.hi));
  if (op == Op::Or) return {std::max(a.lo, b.lo), most};
  if (a.is_single() && b.is_single() && !unbounded(a.hi) && !unbounded(b.hi))
    return {a.lo ^ b.lo, a.lo ^ b.lo};
  return {0, most};
}

Interval truth(bool certain, bool impossible) {
  return certain ? Interval{1, 1} : impossible ? Interval{0, 0} : Interval{0, 1};
}

Interval compare_bounds(Op op, DType operand, const Interval& a, const Interval& b) {
  if (operand.is_float()) return {0, 1};
  // An unbounded end is no value that could be compared.
  const bool a_single = a.is_single() && !unbounded(a.lo);
  const bool same = a_single && a == b;
  const bool apart = a.hi < b.lo || b.hi < a.lo;
  switch (op) {
    case Op::Less:
      return truth(a.hi < b.lo, a.lo >= b.hi && a.lo != kMax && b.hi != kMin && b.hi != kMax);
    case Op::LessEqual:
      return truth(a.hi <= b.lo && a.hi != kMax && b.lo != kMin, a.lo > b.hi);
    case Op::Equal:
      return truth(same, apart);
    default:
      return truth(apart, same);
  }
}

Interval abs_bounds(const Interval& a) {
  if (a.lo >= 0) return a;
  if (a.hi <= 0) return negated(a);
  return {0, std::max(negated(a).hi, a.hi)};
}

Interval not_bounds(DType t, const Interval& a) {
  if (t.is_bool()) return {1 - a.hi, 1 - a.lo};
  if (t.is_signed()) return sum(negated(a), {-1, -1});
  if (t.bits() == 64) return all_of_dtype(t);
  const int64_t most = all_of_dtype(t).hi;
  return {most - a.hi, most - a.lo};
}

// Rounded to a float that has every whole number from -2^digits to 2^digits, which it does not
// pass.
Interval rounded(DType t, const Interval& exact) {
  const int64_t most = int64_t{1} << t.digits();
  return {exact.lo < -most ? kMin : std::min(exact.lo, most),
          exact.hi > most ? kMax : std::max(exact.hi, -most)};
}

Interval float_bounds(Op op, DType t, std::span<const Interval> at) {
  switch (op) {
    case Op::Neg:
      return negated(at[0]);
    case Op::Abs:
      return abs_bounds(at[0]);
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round:
      return at[0];
    case Op::Cast:
      return rounded(t, at[0]);
    case Op::Add:
      return rounded(t, sum(at[0], at[1]));
    case Op::Sub:
      return rounded(t, sum(at[0], negated(at[1])));
    case Op::Mul:
      return rounded(t, corners(at[0], at[1], mul_sat));
    case Op::Max:
      return {std::max(at[0].lo, at[1].lo), std::max(at[0].hi, at[1].hi)};
    case Op::Min:
      return {std::min(at[0].lo, at[1].lo), std::min(at[0].hi, at[1].hi)};
    case Op::Where:
      return hull(at[1], at[2]);
    default:
      return {};
  }
}

Interval cast_bounds(DType to, DType from, const Interval& a) {
  if (from.is_float()) {
    if (to.is_bool()) return {0, 1};
    // Beyond the ends it is the nearest end; of NaN 0.
    const Interval all = all_of_dtype(to);
    return {std::clamp<int64_t>(std::min<int64_t>(a.lo, 0), all.lo, all.hi),
            std::clamp<int64_t>(std::max<int64_t>(a.hi, 0), all.lo, all.hi)};
  }
  if (to.is_bool()) return truth(!a.contains(0), a == Interval{0, 0});
  // A uint64 above INT64_MAX becomes negative.
  if (to.is_signed() && to.bits() == 64 && from.is_unsigned() && from.bits() == 64 && a.hi == kMax)
    return all_of_dtype(to);
  return wrapped(to, a);
}

constexpr int kNestedMax = 8;  // connectives of a condition, one inside the other

// What is left of `all`, the interval of `u`, where `condition` is `truth`.
Interval narrowed(const NodeMap<Interval>& known, const UOp& u, const Interval& all,
                  const UOp& condition, bool truth, int nested = kNestedMax) {
  const Op op = condition.op();
  if (nested == 0) return all;
  if (op == Op::Not) return narrowed(known, u, all, condition.src(0), !truth, nested - 1);
  if (op == (truth ? Op::And : Op::Or)) {
    const Interval first = narrowed(known, u, all, condition.src(0), truth, nested - 1);
    return narrowed(known, u, first, condition.src(1), truth, nested - 1);
  }
  if (op != Op::Less && op != Op::LessEqual) return all;
  const DType t = u.dtype();
  const bool below = condition.src(0) == u;
  if (below == (condition.src(1) == u) || !t.is_int() || (t.is_unsigned() && t.bits() == 64))
    return all;
  const Interval& other = *known.find(condition.src(below ? 1 : 0));
  const int64_t gap = (op == Op::Less) == truth ? 1 : 0;
  Interval left = all;
  if (below == truth)
    left.hi = std::min(all.hi, sum(other, {-gap, -gap}).hi);
  else
    left.lo = std::max(all.lo, sum(other, {gap, gap}).lo);
  return left.lo <= left.hi ? left : all;  // where nothing is left no value is taken
}

}  // namespace

std::string to_string(const Interval& interval) {
  return cat("[", interval.lo == kMin ? "-inf" : std::to_string(interval.lo), ", ",
             interval.hi == kMax ? "inf" : std::to_string(interval.hi), "]");
}

Interval bounds_of_result(Op op, DType t, DType first, std::span<const Interval> at) {
  switch (op) {
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal:
    case Op::NotEqual:
      return compare_bounds(op, first, at[0], at[1]);
    default:
      break;
  }
  if (t.is_float()) return float_bounds(op, t, at);
  if (!t.is_int() && !t.is_bool()) return {};
  switch (op) {
    case Op::Neg:
      return wrapped(t, negated(at[0]));
    case Op::Abs:
      return wrapped(t, abs_bounds(at[0]));
    case Op::Not:
      return not_bounds(t, at[0]);
    case Op::Cast:
      return cast_bounds(t, first, at[0]);
    case Op::Add:
      return wrapped(t, sum(at[0], at[1]));
    case Op::Sub:
      return wrapped(t, sum(at[0], negated(at[1])));
    case Op::Mul:
      return wrapped(t, corners(at[0], at[1], mul_sat));
    case Op::FloorDiv:
      return wrapped(t, floor_div_bounds(at[0], at[1]));
    case Op::FloorMod:
      return wrapped(t, floor_mod_bounds(at[0], at[1]));
    case Op::TruncDiv:
      return wrapped(t, trunc_div_bounds(at[0], at[1]));
    case Op::TruncMod:
      return wrapped(t, trunc_mod_bounds(at[0], at[1]));
    case Op::Max:
      return {std::max(at[0].lo, at[1].lo), std::max(at[0].hi, at[1].hi)};
    case Op::Min:
      return {std::min(at[0].lo, at[1].lo), std::min(at[0].hi, at[1].hi)};
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return bitwise_bounds(op, t, at[0], at[1]);
    case Op::Shl:
    case Op::Shr:
      return shift_bounds(op, t, at[0], at[1]);
    case Op::Where:
      return at[0].is_single() ? at[at[0].lo ? 1 : 2] : hull(at[1], at[2]);
    default:
      return all_of_dtype(t);
  }
}

// The sources of `u` are known.
Interval BoundsCache::compute(const UOp& u) const {
  const DType t = u.dtype();
  const auto at = [&](size_t i) { return *known_.find(u.src(i)); };
  switch (u.op()) {
    case Op::Const: {
      if (t.is_float()) {
        const double value = double_of(t, u.const_bits());
        if (!(std::abs(value) <= kWholeMax)) return {};
        return {static_cast<int64_t>(std::floor(value)), static_cast<int64_t>(std::ceil(value))};
      }
      const int64_t v = u.const_int();
      if (t.scalar == ScalarType::UInt64 && v < 0) return {kMax, kMax};
      return {v, v};
    }
    case Op::Variable:
      return {u.variable_arg().min, u.variable_arg().max};
    case Op::Range: {
      const int64_t size = at(0).hi;
      return {0, size == kMax ? kMax : std::max<int64_t>(size - 1, 0)};
    }
    case Op::Place:
      return at(0);
    default:
      break;
  }
  std::array<Interval, 3> of;
  for (size_t i = 0; i < std::min(u.src().size(), of.size()); ++i) of[i] = at(i);
  if (u.op() == Op::Where)
    for (const size_t i : {size_t{1}, size_t{2}})
      of[i] = narrowed(known_, u.src(i), of[i], u.src(0), i == 1);
  return bounds_of_result(u.op(), t, u.src().empty() ? t : u.src(0).dtype(), of);
}

Interval BoundsCache::of(const UOp& u) {
  if (u.src().empty()) return compute(u);
  if (const Interval* known = known_.find(u)) return *known;
  std::vector<std::pair<UOp, size_t>> stack;
  stack.emplace_back(u, 0);
  while (true) {
    auto& [node, next] = stack.back();
    if (next < node.src().size()) {
      const UOp& s = node.src(next++);
      if (!known_.contains(s)) stack.emplace_back(s, 0);
      continue;
    }
    const Interval found = compute(node);
    known_.insert(node, found);
    if (stack.size() == 1) return found;
    stack.pop_back();
  }
}

Interval BoundsCache::of(const Affine& a) {
  Interval total{a.constant, a.constant};
  for (const AffineTerm& t : a.terms)
    total = sum(total, corners(of(t.atom), {t.coefficient, t.coefficient}, mul_sat));
  return total;
}

Interval bounds(const UOp& u) {
  if (u.op() == Op::Range && u.src(0).is_const())
    return {0, std::max<int64_t>(u.src(0).const_int() - 1, 0)};
  if (IndexMemo* memo = u.graph().index_memo()) return memo->bounds.of(u);
  BoundsCache cache;
  return cache.of(u);
}

UOp slack_of(const UOp& comparison) {
  const UOp slack = sub(comparison.src(1), comparison.src(0));
  return comparison.op() == Op::Less ? add(slack, -1) : slack;
}

namespace {

// What is not negative where `e` is not, without one of its quotients: rest + x // d is not
// where rest * d + x is not, rest - x // d where (rest + 1) * d - x - 1 is not.
std::optional<Affine> without_quotient(const Affine& e, BoundsCache& bounds) {
  const auto found = std::ranges::find_if(e.terms, [&](const AffineTerm& t) {
    return t.atom.op() == Op::FloorDiv && std::abs(t.coefficient) == 1 &&
           bounds.of(t.atom.src(1)).lo > 0;
  });
  if (found == e.terms.end()) return std::nullopt;
  const std::optional<Affine> x = affine(found->atom.src(0)), d = affine(found->atom.src(1));
  Affine rest = e;
  rest.terms.erase(rest.terms.begin() + (found - e.terms.begin()));
  if (found->coefficient < 0) rest.constant += 1;
  std::optional<Affine> sum = x && d ? multiplied(rest, *d) : std::nullopt;
  if (sum) sum = add_scaled(*sum, *x, found->coefficient);
  if (sum && found->coefficient < 0) sum->constant -= 1;
  return sum;
}

}  // namespace

UOp without_quotients(const UOp& e, BoundsCache& bounds) {
  std::optional<Affine> sum = affine(e);
  if (!sum) return e;
  bool is_changed = false;
  while (std::optional<Affine> next = without_quotient(*sum, bounds)) {
    sum = std::move(next);
    is_changed = true;
  }
  return is_changed ? to_uop(e.graph(), *sum) : e;
}

}  // namespace tiny

#include "rules/decompositions.h"

#include <algorithm>
#include <cmath>

#include "ir/build.h"
#include "rules/constant_power.h"
#include "rules/constant_quotient.h"
#include "rules/float_range.h"
#include "rules/narrow.h"
#include "rules/transcendental.h"

namespace tiny {

namespace {

using namespace pattern_words;

constexpr Pattern exp(const Pattern& p) {
  return unary(Op::Exp, p);
}

bool is_narrow(const Match& m) {
  return m.root().dtype().is_computed_wider();
}

UOp steps_of_exp(const Match& m) {
  return is_narrow(m) ? UOp() : exp_in_steps(m[Wildcard::f]);
}
UOp exp_by_scaling(const Match& m) {
  return is_narrow(m) ? UOp() : exp_with_scale(m[Wildcard::f]);
}
// The exponential of a sum or difference with a constant.
UOp exp_of_sum(const Match& m) {
  if (is_narrow(m)) return {};
  const UOp& term = m[Wildcard::c0];
  return exp_before_sum(m[Wildcard::f], double_of(term.dtype(), term.const_bits()));
}
// A float between the ends of a type of bytes is one integer in it and in int32, NaN as well.
bool fits(const Match& m, DType bytes) {
  if (bytes != kUInt8 && bytes != kInt8) return false;
  const UOp &low = m[Wildcard::c0], &high = m[Wildcard::c1];
  if (low.dtype() != kFloat32) return false;
  const bool has_sign = bytes == kInt8;
  return double_of(low.dtype(), low.const_bits()) >= (has_sign ? INT8_MIN : 0) &&
         double_of(high.dtype(), high.const_bits()) <= (has_sign ? INT8_MAX : UINT8_MAX);
}
UOp bytes_of_clamped(const Match& m) {
  const UOp& root = m.root();
  return fits(m, root.dtype()) ? cast(cast(UOp(root.src(0)), kInt32), root.dtype()) : UOp();
}
UOp integer_of_clamped(const Match& m) {
  const UOp& bytes = m.root().src(0);
  const UOp& integer = bytes.src(0);
  const bool is_same = m.root().dtype() == kInt32 && integer.dtype() == kInt32;
  return is_same && fits(m, bytes.dtype()) ? UOp(integer) : UOp();
}
UOp sum_with_exp(const Match& m) {
  const UOp e = exp_of_sum(m);
  return e ? e + m[Wildcard::c0] : UOp();
}
UOp difference_with_exp(const Match& m) {
  const UOp e = exp_of_sum(m);
  return e ? neg(e) + m[Wildcard::c0] : UOp();
}
UOp steps_of_log(const Match& m) {
  return is_narrow(m) ? UOp() : log_in_steps(m[Wildcard::f]);
}
UOp steps_of_tanh(const Match& m) {
  return is_narrow(m) ? UOp() : tanh_in_steps(m[Wildcard::f]);
}
UOp steps_of_erf(const Match& m) {
  return is_narrow(m) ? UOp() : erf_in_steps(m[Wildcard::f]);
}
UOp steps_of_sin(const Match& m) {
  return is_narrow(m) ? UOp() : sin_in_steps(m[Wildcard::f]);
}
UOp steps_of_cos(const Match& m) {
  return is_narrow(m) ? UOp() : cos_in_steps(m[Wildcard::f]);
}
UOp steps_of_constant_power(const Match& m) {
  if (is_narrow(m)) return {};
  const UOp& exponent = m[Wildcard::c0];
  return constant_power_in_kernel(m[Wildcard::f],
                                  double_of(exponent.dtype(), exponent.const_bits()));
}
UOp rounded(const Match& m, bool is_finite) {
  const UOp& divisor = m[Wildcard::c0];
  const UOp quotient = quotient_before_rounding(
      m[Wildcard::f], double_of(divisor.dtype(), divisor.const_bits()), is_finite);
  return quotient ? elementwise(Op::Round, {quotient}) : UOp();
}
UOp rounded_quotient(const Match& m) {
  return rounded(m, false);
}
UOp rounded_finite_quotient(const Match& m) {
  const auto range = range_of_float(m.root().src(0));
  return range && range->is_finite() ? rounded(m, true) : UOp();
}
// A clamped float that is whole but where it is NaN, as the number that the integer becomes which
// it is cast to; `offset` more.
UOp float_of_whole(const Match& m, double offset) {
  constexpr double kExact = 0x1p22;  // whole floats, and sums of two
  const auto bound = [&](Wildcard w) { return double_of(kFloat32, m[w].const_bits()); };
  UOp integer = m.root().src(0);
  if (integer.op() == Op::Add) integer = integer.src(integer.src(0).is_const() ? 1 : 0);
  const UOp f = integer.src(0);
  if (m.root().dtype() != kFloat32 || integer.dtype() != kInt32 || f.dtype() != kFloat32 ||
      !(bound(Wildcard::c0) >= -kExact) || !(bound(Wildcard::c1) <= kExact) ||
      !(std::fabs(offset) <= kExact) || !is_whole(f))
    return {};
  const UOp number =
      range_of_float(f) ? f
                        : where(elementwise(Op::Equal, {f, f}), f, m.graph().constant(kFloat32, 0));
  return number + m.graph().constant(kFloat32, offset);  // of zeros the positive one
}
UOp number_of_clamped(const Match& m) {
  return float_of_whole(m, 0);
}
UOp number_of_moved(const Match& m) {
  const UOp& offset = m[Wildcard::c2];
  return offset.dtype() == kInt32 ? float_of_whole(m, static_cast<double>(offset.const_int()))
                                  : UOp();
}
UOp steps_of_pow(const Match& m) {
  return is_narrow(m) ? UOp() : pow_in_steps(m[Wildcard::f], m[Wildcard::h]);
}

// Domain: every dtype that the op takes; the code looks which.
// Progress: narrow operands become wide, transcendental ops and operations on bools become others.
// clang-format off
constexpr WrittenRule kBools[] = {
    rule(b + d,                             b | d),
    rule(b * d,                             b & d),
    rule(max(b, d),                         b | d),
    rule(min(b, d),                         b & d),
    rule(-b,                                b),
    rule(abs(b),                            b),
    rule(b < d,                             (!b) & d),
    rule(b <= d,                            (!b) | d),
    rule(b == d,                            !(b ^ d)),
    rule(b != d,                            b ^ d),
    rule(where(b, d, b),                    b & d),
};

constexpr WrittenRule kSteps[] = {
    rule(exp(f),                            steps_of_exp),
    rule(unary(Op::Log, f),                 steps_of_log),
    rule(unary(Op::Tanh, f),                steps_of_tanh),
    rule(unary(Op::Erf, f),                 steps_of_erf),
    rule(unary(Op::Sin, f),                 steps_of_sin),
    rule(unary(Op::Cos, f),                 steps_of_cos),
    rule(pow(f, c0),                        steps_of_constant_power),
    rule(pow(f, h),                         steps_of_pow),
    rule(unary(Op::Round, div(f, c0)),      rounded_quotient),
};

// Before the others, which leave no exponential.
constexpr WrittenRule kSums[] = {
    rule(exp(f) + c0,                       sum_with_exp),
    rule(-exp(f) + c0,                      difference_with_exp),
};

// Before the others, which compute bytes wide.
constexpr Pattern clamped = min(max(f, c0), c1);
constexpr Pattern clamped_integer = unary(Op::Cast, clamped);
constexpr WrittenRule kClamped[] = {
    rule(unary(Op::Cast, clamped),          bytes_of_clamped),
    rule(unary(Op::Cast, unary(Op::Cast, clamped_integer)), integer_of_clamped),
};

// Before all others, which take apart what says between which numbers a float lies.
constexpr WrittenRule kWhole[] = {
    rule(unary(Op::Cast, clamped_integer),      number_of_clamped),
    rule(unary(Op::Cast, clamped_integer + c2), number_of_moved),
    rule(unary(Op::Round, div(f, c0)),          rounded_finite_quotient),
};

// Before the others, for targets that have Scale.
constexpr WrittenRule kScalingSteps[] = {
    rule(exp(f),                            exp_by_scaling),
};

constexpr WrittenRule kNarrow[] = {
    rule(unary(Op::Cast, x),                cast_through_wide),
    rule(!x,                                computed_wide),
    rule(unary(Op::Sqrt, x),                computed_wide),
    rule(unary(Op::Floor, x),               computed_wide),
    rule(unary(Op::Ceil, x),                computed_wide),
    rule(unary(Op::Trunc, x),               computed_wide),
    rule(unary(Op::Round, x),               computed_wide),
    rule(exp(x),                            computed_wide),
    rule(unary(Op::Log, x),                 computed_wide),
    rule(unary(Op::Sin, x),                 computed_wide),
    rule(unary(Op::Cos, x),                 computed_wide),
    rule(unary(Op::Tanh, x),                computed_wide),
    rule(unary(Op::Erf, x),                 computed_wide),
    rule(x + y,                             computed_wide),
    rule(x * y,                             computed_wide),
    rule(div(x, y),                         computed_wide),
    rule(x / y,                             computed_wide),
    rule(x % y,                             computed_wide),
    rule(trunc_div(x, y),                   computed_wide),
    rule(trunc_mod(x, y),                   computed_wide),
    rule(pow(x, y),                         computed_wide),
    rule(max(x, y),                         extremum_of_narrow),
    rule(min(x, y),                         extremum_of_narrow),
    rule(x & y,                             computed_wide),
    rule(x | y,                             computed_wide),
    rule(x ^ y,                             computed_wide),
    rule(x << y,                            computed_wide),
    rule(x >> y,                            computed_wide),
    rule(x < y,                             computed_wide),
    rule(x <= y,                            computed_wide),
    rule(x == y,                            computed_wide),
    rule(x != y,                            computed_wide),
    rule(Pattern::node(Op::Scale, x, y),    computed_wide),
    rule(Pattern::node(Op::Fma, x, y, z),   computed_wide),
    rule(Pattern::node(Op::Reduce),         reduced_wide),
    rule(Pattern::node(Op::Running),        reduced_wide),
};

// After the others, which see through the signs of their operands.
constexpr WrittenRule kNarrowBits[] = {
    rule(-x,                                sign_of_narrow),
    rule(abs(x),                            sign_of_narrow),
    rule(where(b, x, y),                    choice_of_narrow),
    rule(!x,                                computed_wide),
    rule(x & y,                             computed_wide),
    rule(x ^ y,                             computed_wide),
    rule(unary(Op::Cast, x),                cast_through_wide),
};
// clang-format on

const RuleSet& arithmetic_rules() {
  static const RuleSet set{rule_table<kBools>("bools"), rule_table<kNarrow>("narrow types"),
                           rule_table<kSteps>("transcendentals")};
  return set;
}
const RuleSet& scaling_rules() {
  static const RuleSet set{rule_table<kBools>("bools"), rule_table<kNarrow>("narrow types"),
                           rule_table<kScalingSteps>("exponentials"),
                           rule_table<kSteps>("transcendentals")};
  return set;
}
const RuleSet& whole_rules() {
  static const RuleSet set{rule_table<kClamped>("bytes that are clamped"),
                           rule_table<kWhole>("whole floats")};
  return set;
}
const RuleSet& first_rules() {
  static const RuleSet set{rule_table<kSums>("sums with exponentials")};
  return set;
}
const RuleSet& bit_rules() {
  static const RuleSet set{rule_table<kNarrowBits>("bits of narrow types")};
  return set;
}

// Whether no rule is about a node, nor folding: by its op and dtypes alone, so that most kernels
// are looked at once instead of being made anew.
bool stays(const UOp& u) {
  if (u.dtype().is_float8()) return false;
  if (!has(u.op(), kElementwise) && u.op() != Op::Reduce && u.op() != Op::Running) return true;
  if (has(u.op(), kTranscendental) || u.src().empty()) return false;
  if (u.op() == Op::Round && u.src(0).op() == Op::Div) return false;
  const auto is_wide = [](const UOp& s) {
    return !s.dtype().is_bool() && !s.dtype().is_computed_wider();
  };
  // Bools come from comparisons and connectives, and choose.
  const bool connects = u.op() == Op::And || u.op() == Op::Or || u.op() == Op::Xor;
  const size_t chooser = u.op() == Op::Where ? 1 : 0;
  const bool is_known = connects && u.dtype().is_bool()
                            ? true
                            : std::ranges::all_of(u.src().subspan(chooser), is_wide) &&
                                  !(u.op() == Op::Cast && !is_wide(u));
  return is_known && !std::ranges::all_of(u.src(), [](const UOp& s) { return s.is_const(); });
}

}  // namespace

RuleTable bool_rules() {
  return rule_table<kBools>("bools");
}

std::vector<UOp> decompose(std::span<const UOp> roots, bool scales) {
  const std::vector<UOp> order = topological(roots);
  if (std::ranges::all_of(order, stays)) return {roots.begin(), roots.end()};
  Rewriter whole(whole_rules());
  Rewriter first(first_rules());
  Rewriter arithmetic(scales ? scaling_rules() : arithmetic_rules());
  Rewriter bits(bit_rules());
  std::vector<UOp> done;
  for (const UOp& root : roots) done.push_back(bits(arithmetic(first(whole(root)))));
  const bool has_float8 =
      std::ranges::any_of(order, [](const UOp& u) { return u.dtype().is_float8(); });
  return has_float8 ? as_float8_bits(done) : done;
}

UOp decompose(const UOp& root, bool scales) {
  return decompose({&root, 1}, scales)[0];
}

}  // namespace tiny

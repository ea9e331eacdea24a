#include "rules/integer_quotient.h"

#include <algorithm>
#include <bit>

#include "ir/build.h"
#include "ir/rewrite.h"

namespace tiny {

namespace {

using namespace pattern_words;

bool is_division(Op op) {
  return op == Op::FloorDiv || op == Op::FloorMod || op == Op::TruncDiv || op == Op::TruncMod;
}

UOp remainder(const UOp& a, const UOp& quotient, const UOp& b) {
  return sub(a, mul(quotient, b));
}

// a / 2^bits: what is below zero is first lifted, where the quotient is cut towards zero.
UOp divided_by_power(const UOp& a, int bits, bool floors) {
  const UOp sign = elementwise(Op::Shr, {a, a.graph().constant(kInt32, 31)});
  const UOp lift = elementwise(Op::And, {sign, a.graph().constant(kInt32, (1 << bits) - 1)});
  return elementwise(Op::Shr, {floors ? a : add(a, lift), a.graph().constant(kInt32, bits)});
}

UOp divided_in_float64(const UOp& a, const UOp& b, bool floors) {
  const UOp quotient = div(cast(a, kFloat64), cast(b, kFloat64));
  const UOp whole = cast(elementwise(floors ? Op::Floor : Op::Trunc, {quotient}), kInt32);
  if (b.is_const()) return whole;
  // A divisor of 0 gives 0, and min / -1 wraps (docs/semantics.md): floats have neither.
  return where(equal(b, 0), a.graph().constant(kInt32, 0), where(equal(b, -1), neg(a), whole));
}

UOp in_steps(const Match& m) {
  const Op op = m.root().op();
  const UOp &a = m[Wildcard::i], &b = m[Wildcard::j];
  if (m.root().dtype() != kInt32) return {};
  const bool floors = op == Op::FloorDiv || op == Op::FloorMod;
  const bool is_quotient = op == Op::FloorDiv || op == Op::TruncDiv;
  if (!b.is_const()) {
    const UOp quotient = divided_in_float64(a, b, floors);
    // A remainder of 0 is 0, whatever the quotient is called.
    return is_quotient
               ? quotient
               : where(equal(b, 0), a.graph().constant(kInt32, 0), remainder(a, quotient, b));
  }
  const int64_t divisor = b.const_int();
  if (divisor == 0) return a.graph().constant(kInt32, 0);
  if (divisor == -1) return is_quotient ? neg(a) : a.graph().constant(kInt32, 0);
  const bool is_power = divisor > 0 && std::has_single_bit(static_cast<uint64_t>(divisor));
  if (is_power && floors && !is_quotient)
    return elementwise(Op::And, {a, a.graph().constant(kInt32, static_cast<double>(divisor - 1))});
  const UOp quotient =
      is_power ? divided_by_power(a, std::countr_zero(static_cast<uint64_t>(divisor)), floors)
               : divided_in_float64(a, b, floors);
  return is_quotient ? quotient : remainder(a, quotient, b);
}

// Domain: int32.  Progress: the division goes.
constexpr WrittenRule kQuotients[] = {
    rule(i / j, in_steps),
    rule(i % j, in_steps),
    rule(trunc_div(i, j), in_steps),
    rule(trunc_mod(i, j), in_steps),
};

}  // namespace

std::vector<UOp> divide_in_floats(std::span<const UOp> roots) {
  const auto divides = [](const UOp& u) { return is_division(u.op()) && u.dtype() == kInt32; };
  if (std::ranges::none_of(topological(roots), divides)) return {roots.begin(), roots.end()};
  static const RuleSet set{rule_table<kQuotients>("integer quotients")};
  Rewriter rewriter(set);
  std::vector<UOp> done;
  for (const UOp& root : roots) done.push_back(rewriter(root));
  return done;
}

}  // namespace tiny

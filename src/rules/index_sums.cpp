#include <algorithm>
#include <bit>

#include "ir/build.h"
#include "rules/index_code.h"

namespace tiny {

namespace {

// atom == src(0) op c for a constant c > 1.
struct Quotient {
  UOp of;
  int64_t by = 0;
};
std::optional<Quotient> quotient(const UOp& atom, Op op) {
  if (atom.op() != op || !atom.src(1).is_const() || atom.src(1).const_int() <= 1)
    return std::nullopt;
  return Quotient{atom.src(0), atom.src(1).const_int()};
}

bool is_product(int64_t a, int64_t b, int64_t product) {
  int64_t p = 0;
  return !__builtin_mul_overflow(a, b, &p) && p == product;
}

Affine without_term(const Affine& sum, size_t at) {
  Affine rest = sum;
  rest.terms.erase(rest.terms.begin() + static_cast<std::ptrdiff_t>(at));
  return rest;
}

// sum - terms[s] - terms[t] + scale * y.
std::optional<Affine> replace_two(const Affine& sum, size_t s, size_t t, const Affine& y,
                                  int64_t scale) {
  const Affine rest = without_term(without_term(sum, std::max(s, t)), std::min(s, t));
  return add_scaled(rest, y, scale);
}

// Whether x and y leave the same remainders by c.
bool are_congruent(const UOp& x, const UOp& y, int64_t c) {
  if (x == y) return true;
  const auto a = affine(x), b = affine(y);
  const auto difference = a && b ? add_scaled(*a, *b, -1) : std::nullopt;
  return difference && difference->constant % c == 0 &&
         std::ranges::all_of(difference->terms,
                             [&](const AffineTerm& t) { return t.coefficient % c == 0; });
}

// B*c * (y // c) + B * (z % c) = B * y where c divides y - z, and B*c * (q % d) + B * (z % c) = B *
// ((q*c + z % c) % (c*d)) where q*c + z % c joins in turn.
std::optional<Affine> join_pair(const Affine& sum, size_t high, size_t low, int depth) {
  const AffineTerm& t = sum.terms[high];
  const AffineTerm& s = sum.terms[low];
  const auto remainder = quotient(s.atom, Op::FloorMod);
  if (!remainder || !is_product(s.coefficient, remainder->by, t.coefficient)) return std::nullopt;
  if (const auto division = quotient(t.atom, Op::FloorDiv)) {
    if (division->by != remainder->by || !are_congruent(division->of, remainder->of, division->by))
      return std::nullopt;
    const auto y = affine(division->of);
    return y ? replace_two(sum, high, low, *y, s.coefficient) : std::nullopt;
  }
  const auto outer = quotient(t.atom, Op::FloorMod);
  int64_t period = 0;
  if (!outer || depth == 0 || __builtin_mul_overflow(outer->by, remainder->by, &period))
    return std::nullopt;
  const auto q = affine(outer->of);
  if (!q) return std::nullopt;
  const auto whole = add_scaled({0, {{s.atom, 1}}}, *q, remainder->by);
  if (!whole) return std::nullopt;
  const Affine w = joined(*whole);
  if (w.coefficient(s.atom) != 0) return std::nullopt;
  Graph& graph = s.atom.graph();
  const UOp modulo = floor_mod(to_uop(graph, w), graph.integer(period));
  return replace_two(sum, high, low, {0, {{modulo, 1}}}, s.coefficient);
}

// B * y - B*c * (y // c) = B * (y % c), where that leaves fewer terms.
std::optional<Affine> join_remainder(const Affine& sum, size_t at) {
  const AffineTerm& t = sum.terms[at];
  const auto division = quotient(t.atom, Op::FloorDiv);
  if (!division || t.coefficient % division->by != 0) return std::nullopt;
  const int64_t scale = -(t.coefficient / division->by);
  const auto y = affine(division->of);
  if (!y) return std::nullopt;
  auto rest = add_scaled(without_term(sum, at), *y, -scale);
  if (!rest || rest->terms.size() + 1 >= sum.terms.size()) return std::nullopt;
  const UOp modulo = floor_mod(division->of, t.atom.src(1));
  return add_scaled(*rest, {0, {{modulo, 1}}}, scale);
}

std::optional<Affine> join_once(const Affine& sum) {
  for (size_t high = 0; high < sum.terms.size(); ++high) {
    const Op op = sum.terms[high].atom.op();
    if (op != Op::FloorDiv && op != Op::FloorMod) continue;
    for (size_t low = 0; low < sum.terms.size(); ++low) {
      if (low == high) continue;
      if (auto shorter = join_pair(sum, high, low, 1)) return shorter;
    }
    if (auto shorter = join_remainder(sum, high)) return shorter;
  }
  return std::nullopt;
}

}  // namespace

Affine joined(Affine sum) {
  while (auto shorter = join_once(sum)) sum = std::move(*shorter);
  return sum;
}

UOp ordered_sum(const Match& m) {
  auto sum = affine(m.root());
  if (!sum) return {};
  // A range of size 1 and its like have one value.
  for (const AffineTerm& t : std::vector<AffineTerm>(sum->terms)) {
    const Interval b = m.bounds(t.atom);
    if (!b.is_single() || b.lo == INT64_MIN || b.lo == INT64_MAX) continue;
    const auto value = scaled({b.lo, {}}, t.coefficient);
    auto rest = value ? add_scaled(*sum, {0, {t}}, -1) : std::nullopt;
    if (rest) rest = add_scaled(*rest, *value, 1);
    if (!rest) return {};
    sum = std::move(rest);
  }
  return to_uop(m.graph(), joined(std::move(*sum)));
}

UOp power_for_shift_left(const Match& m) {
  const int64_t by = m[Wildcard::c0].const_int();
  if (by < 0 || by > 62) return {};
  return mul(m[Wildcard::i], int64_t{1} << by);
}

UOp division_for_shift_right(const Match& m) {
  const int64_t by = m[Wildcard::c0].const_int();
  if (by < 0 || by > 62) return {};
  return floor_div(m[Wildcard::i], int64_t{1} << by);
}

UOp modulo_for_mask(const Match& m) {
  const auto mask = static_cast<uint64_t>(m[Wildcard::c0].const_int());
  if (mask > INT64_MAX / 2 || !std::has_single_bit(mask + 1)) return {};
  return floor_mod(m[Wildcard::i], static_cast<int64_t>(mask + 1));
}

}  // namespace tiny

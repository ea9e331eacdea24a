#include "ir/quotient.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "ir/build.h"

namespace tiny {

namespace {

bool is_finite(const Interval& b) {
  return b.lo != INT64_MIN && b.hi != INT64_MAX;
}

// sum = divisible + rest, where g divides every coefficient of the first; its constant is 0.
struct Parts {
  Affine divisible;
  Affine rest;
};
Parts parts(const Affine& sum, int64_t g) {
  Parts p;
  p.rest.constant = sum.constant;
  for (const AffineTerm& t : sum.terms)
    (t.coefficient % g == 0 ? p.divisible : p.rest).terms.push_back(t);
  return p;
}

// The factors > 1 that some coefficient shares with c, greatest first.
std::vector<int64_t> shared_factors(const Affine& sum, int64_t c) {
  std::vector<int64_t> found;
  for (const AffineTerm& t : sum.terms)
    if (const int64_t g = std::gcd(t.coefficient, c); g > 1) found.push_back(g);
  std::sort(found.rbegin(), found.rend());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// A value for all of the rest.
Quotient without_rest(Affine whole, int64_t value) {
  whole.constant += value;
  return {std::move(whole), {}, 1};
}

// The same, one step simpler; none where there is no step.
std::optional<Quotient> simpler(const Quotient& q, std::span<const Affine> facts,
                                BoundsCache& cache) {
  if (const auto value = common_quotient(cache.of(q.rest), q.by))
    return without_rest(q.whole, *value);
  if (!facts.empty() && in_range(q.rest, {q.by, {}}, facts, cache)) return without_rest(q.whole, 0);

  // What c divides comes out.
  Parts p = parts(q.rest, q.by);
  const int64_t whole = floor_div(p.rest.constant, q.by);
  if (!p.divisible.terms.empty() || whole != 0) {
    p.rest.constant -= whole * q.by;
    p.divisible = exact_quotient(std::move(p.divisible), q.by);
    p.divisible.constant = whole;
    auto sum = add_scaled(q.whole, p.divisible, 1);
    if (!sum) return std::nullopt;
    return Quotient{std::move(*sum), std::move(p.rest), q.by};
  }
  if (auto coarse = coarsened(q.rest, q.by, cache)) {
    Affine a = exact_quotient(std::move(coarse->divisible), coarse->g);
    a.constant = coarse->quotient;
    if (coarse->g < q.by) return Quotient{q.whole, std::move(a), q.by / coarse->g};
    auto sum = add_scaled(q.whole, a, 1);
    if (!sum) return std::nullopt;
    return Quotient{std::move(*sum), {}, 1};
  }
  // (y // e + k) // c = (y + k*e) // (e*c).
  if (q.rest.terms.size() != 1 || q.rest.terms[0].coefficient != 1) return std::nullopt;
  const UOp& inner = q.rest.terms[0].atom;
  if (inner.op() != Op::FloorDiv || !inner.src(1).is_const()) return std::nullopt;
  const int64_t e = inner.src(1).const_int();
  int64_t by = 0;
  if (e <= 0 || __builtin_mul_overflow(e, q.by, &by)) return std::nullopt;
  const auto y = affine(inner.src(0));
  auto sum = y ? add_scaled(*y, {q.rest.constant, {}}, e) : std::nullopt;
  if (!sum) return std::nullopt;
  return Quotient{q.whole, std::move(*sum), by};
}

}  // namespace

std::optional<int64_t> common_quotient(const Interval& b, int64_t c) {
  if (!is_finite(b) || floor_div(b.lo, c) != floor_div(b.hi, c)) return std::nullopt;
  return floor_div(b.lo, c);
}

Affine exact_quotient(Affine a, int64_t g) {
  a.constant /= g;
  for (AffineTerm& t : a.terms) t.coefficient /= g;
  return a;
}

bool in_range(const Affine& sum, const Affine& d, std::span<const Affine> facts,
              BoundsCache& cache) {
  if (!prove_nonnegative(sum, facts, cache)) return false;
  auto room = add_scaled(d, sum, -1);
  if (room) room = add_scaled(*room, {-1, {}}, 1);
  return room && prove_nonnegative(*room, facts, cache);
}

std::optional<Coarse> coarsened(const Affine& sum, int64_t c, BoundsCache& cache) {
  for (const int64_t g : shared_factors(sum, c)) {
    Parts p = parts(sum, g);
    if (const auto q = common_quotient(cache.of(p.rest), g))
      return Coarse{g, *q, std::move(p.divisible), std::move(p.rest)};
  }
  return std::nullopt;
}

Quotient quotient(const Affine& sum, int64_t c, std::span<const Affine> facts, BoundsCache& cache) {
  Quotient q{{}, sum, c};
  while (q.by > 1) {
    auto next = simpler(q, facts, cache);
    if (!next) break;
    q = std::move(*next);
  }
  return q;
}

UOp to_uop(Graph& graph, const Quotient& q) {
  const UOp whole = to_uop(graph, q.whole);
  if (q.rest == Affine()) return whole;
  return add(floor_div(to_uop(graph, q.rest), q.by), whole);
}

}  // namespace tiny

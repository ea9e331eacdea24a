#include "base/checked.h"
#include "ir/build.h"
#include "ir/quotient.h"
#include "rules/index_code.h"

namespace tiny {

namespace {

std::optional<Affine> negated(const Affine& a) {
  return scaled(a, -1);
}

bool in_range(const Affine& sum, const Affine& d, const Match& m) {
  return in_range(sum, d, m.facts(), m.cache());
}

// sum = c * quotient + rest, 0 <= rest < c, where coefficients just below c are those of -1, -2, ..
// of a quotient's terms (one row of a matrix' shifted diagonals); none where that is not so.
struct Division {
  Affine quotient, rest;
};
std::optional<Division> divide_by_neighbour(const Affine& sum, int64_t c, const Match& m) {
  Affine taken;
  for (const AffineTerm& t : sum.terms)
    if (t.coefficient > c / 2 && t.coefficient < c) taken.terms.push_back({t.atom, 1});
  const auto rest = add_scaled(sum, taken, -c);
  const auto q =
      taken.terms.empty() || !rest ? std::nullopt : common_quotient(m.cache().of(*rest), c);
  if (!q) return std::nullopt;
  taken.constant = *q;
  const auto last = add_scaled(sum, taken, -c);
  return last ? std::optional(Division{taken, *last}) : std::nullopt;
}

UOp divide_by_constant(const Affine& sum, int64_t c, const Match& m) {
  const Quotient q = quotient(sum, c, m.facts(), m.cache());
  if (!(q == Quotient{{}, sum, c})) return to_uop(m.graph(), q);
  const auto division = divide_by_neighbour(sum, c, m);
  return division ? to_uop(m.graph(), division->quotient) : UOp();
}

UOp modulo_by_constant(const Affine& sum, int64_t c, const Match& m) {
  Graph& g = m.graph();
  if (const auto q = common_quotient(m.cache().of(sum), c)) {
    int64_t offset = 0;
    if (__builtin_mul_overflow(*q, c, &offset)) return {};
    const auto rest = add_scaled(sum, {offset, {}}, -1);
    return rest ? to_uop(g, *rest) : UOp();
  }
  if (!m.facts().empty() && in_range(sum, {c, {}}, m)) return to_uop(g, sum);

  // Multiples of c go, a * (y % n) is a * y where c divides a * n.
  Affine reduced;
  reduced.constant = floor_mod(sum.constant, c);
  for (const AffineTerm& t : sum.terms) {
    const bool large = t.coefficient >= c || t.coefficient <= -c;
    const int64_t a = large ? floor_mod(t.coefficient, c) : t.coefficient;
    int64_t period = 0;
    const bool modulo =
        t.atom.op() == Op::FloorMod && t.atom.src(1).is_const() && t.atom.src(1).const_int() > 0 &&
        !__builtin_mul_overflow(a, t.atom.src(1).const_int(), &period) && period % c == 0;
    const auto y = modulo ? affine(t.atom.src(0)) : std::nullopt;
    auto next = add_scaled(reduced, y ? *y : Affine{0, {{t.atom, 1}}}, a);
    if (!next) return {};
    reduced = std::move(*next);
  }
  if (!(reduced == sum)) return floor_mod(to_uop(g, reduced), c);
  if (const auto division = divide_by_neighbour(sum, c, m)) return to_uop(g, division->rest);

  const auto coarse = coarsened(sum, c, m.cache());
  if (!coarse || coarse->g == c) return {};
  Affine a = exact_quotient(coarse->divisible, coarse->g);
  a.constant = coarse->quotient;
  Affine low = coarse->rest;
  low.constant -= coarse->quotient * coarse->g;
  return add(mul(floor_mod(to_uop(g, a), c / coarse->g), coarse->g), to_uop(g, low));
}

// A divisor e * p for a product p of things above 0.
struct Monomial {
  int64_t coefficient = 1;
  UOp atom;
};
std::optional<Monomial> positive_monomial(const Affine& d, BoundsCache& cache) {
  if (d.terms.size() != 1 || d.constant != 0 || d.terms[0].coefficient <= 0) return std::nullopt;
  for (const UOp& f : factors(d.terms[0].atom))
    if (cache.of(f).lo <= 0) return std::nullopt;
  return Monomial{d.terms[0].coefficient, d.terms[0].atom};
}

// The terms of `sum` that `d` divides, divided by it; the others stay in `rest`.
Affine take_multiples(const Affine& sum, const Monomial& d, Affine& rest) {
  Affine taken;
  rest = {sum.constant, {}};
  for (const AffineTerm& t : sum.terms) {
    auto left = factors_without(t.atom, d.atom);
    if (!left || t.coefficient % d.coefficient != 0) {
      rest.terms.push_back(t);
      continue;
    }
    const int64_t c = t.coefficient / d.coefficient;
    auto next = left->empty() ? add_scaled(taken, {1, {}}, c)
                              : add_scaled(taken, {0, {{product_atom(*left), 1}}}, c);
    if (next) {
      taken = std::move(*next);
    } else {
      rest.terms.push_back(t);
    }
  }
  return taken;
}

// `sum` without a factor that all its terms share with d, if there is such; d loses it too.
bool cancel_factor(Affine& sum, Monomial& d) {
  if (sum.terms.empty() || sum.constant != 0) return false;
  for (const UOp& f : factors(d.atom)) {
    Affine less;
    bool shared = true;
    for (const AffineTerm& t : sum.terms) {
      const auto left = factors_without(t.atom, f);
      shared = shared && left;
      if (!shared) break;
      auto next = left->empty() ? add_scaled(less, {1, {}}, t.coefficient)
                                : add_scaled(less, {0, {{product_atom(*left), 1}}}, t.coefficient);
      shared = next.has_value();
      if (next) less = std::move(*next);
    }
    if (!shared) continue;
    const auto left = factors_without(d.atom, f);
    sum = std::move(less);
    d.atom = left->empty() ? UOp() : product_atom(*left);
    return true;
  }
  return false;
}

UOp monomial_uop(Graph& g, const Monomial& d) {
  return to_uop(g, d.atom ? Affine{0, {{d.atom, d.coefficient}}} : Affine{d.coefficient, {}});
}

// By a sum of terms, such as a padded size: what its first term divides is a multiple of it and a
// rest, which must be less than it.
std::optional<Division> divide_by_sum(const Affine& sum, const Affine& d, const Match& m) {
  constexpr int kStepsMax = 8;
  if (d.terms.size() + (d.constant != 0) < 2 || m.cache().of(d).lo <= 0) return std::nullopt;
  const Monomial first{d.terms[0].coefficient, d.terms[0].atom};
  if (first.coefficient <= 0) return std::nullopt;
  Division out{{}, sum};
  for (int step = 0; step < kStepsMax; ++step) {
    Affine others;
    const Affine taken = take_multiples(out.rest, first, others);
    if (taken.terms.empty() && taken.constant == 0) break;
    const auto multiple = multiplied(taken, d);
    const auto quotient = add_scaled(out.quotient, taken, 1);
    auto rest = multiple ? add_scaled(out.rest, *multiple, -1) : std::nullopt;
    if (!rest || !quotient) return std::nullopt;
    out = {*quotient, std::move(*rest)};
  }
  const bool is_taken = !out.quotient.terms.empty() || out.quotient.constant != 0;
  if (!is_taken || !in_range(out.rest, d, m)) return std::nullopt;
  return out;
}

UOp divide_by_symbol(const Affine& sum, const Affine& divisor, const Match& m) {
  if (in_range(sum, divisor, m)) return m.graph().integer(0);
  if (const auto division = divide_by_sum(sum, divisor, m))
    return to_uop(m.graph(), division->quotient);
  auto d = positive_monomial(divisor, m.cache());
  if (!d) return {};
  Affine rest;
  const Affine taken = take_multiples(sum, *d, rest);
  if (!taken.terms.empty() || taken.constant != 0)
    return add(floor_div(to_uop(m.graph(), rest), m.root().src(1)), to_uop(m.graph(), taken));
  Affine less = sum;
  if (!cancel_factor(less, *d)) return {};
  return floor_div(to_uop(m.graph(), less), monomial_uop(m.graph(), *d));
}

UOp modulo_by_symbol(const Affine& sum, const Affine& divisor, const Match& m) {
  if (in_range(sum, divisor, m)) return to_uop(m.graph(), sum);
  if (const auto division = divide_by_sum(sum, divisor, m))
    return to_uop(m.graph(), division->rest);
  const auto d = positive_monomial(divisor, m.cache());
  if (!d) return {};
  Affine rest;
  const Affine taken = take_multiples(sum, *d, rest);
  if (taken.terms.empty() && taken.constant == 0) return {};
  return floor_mod(to_uop(m.graph(), rest), m.root().src(1));
}

}  // namespace

UOp split_division(const Match& m) {
  const auto sum = affine(m.root().src(0));
  const auto divisor = affine(m.root().src(1));
  if (!sum || !divisor) return {};
  if (!divisor->is_constant()) return divide_by_symbol(*sum, *divisor, m);
  const int64_t c = divisor->constant;
  if (c > 1) return divide_by_constant(*sum, c, m);
  if (c >= 0 || c == INT64_MIN) return {};
  const auto opposite = negated(*sum);
  return opposite ? floor_div(to_uop(m.graph(), *opposite), -c) : UOp();
}

UOp split_modulo(const Match& m) {
  const auto sum = affine(m.root().src(0));
  const auto divisor = affine(m.root().src(1));
  if (!sum || !divisor) return {};
  if (!divisor->is_constant()) return modulo_by_symbol(*sum, *divisor, m);
  return divisor->constant > 1 ? modulo_by_constant(*sum, divisor->constant, m) : UOp();
}

}  // namespace tiny

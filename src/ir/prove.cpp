// prove_nonnegative of ir/bounds.h: a small search, bounded by depth and by a count of steps.
#include <algorithm>
#include <numeric>

#include "ir/bounds.h"

namespace tiny {

namespace {

constexpr int kDepthMax = 4;    // facts used in one proof
constexpr int kStepsMax = 400;  // sums looked at in one proof
constexpr int kCasesMax = 4;    // Min, Max and Where split one inside the other

class Prover {
 public:
  Prover(std::span<const Affine> facts, BoundsCache& cache)
      : facts_(facts.begin(), facts.end()), cache_(cache) {}

  // That a Range is below its size, for every Range in the facts and in `e`; where quotients in `e`
  // lie.
  void add_facts(const Affine& e) {
    std::vector<UOp> seen;
    collect_ranges(e, seen);
    for (const AffineTerm& t : e.terms) add_quotient(t.atom);
    for (size_t i = 0; i < facts_.size() && i < kFactsMax; ++i)
      collect_ranges(Affine(facts_[i]), seen);
  }

  bool prove(const Affine& e, int depth, int cases) {
    if (++steps_ > kStepsMax) return false;
    if (cache_.of(e).lo >= 0) return true;
    if (use_facts(e, depth, cases)) return true;
    return cases > 0 && split_cases(e, depth, cases);
  }

 private:
  static constexpr size_t kFactsMax = 64;

  void collect_ranges(const Affine& e, std::vector<UOp>& seen) {
    for (const AffineTerm& t : e.terms)
      for (const UOp& r : factors(t.atom)) {
        if (r.op() != Op::Range || r.src(0).is_const()) continue;
        bool known = false;
        for (const UOp& s : seen) known |= s == r;
        if (known) continue;
        seen.push_back(r);
        add_below(r, r.src(0), kCasesMax);
      }
  }

  // The fact r < size; below a minimum is below both.
  void add_below(const UOp& r, const UOp& size, int nested) {
    if (size.op() == Op::Min && nested > 0) {
      add_below(r, size.src(0), nested - 1);
      add_below(r, size.src(1), nested - 1);
      return;
    }
    const auto s = affine(size);
    if (!s || facts_.size() >= kFactsMax) return;
    if (auto fact = add_scaled(*s, {1, {{r, 1}}}, -1)) facts_.push_back(std::move(*fact));
    for (const AffineTerm& t : s->terms) add_quotient(t.atom);
  }

  // The facts  x - c * (x // c) >= 0  and  c * (x // c) - x + c - 1 >= 0  of a quotient.
  void add_quotient(const UOp& quotient) {
    if (quotient.op() != Op::FloorDiv || !quotient.src(1).is_const()) return;
    const int64_t c = quotient.src(1).const_int();
    const auto x = c > 0 ? affine(quotient.src(0)) : std::nullopt;
    const auto rest = x ? add_scaled(*x, {0, {{quotient, 1}}}, -c) : std::nullopt;
    if (!rest || facts_.size() >= kFactsMax) return;
    facts_.push_back(*rest);
    if (auto fact = add_scaled({c - 1, {}}, *rest, -1)) facts_.push_back(std::move(*fact));
  }

  // m * e - n * f >= 1 - m for a fact f >= 0 proves e >= 0, as e is an integer: m * e > -m.
  bool use_facts(const Affine& e, int depth, int cases) {
    if (depth == 0) return false;
    for (const Affine& fact : facts_) {
      int64_t tried_m = 0;
      int64_t tried_n = 0;
      for (const AffineTerm& t : e.terms) {
        for (const AffineTerm& f : fact.terms) {
          if ((f.coefficient < 0) != (t.coefficient < 0)) continue;
          if (f.coefficient == INT64_MIN || t.coefficient == INT64_MIN) continue;
          const bool same = f.atom == t.atom;
          std::optional<Affine> times;
          if (!same) times = raised(fact, f.atom, t.atom);
          if (!same && !times) continue;
          const int64_t g = std::gcd(f.coefficient, t.coefficient);
          const int64_t m = (f.coefficient < 0 ? -f.coefficient : f.coefficient) / g;
          const int64_t n = (t.coefficient < 0 ? -t.coefficient : t.coefficient) / g;
          if (same && m == tried_m && n == tried_n) continue;
          if (same) tried_m = m, tried_n = n;
          if (without(e, m, same ? fact : *times, n, depth, cases)) return true;
        }
      }
    }
    return false;
  }

  // Whether m * e - n * fact + (m - 1) >= 0.
  bool without(const Affine& e, int64_t m, const Affine& fact, int64_t n, int depth, int cases) {
    auto rest = scaled(e, m);
    if (rest) rest = add_scaled(*rest, fact, -n);
    if (rest) rest = add_scaled(*rest, {m - 1, {}}, 1);
    return rest && prove(*rest, depth - 1, cases);
  }

  // `fact` times what makes its atom `from` the product `to`, if none of that can be negative.
  std::optional<Affine> raised(const Affine& fact, const UOp& from, const UOp& to) {
    if (to.op() != Op::Mul) return std::nullopt;
    const auto more = factors_without(to, from);
    if (!more || more->empty()) return std::nullopt;
    for (const UOp& factor : *more)
      if (cache_.of(factor).lo < 0) return std::nullopt;
    return multiplied(fact, {0, {{product_atom(*more), 1}}});
  }

  // e with the first Min, Max or Where among its atoms replaced by each of its sides.
  bool split_cases(const Affine& e, int depth, int cases) {
    for (const AffineTerm& t : e.terms) {
      const Op op = t.atom.op();
      if (op != Op::Min && op != Op::Max && op != Op::Where) continue;
      const size_t first = op == Op::Where ? 1 : 0;
      // x + min(a, b) >= 0 needs both sides, x - min(a, b) >= 0 needs one.
      const bool both = op == Op::Where || (op == Op::Min) == (t.coefficient > 0);
      bool proved = both;
      for (size_t side = first; side < first + 2; ++side) {
        const auto value = affine(t.atom.src(side));
        auto with = add_scaled(e, {0, {{t.atom, t.coefficient}}}, -1);
        if (value && with) with = add_scaled(*with, *value, t.coefficient);
        const bool holds = value && with && prove(*with, depth, cases - 1);
        if (both ? !holds : holds) {
          proved = !both;
          break;
        }
      }
      if (proved) return true;
    }
    return false;
  }

  std::vector<Affine> facts_;
  BoundsCache& cache_;
  int steps_ = 0;
};

// Whether an atom is neither made of cases nor below a size that is no number: its interval says
// all of it.
bool is_told_by_bounds(const AffineTerm& term) {
  return term.atom.op() == Op::Range && term.atom.src(0).is_const();
}

}  // namespace

bool prove_nonnegative(const Affine& e, std::span<const Affine> facts, BoundsCache& cache) {
  if (cache.of(e).lo >= 0) return true;
  if (facts.empty() && std::ranges::all_of(e.terms, is_told_by_bounds)) return false;
  Prover prover(facts, cache);
  prover.add_facts(e);
  return prover.prove(e, kDepthMax, kCasesMax);
}

bool prove_nonnegative(const UOp& e, std::span<const UOp> facts, BoundsCache& cache) {
  if (!e.dtype().is_int() && !e.dtype().is_bool()) return false;
  if (cache.of(e).lo >= 0) return true;
  const auto sum = affine(e);
  if (!sum) return false;
  std::vector<Affine> known;
  for (const UOp& f : facts)
    if (auto a = affine(f)) known.push_back(std::move(*a));
  return prove_nonnegative(*sum, known, cache);
}

bool prove_nonnegative(const UOp& e, std::span<const UOp> facts) {
  BoundsCache cache;
  return prove_nonnegative(e, facts, cache);
}

}  // namespace tiny

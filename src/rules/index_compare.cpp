#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "ir/build.h"
#include "rules/index_code.h"

namespace tiny {

namespace {

constexpr size_t kOperandsMax = 64;  // of a connective that is looked at as a whole
constexpr size_t kImpliedMax = 8;    // beyond which its operands are not compared with each other
constexpr int kNestedMax = 8;        // connectives one inside the other

// a - b + offset.
std::optional<Affine> difference(const UOp& a, const UOp& b, int64_t offset) {
  const auto left = affine(a);
  const auto right = affine(b);
  if (!left || !right) return std::nullopt;
  auto d = add_scaled(*left, *right, -1);
  return d ? add_scaled(*d, {offset, {}}, 1) : std::nullopt;
}

int64_t magnitude(int64_t v) {
  return v < 0 ? -v : v;  // callers keep INT64_MIN out
}

bool has_lowest(const Affine& e) {
  for (const AffineTerm& t : e.terms)
    if (t.coefficient == INT64_MIN) return true;
  return e.constant == INT64_MIN;
}

int64_t common_factor(const Affine& e) {
  int64_t g = 0;
  for (const AffineTerm& t : e.terms) g = std::gcd(g, t.coefficient);
  return g;
}

// e < 0 where every term but those in `small` is a multiple of g, and what remains of the bound on
// the multiples does not depend on the small ones: the same with the multiples divided by g.
bool divide_comparison(Affine& e, int64_t g, BoundsCache& cache) {
  Affine large;
  Affine small;
  for (const AffineTerm& t : e.terms) (t.coefficient % g == 0 ? large : small).terms.push_back(t);
  const Interval s = cache.of(small);
  if (s.lo == INT64_MIN || s.hi == INT64_MAX) return false;
  // large <= -1 - constant - s
  int64_t most = 0;
  int64_t least = 0;
  if (__builtin_sub_overflow(-1 - e.constant, s.lo, &most) ||
      __builtin_sub_overflow(-1 - e.constant, s.hi, &least) ||
      floor_div(most, g) != floor_div(least, g))
    return false;
  for (AffineTerm& t : large.terms) t.coefficient /= g;
  large.constant = -floor_div(most, g) - 1;
  e = std::move(large);
  return true;
}

// y // c + k < 0 is y + k*c < 0, and the like for -(y // c).
bool open_division(Affine& e) {
  if (e.terms.size() != 1 || magnitude(e.terms[0].coefficient) != 1) return false;
  const UOp q = e.terms[0].atom;
  if (q.op() != Op::FloorDiv || !q.src(1).is_const() || q.src(1).const_int() <= 0) return false;
  const int64_t c = q.src(1).const_int();
  const bool positive = e.terms[0].coefficient > 0;
  int64_t bound = 0;
  if (__builtin_mul_overflow(positive ? e.constant : e.constant + 1, c, &bound)) return false;
  const auto y = affine(q.src(0));
  if (!y) return false;
  auto opened = add_scaled({positive ? bound : bound - 1, {}}, *y, positive ? 1 : -1);
  if (!opened || has_lowest(*opened)) return false;
  e = std::move(*opened);
  return true;
}

void reduce_comparison(Affine& e, BoundsCache& cache) {
  for (bool again = true; again && !e.terms.empty();) {
    again = false;
    std::vector<int64_t> candidates;
    for (const AffineTerm& t : e.terms) candidates.push_back(magnitude(t.coefficient));
    candidates.push_back(common_factor(e));
    std::sort(candidates.rbegin(), candidates.rend());
    for (const int64_t g : candidates)
      if (g > 1 && divide_comparison(e, g, cache)) {
        again = true;
        break;
      }
    again = again || open_division(e);
  }
}

// e = positive - negative + constant.
void split_by_sign(const Affine& e, Affine& positive, Affine& negative) {
  for (const AffineTerm& t : e.terms) {
    if (t.coefficient > 0) {
      positive.terms.push_back(t);
    } else {
      negative.terms.push_back({t.atom, -t.coefficient});
    }
  }
}

UOp comparison(Graph& g, Op op, const Affine& e) {
  Affine left;
  Affine right;
  split_by_sign(e, left, right);
  if (left.terms.empty()) {
    left.constant = e.constant;
  } else {
    right.constant = -e.constant;
  }
  return g.make(op, {to_uop(g, left), to_uop(g, right)});
}

bool proves(const Affine& e, int64_t scale, int64_t offset, const Match& m) {
  const auto shifted = add_scaled({offset, {}}, e, scale);
  return shifted && prove_nonnegative(*shifted, m.facts(), m.cache());
}

// A comparison as e >= 0; none for any other condition.
std::optional<Affine> as_nonnegative(const UOp& condition) {
  if (condition.src().size() != 2 || condition.src(0).dtype() != kInt64) return std::nullopt;
  if (condition.op() == Op::Less) return difference(condition.src(1), condition.src(0), -1);
  if (condition.op() == Op::LessEqual) return difference(condition.src(1), condition.src(0), 0);
  return std::nullopt;
}

// What is known when `condition` holds.
void append_facts(const UOp& condition, std::vector<Affine>& facts) {
  if (auto e = as_nonnegative(condition)) facts.push_back(std::move(*e));
  if (condition.op() != Op::Equal || condition.src(0).dtype() != kInt64) return;
  for (const size_t first : {size_t{0}, size_t{1}})
    if (auto e = difference(condition.src(first), condition.src(1 - first), 0))
      facts.push_back(std::move(*e));
}

std::optional<Affine> opposite(const Affine& e) {  // of e >= 0: -e - 1 >= 0
  return add_scaled({-1, {}}, e, -1);
}

// The operands of a chain of `op`, in order, each once; none if it is too long.
std::optional<std::vector<UOp>> operands(const UOp& root, Op op) {
  std::vector<UOp> found;
  std::vector<UOp> work{root};
  while (!work.empty()) {
    const UOp u = std::move(work.back());
    work.pop_back();
    if (u.op() == op) {
      work.push_back(u.src(1));
      work.push_back(u.src(0));
    } else {
      found.push_back(u);
    }
    if (found.size() + work.size() > kOperandsMax) return std::nullopt;
  }
  std::sort(found.begin(), found.end(), stands_before);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

UOp chained(Graph& g, Op op, std::span<const UOp> operands) {
  UOp all = operands[0];
  for (const UOp& o : operands.subspan(1)) all = g.make(op, {all, o});
  return all;
}

bool has_complement(const std::vector<UOp>& operands) {
  for (const UOp& o : operands)
    if (o.op() == Op::Not &&
        std::find(operands.begin(), operands.end(), o.src(0)) != operands.end())
      return true;
  return false;
}

// What holds of an operand's place: of an And that all other operands hold, of an Or that none
// does.
struct Rest {
  Op op;
  const std::vector<UOp>& all;
  size_t place;
  std::vector<Affine> facts;  // >= 0
  BoundsCache& cache;

  bool proves(const Affine& e) const { return prove_nonnegative(e, facts, cache); }

  // Whether `condition` is `truth` there.
  bool decides(const UOp& condition, bool truth, int nested = kNestedMax) const {
    if (nested == 0) return false;
    if (condition.op() == Op::Not) return decides(condition.src(0), !truth, nested - 1);
    if (condition.op() == Op::And || condition.op() == Op::Or) {
      const bool first = decides(condition.src(0), truth, nested - 1);
      const bool needs_both = (condition.op() == Op::And) == truth;
      return first != needs_both ? first : decides(condition.src(1), truth, nested - 1);
    }
    if (truth == (op == Op::And))
      for (size_t j = 0; j < all.size(); ++j)
        if (j != place && all[j] == condition) return true;
    auto e = as_nonnegative(condition);
    if (e && !truth) e = opposite(*e);
    return e && proves(*e);
  }
};

// An operand of the other kind without those of its own that the rest decides; none if that decides
// it: an Or of which nothing is left is false.
UOp without_decided(const UOp& operand, const Rest& rest, Graph& g) {
  const Op inner = rest.op == Op::And ? Op::Or : Op::And;
  if (operand.op() != inner) return operand;
  auto parts = operands(operand, inner);
  if (!parts) return operand;
  if (std::erase_if(*parts, [&](const UOp& p) { return rest.decides(p, inner == Op::And); }) == 0)
    return operand;
  return parts->empty() ? UOp() : chained(g, inner, *parts);
}

// `all` without what the rest implies (And), or what implies the rest (Or).  True if the whole is
// decided: a false And, a true Or.
bool drop_implied(std::vector<UOp>& all, Op op, const Match& m) {
  for (size_t i = 0; i < all.size() && all.size() > 1;) {
    Rest rest{op, all, i, {m.facts().begin(), m.facts().end()}, m.cache()};
    for (size_t j = 0; j < all.size(); ++j) {
      if (j == i) continue;
      if (op == Op::And) {
        append_facts(all[j], rest.facts);
      } else if (const auto f = as_nonnegative(all[j])) {
        if (auto not_f = opposite(*f)) rest.facts.push_back(std::move(*not_f));
      }
    }
    all[i] = without_decided(all[i], rest, m.graph());
    if (!all[i]) return true;
    auto e = as_nonnegative(all[i]);
    if (e && op == Op::Or) e = opposite(*e);
    if (e && rest.proves(*e)) {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    const auto other = e ? opposite(*e) : std::nullopt;
    if (other && rest.proves(*other)) return true;
    ++i;
  }
  return false;
}

UOp connective(const Match& m, Op op) {
  auto all = operands(m.root(), op);
  if (!all) return {};
  if (has_complement(*all)) return m.graph().boolean(op == Op::Or);
  if (all->size() <= kImpliedMax && drop_implied(*all, op, m))
    return m.graph().boolean(op == Op::Or);
  return chained(m.graph(), op, *all);
}

}  // namespace

UOp ordered_comparison(const Match& m) {
  const bool strict = m.root().op() == Op::Less;
  auto e = difference(m.root().src(0), m.root().src(1), strict ? 0 : -1);
  if (!e || has_lowest(*e)) return {};
  const Interval b = m.cache().of(*e);
  if (b.hi < 0) return m.graph().boolean(true);
  if (b.lo >= 0) return m.graph().boolean(false);
  if (proves(*e, -1, -1, m)) return m.graph().boolean(true);
  if (proves(*e, 1, 0, m)) return m.graph().boolean(false);
  reduce_comparison(*e, m.cache());
  return comparison(m.graph(), Op::Less, *e);
}

UOp ordered_equality(const Match& m) {
  const Op op = m.root().op();
  auto e = difference(m.root().src(0), m.root().src(1), 0);
  if (!e || has_lowest(*e)) return {};
  if (e->is_constant()) return m.graph().boolean((e->constant == 0) == (op == Op::Equal));
  const int64_t g = common_factor(*e);
  if (e->constant % g != 0 || proves(*e, 1, -1, m) || proves(*e, -1, -1, m))
    return m.graph().boolean(op == Op::NotEqual);
  const int64_t scale = e->terms[0].coefficient < 0 ? -g : g;
  e->constant /= scale;
  for (AffineTerm& t : e->terms) t.coefficient /= scale;
  return comparison(m.graph(), op, *e);
}

UOp decided_min_max(const Match& m) {
  const UOp& a = m.root().src(0);
  const UOp& b = m.root().src(1);
  if (const auto d = difference(a, b, 0)) {
    const bool is_max = m.root().op() == Op::Max;
    if (prove_nonnegative(*d, m.facts(), m.cache())) return is_max ? a : b;
    if (proves(*d, -1, 0, m)) return is_max ? b : a;
  }
  const bool swapped = a.is_const() || (!b.is_const() && stands_before(b, a));
  return swapped ? m.graph().make(m.root().op(), {b, a}) : UOp();
}

UOp decided_where(const Match& m) {
  const auto e = as_nonnegative(m.root().src(0));
  if (!e) return {};
  // where(a < b, a, b) and its like.
  const UOp& x = m.root().src(1);
  const UOp& y = m.root().src(2);
  const auto d = difference(y, x, 0);
  if (!d) return {};
  // x where x <= y (or x < y), else y: the minimum; with the sides changed, the maximum.
  for (const int64_t sign : {1, -1}) {
    const auto gap = add_scaled(*e, *d, -sign);
    if (!gap || !gap->is_constant()) continue;
    if (gap->constant == 0 || gap->constant == -1)
      return m.graph().make(sign > 0 ? Op::Min : Op::Max, {x, y});
  }
  return {};
}

UOp ordered_conjunction(const Match& m) {
  return connective(m, Op::And);
}
UOp ordered_disjunction(const Match& m) {
  return connective(m, Op::Or);
}

}  // namespace tiny

#include "rules/weighted_mean.h"

#include <algorithm>
#include <optional>

#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/rebuild.h"
#include "rules/sign.h"

namespace tiny {

namespace {

constexpr size_t kFactorsMax = 8;

bool never(const UOp&) {
  return false;
}

bool is_sum(const UOp& u) {
  return u.op() == Op::Reduce && u.reduce_arg().op == Op::Add && u.dtype().is_float();
}

// The factors of a product of products; none if there are too many.
std::vector<UOp> factors_of(const UOp& product) {
  std::vector<UOp> factors{product};
  for (size_t i = 0; i < factors.size();) {
    const UOp u = factors[i];
    if (u.op() != Op::Mul) {
      ++i;
      continue;
    }
    if (factors.size() == kFactorsMax) return {};
    factors[i] = u.src(0);
    factors.insert(factors.begin() + static_cast<std::ptrdiff_t>(i) + 1, u.src(1));
  }
  return factors;
}

bool is_weight(const UOp& u) {
  return u.op() == Op::Exp && never_positive(u.src(0));
}

// Whether `total` sums values of which `weight` is one, and is the same for all that `closed` name.
bool is_total(const UOp& total, const UOp& weight, std::span<const UOp> closed) {
  if (!is_sum(total) || total.dtype() != weight.dtype()) return false;
  const std::vector<UOp> below = topological({&total, 1});
  const auto is_below = [&](const UOp& range) {
    return std::ranges::find(below, range) != below.end();
  };
  return std::ranges::none_of(closed, is_below) && is_among_reduced(weight, total);
}

// A product without one of its factors or divisors, and what is to be done to the sum instead.
struct Taken {
  std::vector<UOp> factors;
  UOp multiplier;  // or no node
  UOp divisor;     // or no node
};

// Whether there is a term to sum: the sum of none is 0, whatever all would be divided by.
bool has_terms(std::span<const UOp> closed) {
  return std::ranges::all_of(closed, [](const UOp& r) { return bounds(r.src(0)).lo >= 1; });
}

std::optional<Taken> take_quotient(const UOp& reduce) {
  const std::vector<UOp> factors = factors_of(reduce.src(0));
  const std::span<const UOp> closed = reduce.src().subspan(1);
  if (factors.size() < 2 || !has_terms(closed)) return std::nullopt;
  for (size_t i = 0; i < factors.size(); ++i) {
    const UOp& quotient = factors[i];
    if (quotient.op() != Op::Div) continue;
    Taken taken{factors, {}, {}};
    if (is_weight(quotient.src(0)) && is_total(quotient.src(1), quotient.src(0), closed)) {
      taken.factors[i] = quotient.src(0);
      taken.divisor = quotient.src(1);
      return taken;
    }
    const auto is_its = [&](const UOp& weight) {
      return is_weight(weight) && is_total(quotient.src(1), weight, closed);
    };
    if (!quotient.src(0).is_const() || std::ranges::none_of(factors, is_its)) continue;
    taken.factors.erase(taken.factors.begin() + static_cast<std::ptrdiff_t>(i));
    taken.multiplier = quotient;
    return taken;
  }
  return std::nullopt;
}

UOp divided_after(const UOp& reduce) {
  const std::optional<Taken> taken = take_quotient(reduce);
  if (!taken || taken->factors.size() < 2) return reduce;
  std::vector<UOp> src(reduce.src().begin(), reduce.src().end());
  src[0] = taken->factors.front();
  for (size_t i = 1; i < taken->factors.size(); ++i) src[0] = mul(src[0], taken->factors[i]);
  const UOp sum = reduce.graph().make(Op::Reduce, std::move(src), reduce.arg(), reduce.dtype());
  return taken->divisor ? div(sum, taken->divisor) : mul(sum, taken->multiplier);
}

}  // namespace

std::vector<UOp> divide_after_sums(std::span<const UOp> roots) {
  const std::vector<UOp> order = topological(roots);
  const auto has_op = [&](Op op) {
    return std::ranges::any_of(order, [op](const UOp& u) { return u.op() == op; });
  };
  if (!has_op(Op::Exp) || !has_op(Op::Div)) return {roots.begin(), roots.end()};
  return rebuild(roots, never, [](const UOp&, const UOp& now) {
    return is_sum(now) && now.src(0).op() == Op::Mul ? divided_after(now) : now;
  });
}

}  // namespace tiny

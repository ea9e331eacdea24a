#include "cost/borders.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/bounds.h"

namespace tiny {

namespace {

// The greatest value of `index` where `fact` is not negative: of the index and a multiple of the
// fact that takes the fact's first range out of it.
int64_t most_under(const Affine& index, const UOp& fact) {
  const std::optional<Affine> slack = affine(fact);
  if (!slack || slack->terms.empty()) return INT64_MAX;
  const AffineTerm& first = slack->terms.front();
  const int64_t c = index.coefficient(first.atom);
  if (c == 0 || c % first.coefficient != 0 || c / first.coefficient >= 0) return INT64_MAX;
  const std::optional<Affine> without = add_scaled(index, *slack, -(c / first.coefficient));
  return without ? BoundsCache().of(*without).hi : INT64_MAX;
}

}  // namespace

Reach reach_beyond(const UOp& index, int64_t size, std::span<const UOp> facts) {
  const Interval all = bounds(index);
  int64_t last = all.hi;
  if (last >= size && !facts.empty())
    if (const std::optional<Affine> sum = affine(index))
      for (const UOp& fact : facts) last = std::min(last, most_under(*sum, fact));
  return {std::max(-static_cast<double>(all.lo), 0.0),
          std::max(static_cast<double>(last) - static_cast<double>(size - 1), 0.0)};
}

double turns_beyond(const Reach& reach, const std::optional<Affine>& index, const UOp& range) {
  const int64_t step = index ? std::abs(index->coefficient(range)) : 0;
  if (step == 0) return std::numeric_limits<double>::infinity();
  return std::ceil(reach.most() / static_cast<double>(step));
}

}  // namespace tiny

#include "autograd/shared_adjoints.h"

#include <algorithm>

#include "shape/shape.h"

namespace tiny {

void SharedAdjoints::plan(const Backward& step) {
  std::vector<UOp> kept;
  const auto is_kept = [&](const UOp& f) { return std::ranges::find(kept, f) != kept.end(); };
  for (Sum& sum : sums_) {
    const Adjoint reached = step.adjoint_of(sum.node);
    if (!reached || !reached.is_product()) continue;
    double more = 0;
    const std::vector<UOp> factors = reached.distinct_factors();
    for (const UOp& f : factors) more += is_kept(f) ? 0 : elements_at_most(f);
    // A state is read and written in each step, a factor written and read once.
    sum.is_after = more <= elements_at_most(sum.node);
    if (!sum.is_after) continue;
    for (const UOp& f : factors)
      if (!is_kept(f)) kept.push_back(f);
  }
  kept_ = kept.size();
}

void SharedAdjoints::keep(const Backward& step, std::vector<Tensor>& outputs) {
  const size_t before = outputs.size();
  for (Sum& sum : sums_) {
    if (!sum.is_after) continue;
    sum.product = step.adjoint_of(sum.node);
    sum.outputs.clear();
    for (const UOp& f : sum.product.distinct_factors()) {
      const auto first = outputs.begin() + static_cast<ptrdiff_t>(before);
      const auto at =
          std::find_if(first, outputs.end(), [&](const Tensor& t) { return t.node() == f; });
      sum.outputs.push_back(static_cast<size_t>(at - outputs.begin()));
      if (at == outputs.end()) outputs.emplace_back(step.context(), f);
    }
  }
}

Adjoint SharedAdjoints::after(size_t i, const std::vector<Tensor>& outputs) const {
  std::vector<UOp> factors;
  for (const size_t o : sums_[i].outputs) factors.push_back(outputs[o].node());
  return sums_[i].product.over_steps(factors);
}

}  // namespace tiny

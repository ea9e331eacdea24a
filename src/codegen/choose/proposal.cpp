#include "codegen/choose/proposal.h"

#include <utility>

#include "base/error.h"

namespace tiny {

namespace {

constexpr int64_t kCopiesMax = 64;  // more find no registers
constexpr int64_t kCodeMax = 2000;  // instructions: what the first level of cache holds, about

}  // namespace

Estimate cost_of(const Proposal& proposal, const Machine& target) {
  const Estimate cost = estimate(proposal.made.kernel, target);
  return proposal.share_of_products == 1
             ? cost
             : with_matrix_unit(cost, proposal.share_of_products, target);
}

Proposal propose(OptimisedKernel made, const Machine& target) {
  const Estimate cost = estimate(made.kernel, target);
  return {std::move(made), cost, {}, 1};
}

std::optional<Proposal> extended(const Proposal& proposal, std::span<const Option> options,
                                 const Machine& target) {
  OptimisedKernel made = proposal.made;
  try {
    for (const Option& option : options) {
      made.kernel = apply_option(made.kernel, option);
      made.options.push_back(option);
    }
  } catch (const Error& e) {
    if (e.status() != Status::InvalidArgument) throw;
    return std::nullopt;
  }
  Proposal out = propose(std::move(made), target);
  if (out.cost.copies > kCopiesMax || out.cost.code > kCodeMax) return std::nullopt;
  return out;
}

}  // namespace tiny

// A list of options as it grows, with the kernel that it makes and what that is estimated to take.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "cost/estimate.h"
#include "cost/machine.h"

namespace tiny {

struct Proposal {
  OptimisedKernel made;
  Estimate cost;
  std::string_view strategy;
  double share_of_products = 1;  // with_matrix_unit's, where tiles form them
};

// What it takes as it is made now.
Estimate cost_of(const Proposal& proposal, const Machine& target);

Proposal propose(OptimisedKernel made, const Machine& target);
// With more options; none where they do not fit the kernel or ask too much of the target.
std::optional<Proposal> extended(const Proposal& proposal, std::span<const Option> options,
                                 const Machine& target);

}  // namespace tiny

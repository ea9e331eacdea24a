// The options for a kernel, chosen from strides, extents, the register budget and target data.  No
// operator is named: a matrix product, a convolution and a softmax differ in their strides alone.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/options/options.h"
#include "cost/estimate.h"
#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

// How often a program runs, and what is computed on the way to it: a guess at the least.
inline constexpr double kProgramRuns = 300;
inline constexpr double kRunsOnce = 1;

// How many times less a form must be estimated to take before it has the place of one that was
// measured to be good: the first strategies' lists, a join.  Estimates err.
inline constexpr double kClearly = 1.25;

std::vector<Option> choose_options(const Kernel& kernel, const Machine& target);

// What a strategy proposed (codegen/choose/strategies.h), and what it was estimated to take.
struct ProposalNote {
  std::string_view strategy;
  std::vector<Option> options;
  Estimate cost;
  bool is_taken = false;
};

// The same with the kernel that they make.
struct OptimisedKernel {
  std::vector<Option> options;
  Kernel kernel;
  std::vector<ProposalNote> proposed;  // all, where several were
  double seconds = 0;                  // as estimated
};
// The longer lists are looked for the more often the code is to run.
OptimisedKernel optimise(const Kernel& kernel, const Machine& target, double runs = kProgramRuns);

// Whether the target has vectors for everything that the kernel computes.
bool vectorises(const Kernel& kernel, const Target& target);

}  // namespace tiny

#include "codegen/choose/strategies.h"

#include <algorithm>
#include <utility>

#include "codegen/choose/finish.h"

namespace tiny {

namespace {

// What another list must be estimated to save before it takes the place of a family's: estimates
// err, and the families' forms were measured.
constexpr double kClearly = 1.6;

void propose_families(const Kernel& kernel, const Machine& target, double,
                      std::vector<Proposal>& to) {
  to.push_back(propose(choose_by_family(kernel, target), target));
}

constexpr Strategy kStrategies[] = {
    {"families", "contractions, rows, windows and copies have forms that were measured",
     propose_families},
    {"generic", "any kernel has lanes, tiles in registers and an order: what fits no family well",
     propose_generic},
};

}  // namespace

std::span<const Strategy> strategies() {
  return kStrategies;
}

OptimisedKernel optimise(const Kernel& kernel, const Machine& target, double runs) {
  std::vector<Proposal> proposals;
  std::vector<std::string_view> names;
  for (const Strategy& s : kStrategies) {
    s.propose(kernel, target, runs, proposals);
    names.resize(proposals.size(), s.name);
  }
  for (Proposal& p : proposals) {
    const size_t before = p.made.options.size();
    p.made = finish(std::move(p.made), target);
    if (p.made.options.size() != before) p.cost = estimate(p.made.kernel, target);
  }
  std::vector<ProposalNote> notes;
  for (size_t i = 0; i < proposals.size() && proposals.size() > 1; ++i)
    notes.push_back({names[i], proposals[i].made.options, proposals[i].cost});
  const auto seconds = [](const Proposal& p) { return p.cost.seconds; };
  Proposal& first = proposals.front();
  Proposal& best = *std::ranges::min_element(proposals, {}, seconds);
  const bool is_better = best.cost.seconds * kClearly < first.cost.seconds;
  OptimisedKernel chosen = std::move(is_better ? best.made : first.made);
  chosen.proposed = std::move(notes);
  return chosen;
}

std::vector<Option> choose_options(const Kernel& kernel, const Machine& target) {
  return optimise(kernel, target).options;
}

}  // namespace tiny

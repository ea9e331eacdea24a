#include "codegen/choose/strategies.h"

#include <algorithm>
#include <utility>

#include "codegen/choose/finish.h"

namespace tiny {

namespace {

bool always(const Seen&) {
  return true;
}

constexpr Strategy kStrategies[] = {
    {"elementwise", ComputedBy::OneThread, is_elementwise, propose_elementwise,
     "what is read once is bound by lanes that lie side by side"},
    {"contraction", ComputedBy::OneThread, is_contraction, propose_contraction,
     "sums of products are bound by what is loaded for each: tiles in registers and packed panels, "
     "sliding windows, or lanes along the sum"},
    {"computed words", ComputedBy::OneThread, has_computed_words, propose_computed_words,
     "an operand that is computed on the way (quantised) is so once for all columns, with lanes"},
    {"staged operand", ComputedBy::OneThread, has_staged_operand, propose_staged_operand,
     "what is the same for every output is computed once, before its contraction"},
    {"row tiles", ComputedBy::OneThread, has_rows, propose_row_tiles,
     "products of products (attention): a tile of rows goes through all of them while it is near"},
    {"rows", ComputedBy::OneThread, may_have_rows, propose_rows,
     "several reductions of each row: it is read once, and walked again in the cache"},
    {"generic", ComputedBy::OneThread, always, propose_generic,
     "any kernel has lanes, tiles in registers and an order: what fits no form well"},
    {"elements", ComputedBy::Groups, always, propose_group_elements,
     "any kernel has elements that threads compute side by side, as they lie, 16 bytes at once"},
    {"transpose", ComputedBy::Groups, has_turned, propose_turned_square,
     "what is read by rows and stored by columns is turned in shared memory: both lie side by "
     "side"},
    {"shared rows", ComputedBy::Groups, has_shared_sums, propose_group_rows,
     "a sum along what lies side by side is a group's: parts are folded, and a row is read once"},
    {"shared columns", ComputedBy::Groups, has_shared_sums, propose_group_columns,
     "sums of columns: threads lie along the columns, and others have parts of the same sums"},
    {"shared tiles", ComputedBy::Groups, is_group_product, propose_group_tiles,
     "a product of two large sides is bound by what is loaded: tiles in shared memory and "
     "registers"},
    {"chains", ComputedBy::Groups, is_group_chain, propose_group_chain,
     "products of products (attention): a tile of rows runs along blocks, and no score is in "
     "memory"},
    {"matrices", ComputedBy::Groups, is_matrix_product, propose_group_matrices,
     "a product of types that warps multiply as matrices takes a tenth of the arithmetic"},
};

}  // namespace

Seen::Seen(const Kernel& of, const Machine& on, double times)
    : kernel(of), machine(on), runs(times), table(access_table(of)) {
  for (const ClosureInfo& c : table.closures)
    if (!c.store) reductions.push_back(&c);
}

std::span<const Strategy> strategies() {
  return kStrategies;
}

std::vector<Proposal> all_proposals(const Seen& seen) {
  std::vector<Proposal> proposals;
  for (const Strategy& s : kStrategies) {
    const bool is_for = (s.by == ComputedBy::Groups) == seen.machine.computes_in_groups();
    if (!is_for || !s.applies(seen)) continue;
    const size_t before = proposals.size();
    s.propose(seen, proposals);
    for (size_t i = before; i < proposals.size(); ++i) proposals[i].strategy = s.name;
  }
  if (seen.machine.computes_in_groups()) return proposals;  // each has its launch
  for (Proposal& p : proposals) {
    const size_t before = p.made.options.size();
    p.made = finish(std::move(p.made), seen.machine);
    if (p.made.options.size() != before) p.cost = estimate(p.made.kernel, seen.machine);
  }
  return proposals;
}

OptimisedKernel optimise(const Kernel& kernel, const Machine& machine, double runs) {
  std::vector<Proposal> proposals = all_proposals(Seen(kernel, machine, runs));
  const auto seconds = [](const Proposal& p) { return p.cost.seconds; };
  Proposal& first = proposals.front();
  Proposal& best = *std::ranges::min_element(proposals, {}, seconds);
  // Those of groups were not measured.
  const double clearly = machine.computes_in_groups() ? 1 : kClearly;
  Proposal& taken = best.cost.seconds * clearly < first.cost.seconds ? best : first;
  std::vector<ProposalNote> notes;
  for (const Proposal& p : proposals)
    if (proposals.size() > 1) notes.push_back({p.strategy, p.made.options, p.cost, &p == &taken});
  const double taken_seconds = taken.cost.seconds;
  OptimisedKernel chosen = std::move(taken.made);
  chosen.seconds = taken_seconds;
  chosen.proposed = std::move(notes);
  return chosen;
}

std::vector<Option> choose_options(const Kernel& kernel, const Machine& machine) {
  return optimise(kernel, machine).options;
}

}  // namespace tiny

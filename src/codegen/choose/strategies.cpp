#include "codegen/choose/strategies.h"

#include <algorithm>
#include <utility>

#include "codegen/choose/finish.h"
#include "ir/index_memo.h"

namespace tiny {

namespace {

// How many times less half vectors must be estimated to take than whole ones, of the same strategy.
// On a Zen 4, 2026-11-29: of 29 census models whose lists change 1.0 to 1.03 won, below 1 lost.
constexpr double kHalvesGain = 1.02;

bool always(const Seen&) {
  return true;
}

constexpr Strategy kStrategies[] = {
    // What is read once is bound by lanes that lie side by side.
    {"elementwise", ComputedBy::OneThread, is_elementwise, propose_elementwise},
    // Sums of products are bound by what is loaded for each: tiles in registers and packed panels,
    // sliding windows, or lanes along the sum.
    {"contraction", ComputedBy::OneThread, is_contraction, propose_contraction},
    // Products of bytes that a matrix unit forms take an eighth of the arithmetic.
    {"matrix tiles", ComputedBy::OneThread, has_matrix_tiles, propose_matrix_tiles},
    // An operand that is computed on the way (quantised) is so once for all columns, with lanes.
    {"computed words", ComputedBy::OneThread, has_computed_words, propose_computed_words},
    // What is the same for every output is computed once, before its contraction.
    {"staged operand", ComputedBy::OneThread, has_staged_operand, propose_staged_operand},
    // Products of products (attention): a tile of rows goes through all of them while it is near.
    {"row tiles", ComputedBy::OneThread, has_rows, propose_row_tiles},
    // Several reductions of each row: it is read once, and walked again in the cache.
    {"rows", ComputedBy::OneThread, may_have_rows, propose_rows},
    // Any kernel has lanes, tiles in registers and an order: what fits no form well.
    {"generic", ComputedBy::OneThread, always, propose_generic},
    // Any kernel has elements that threads compute side by side, as they lie, 16 bytes at once.
    {"elements", ComputedBy::Groups, always, propose_group_elements},
    // What is read by rows and stored by columns is turned in shared memory: both lie side by side.
    {"transpose", ComputedBy::Groups, has_turned, propose_turned_square},
    // A sum along what lies side by side is a group's: parts are folded, and a row is read once.
    {"shared rows", ComputedBy::Groups, has_shared_sums, propose_group_rows},
    // Sums of columns: threads lie along the columns, and others have parts of the same sums.
    {"shared columns", ComputedBy::Groups, has_shared_sums, propose_group_columns},
    // A product of two large sides is bound by what is loaded: tiles in shared memory and
    // registers.
    {"shared tiles", ComputedBy::Groups, is_group_product, propose_group_tiles},
    // Products of products (attention): a tile of rows runs along blocks, and no score is in
    // memory.
    {"chains", ComputedBy::Groups, is_group_chain, propose_group_chain},
    // A product of types that warps multiply as matrices takes a tenth of the arithmetic.
    {"matrices", ComputedBy::Groups, is_matrix_product, propose_group_matrices},
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

namespace {

// The rows up to the one of this name.
std::vector<Proposal> proposals_up_to(std::string_view last, const Seen& seen) {
  std::vector<Proposal> proposals;
  for (const Strategy& s : kStrategies) {
    const bool is_for = (s.by == ComputedBy::Groups) == seen.machine.computes_in_groups();
    if (is_for && s.applies(seen)) {
      const size_t before = proposals.size();
      s.propose(seen, proposals);
      for (size_t i = before; i < proposals.size(); ++i) proposals[i].strategy = s.name;
    }
    if (s.name == last) break;
  }
  if (seen.machine.computes_in_groups()) return proposals;  // each has its launch
  for (Proposal& p : proposals) {
    const size_t before = p.made.options.size();
    p.made = finish(std::move(p.made), seen.machine);
    if (p.made.options.size() != before) p.cost = cost_of(p, seen.machine);
  }
  return proposals;
}

}  // namespace

std::vector<Proposal> all_proposals(const Seen& seen) {
  return proposals_up_to({}, seen);
}

namespace {

// Whether lanes are left out in the last vectors of some range.
bool has_cut_lanes(const Kernel& kernel) {
  RangeSet lanes = 0;
  for (size_t i = 0; i < kernel.ranges.size(); ++i)
    if (kernel.ranges[i].kind == RangeKind::Vec) lanes |= RangeSet{1} << i;
  return std::ranges::any_of(kernel.facts, [&](const UOp& fact) {
    return std::ranges::any_of(topological({&fact, 1}), [&](const UOp& u) {
      return u.op() == Op::Range && (lanes >> kernel.position(u) & 1) != 0;
    });
  });
}

// The first, unless another is estimated to take so many times less; one that leaves the kernel as
// it is was not made with measurements in mind, and any estimate speaks against it.
size_t best_of(std::span<const Proposal> proposals, double clearly) {
  const auto seconds = [](const Proposal& p) { return p.cost.seconds; };
  if (proposals.front().made.options.empty()) clearly = 1;
  const auto best = std::ranges::min_element(proposals, {}, seconds);
  const bool is_clear = best->cost.seconds * clearly < proposals.front().cost.seconds;
  return is_clear ? static_cast<size_t>(best - proposals.begin()) : 0;
}

// What the strategy of a proposal proposes where vectors are as wide as a unit that computes half
// of a register at once: where lanes are left out, fewer of them are.
std::vector<Proposal> of_half_vectors(const Seen& seen, const Proposal& wide) {
  Machine narrow = seen.machine;
  narrow.vector_bytes = narrow.unit_bytes;
  std::vector<Proposal> proposals =
      proposals_up_to(wide.strategy, Seen(seen.kernel, narrow, seen.runs));
  std::erase_if(proposals, [&](const Proposal& p) { return p.strategy != wide.strategy; });
  for (Proposal& p : proposals) p.cost = cost_of(p, seen.machine);
  return proposals;
}

}  // namespace

OptimisedKernel optimise(const Kernel& kernel, const Machine& machine, double runs) {
  const IndexMemoScope memo(kernel.roots.front().graph());
  const Seen seen(kernel, machine, runs);
  std::vector<Proposal> proposals = all_proposals(seen);
  // Those of groups were not measured.
  size_t taken = best_of(proposals, machine.computes_in_groups() ? 1 : kClearly);
  if (machine.unit_bytes < machine.vector_bytes && has_cut_lanes(proposals[taken].made.kernel)) {
    const double wide = proposals[taken].cost.seconds;
    for (Proposal& half : of_half_vectors(seen, proposals[taken])) {
      const double least = std::min(wide / kHalvesGain, proposals[taken].cost.seconds);
      if (half.cost.seconds < least) taken = proposals.size();
      proposals.push_back(std::move(half));
    }
  }
  std::vector<ProposalNote> notes;
  for (const Proposal& p : proposals)
    if (proposals.size() > 1)
      notes.push_back({p.strategy, p.made.options, p.cost, &p == &proposals[taken]});
  OptimisedKernel chosen = std::move(proposals[taken].made);
  chosen.seconds = proposals[taken].cost.seconds;
  chosen.proposed = std::move(notes);
  return chosen;
}

std::vector<Option> choose_options(const Kernel& kernel, const Machine& machine) {
  return optimise(kernel, machine).options;
}

}  // namespace tiny

// A contraction of what another reduction computes, the same for every output: that is computed
// once, before it, and what is left is one reduction.
#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/choose/contraction.h"
#include "codegen/choose/fills.h"
#include "codegen/choose/lanes.h"
#include "codegen/choose/shared_values.h"
#include "codegen/choose/strategies.h"

namespace tiny {

namespace {

constexpr double kOpaqueLoad = 64;  // with lanes at addresses of their own, in loads of a vector
constexpr double kApartLoad = 16;   // with a line for each lane

// The range along which a staged reduction and what it fills cost the least.
std::optional<size_t> lanes_of_fill(const Editor& edit, const ClosureInfo& fill) {
  std::optional<size_t> best;
  double best_cost = kLaneCostMax;
  for (size_t i = 0; i < edit.kernel().ranges.size(); ++i) {
    if (!(fill.below & bit(i)) || edit.const_extent(i) * 2 < edit.lanes() ||
        edit.table().opaque & bit(i))
      continue;
    double cost = fill.own & bit(i) ? 1 : 0;  // they are folded
    for (const AccessInfo& a : edit.table().accesses) {
      if (a.store || !reaches(fill.node, a.node)) continue;
      const int64_t stride = a.strides[i];
      cost += stride == 0               ? 0
              : stride == 1             ? 1
              : stride == kOpaqueStride ? kOpaqueLoad
                                        : kApartLoad;
    }
    const auto lanes = static_cast<double>(edit.lanes());
    cost *= std::ceil(edit.extent(i) / lanes) * lanes / edit.extent(i);
    if (cost < best_cost) best = i, best_cost = cost;
  }
  return best;
}

void stage_operand(Editor& edit, const UOp& inner) {
  const std::vector<UOp> order = topological(edit.kernel().roots);
  const int64_t value = std::ranges::find(order, inner) - order.begin();
  edit.apply({OptionKind::Stage, -1, value, {}, 0, true});
  edit.restart();
}

// The reduction that no other reads.
const ClosureInfo* outermost(const std::vector<ClosureInfo>& closures) {
  const auto is_read = [&](const ClosureInfo& c) {
    return std::ranges::any_of(closures, [&](const ClosureInfo& other) {
      return !other.store && !(other.node == c.node) && reaches(other.node, c.node);
    });
  };
  for (const ClosureInfo& c : closures)
    if (!c.store && !is_read(c)) return &c;
  return nullptr;
}

}  // namespace

// Two reductions, of which the second reduces a value that is made of the first's result and the
// same for every output.
bool has_staged_operand(const Seen& seen) {
  if (seen.reductions.size() != 2) return false;
  const ClosureInfo &inner = *seen.reductions[0], &outer = *seen.reductions[1];
  const RangeSet free = inner.below & ~inner.own;
  return reaches(outer.node, inner.node) && free && (free & ~outer.own) == 0;
}

void propose_staged_operand(const Seen& seen, std::vector<Proposal>& to) {
  Editor edit(seen.kernel, seen.machine, seen.table);
  stage_operand(edit, seen.reductions[0]->node);
  // The first reduction is the one that fills the stage now.
  const auto fill =
      std::ranges::find_if(edit.table().closures, [](const ClosureInfo& c) { return !c.store; });
  const std::optional<size_t> lane = lanes_of_fill(edit, *fill);
  Words none;
  if (const ClosureInfo* product = outermost(edit.table().closures))
    Contraction(edit, none, *product).run();
  // Last, since a dimension of the stage that is split is no longer read as it lies.
  if (lane && edit.lanes() > 1) edit.vector_tile(*lane, kFillVectors);
  share_values(edit);
  to.push_back(propose(edit.take(), seen.machine));
}

}  // namespace tiny

#include "schedule/kernel_origins.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/sort.h"
#include "ir/node_map.h"

namespace tiny {

namespace {

// A node's place among all, and whose work it does.
struct Placed {
  uint32_t place = 0;
  Origin origin = kNobody;     // a name that somebody gave
  Origin operation = kNobody;  // or else the operator
};

bool is_given(Origin origin) {
  return origin != kNobody && !is_operator(origin);
}

NodeTable<Placed> placed_nodes(std::span<const UOp> roots) {
  const std::vector<UOp> order = topological(roots, has_memory);
  NodeTable<Placed> placed;
  placed.reserve(order.size());
  for (const UOp& u : order) {
    const Origin origin = u.node()->origin;
    placed.emplace(u.node(),
                   {static_cast<uint32_t>(placed.size()), is_given(origin) ? origin : kNobody,
                    is_operator(origin) ? origin : kNobody});
  }
  // Users first: by now all of them have told a source without a name what they are part of.
  for (const UOp& u : order | std::views::reverse) {
    if (has_memory(u)) continue;
    const Origin origin = placed.at(u.node()).origin;
    const Origin own = origin == kNobody ? kSeveral : origin;
    for (const UOp& s : u.src()) {
      if (is_given(s.node()->origin)) continue;
      Origin& known = placed.at(s.node()).origin;
      known = known == kNobody || known == own ? own : kSeveral;
    }
  }
  return placed;
}

// What one kernel computes, once each, by place.
class Walk {
 public:
  explicit Walk(const NodeTable<Placed>& placed) : placed_(placed) {}

  std::vector<Origin> operator()(const ScheduledKernel& kernel) {
    NodeSet reads;
    for (const ScheduledKernel::Read& read : kernel.reads) reads.insert(read.base.node());
    NodeSet seen;
    std::vector<const UOp*> stack;
    std::vector<Placed> found;
    for (const ScheduledStore& store : kernel.stores) {
      // A part of a concatenation that has a buffer of its own is copied.
      if (store.destination.op() == Op::Concat && reads.contains(store.value.node())) {
        add(store.destination, found);
        continue;
      }
      // It may read an older version of what it stores.
      seen.insert(store.value.node());
      stack.push_back(&store.value);
      // A copy that the schedule made is the work of what it is made for.
      if (!placed_.find(store.value.node()) && !has_memory(store.value))
        add(store.destination, found);
    }
    while (!stack.empty()) {
      const UOp& u = *stack.back();
      stack.pop_back();
      if (has_memory(u)) continue;
      if (!u.src().empty()) add(u, found);
      // An older version of memory is the work of the kernels that wrote it.
      // So is what a scatter updates.
      for (const UOp& s : u.src().subspan(u.op() == Op::Scatter ? 1 : 0))
        if (!reads.contains(s.node()) && s.op() != Op::After && seen.insert(s.node()))
          stack.push_back(&s);
    }
    sort_stable(found, {}, &Placed::place);
    std::vector<Origin> origins;
    for (const Placed& at : found)
      if (std::ranges::find(origins, at.origin) == origins.end()) origins.push_back(at.origin);
    return origins;
  }

 private:
  // What is known of a node's work.
  void add(const UOp& u, std::vector<Placed>& found) const {
    const Placed* at = placed_.find(u.node());
    if (!at) return;
    const Origin origin = is_named(at->origin) ? at->origin : at->operation;
    if (is_named(origin)) found.push_back({at->place, origin});
  }

  const NodeTable<Placed>& placed_;
};

}  // namespace

std::vector<std::vector<Origin>> kernel_origins(const Schedule& schedule,
                                                std::span<const UOp> roots) {
  const NodeTable<Placed> placed = placed_nodes(roots);
  std::vector<std::vector<Origin>> origins;
  Walk walk(placed);
  for (const ScheduledKernel& kernel : schedule.kernels) origins.push_back(walk(kernel));
  return origins;
}

}  // namespace tiny

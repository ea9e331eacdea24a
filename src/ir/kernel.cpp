#include "ir/kernel.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "ir/source_places.h"

namespace tiny {

const char* name_of(RangeKind kind) {
  static constexpr const char* kNames[] = {"loop",   "upcast", "unroll", "vec",
                                           "thread", "dot",    "local"};
  return kNames[static_cast<size_t>(kind)];
}

size_t Kernel::position(const UOp& range) const {
  for (size_t i = 0; i < ranges.size(); ++i)
    if (ranges[i].range == range) return i;
  invariant(false, "the range belongs to the kernel");
  return 0;
}

size_t Kernel::find_range(int64_t number) const {
  const auto has_number = [&](const KernelRange& r) { return r.range.int_arg() == number; };
  return static_cast<size_t>(std::ranges::find_if(ranges, has_number) - ranges.begin());
}

int64_t Kernel::next_range_number() const {
  int64_t next = 0;
  for (const KernelRange& r : ranges) next = std::max(next, r.range.int_arg() + 1);
  return next;
}

void add_free_ranges(const Kernel& kernel, std::span<const UOp> roots, FreeRanges& known) {
  // Of a node, from what is free in its sources.
  const auto free_over = [&](const UOp& u, RangeSet set) {
    if (u.op() == Op::Range) set |= bit(kernel.position(u));
    if (closes_ranges(u))
      for (const UOp& range : u.src().subspan(1)) set &= ~bit(kernel.position(range));
    return set;
  };
  if (known.size() == 0) {
    const std::vector<UOp> order = topological(roots);
    const SourcePlaces places(order);
    std::vector<RangeSet> sets(order.size());
    known.reserve(order.size());
    auto next = places.all().begin();
    for (size_t k = 0; k < order.size(); ++k) {
      const UOp& u = order[k];
      RangeSet below = 0;
      for (size_t i = u.src().size(); i > 0; --i) below |= sets[*next++];
      sets[k] = free_over(u, below);
      known.emplace(u.node(), sets[k]);
    }
    return;
  }
  // Most of it is known: what is not is walked alone.
  std::vector<const UOp*> stack;
  for (const UOp& root : roots) stack.push_back(&root);
  while (!stack.empty()) {
    const UOp& u = *stack.back();
    const size_t before = stack.size();
    if (!known.contains(u.node()))
      for (const UOp& s : u.src())
        if (!known.contains(s.node())) stack.push_back(&s);
    if (stack.size() > before) continue;
    stack.pop_back();
    if (known.contains(u.node())) continue;
    RangeSet below = 0;
    for (const UOp& s : u.src()) below |= known.at(s.node());
    known.emplace(u.node(), free_over(u, below));
  }
}

bool has_lanes_of_one_range(const Kernel& kernel) {
  RangeSet lanes = 0;
  for (size_t i = 0; i < kernel.ranges.size(); ++i)
    if (kernel.ranges[i].kind == RangeKind::Vec) lanes |= bit(i);
  if (std::popcount(lanes) < 2) return true;
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  return std::ranges::none_of(topological(kernel.roots), [&](const UOp& u) {
    RangeSet over = free.at(u.node());
    for (size_t i = 1; closes_ranges(u) && i < u.src().size(); ++i)
      over |= bit(kernel.position(u.src(i)));
    return std::popcount(over & lanes) > 1;
  });
}

namespace {

// Looks at every node that the roots reach, in no order: a list of them takes longer than the walk.
template <class Look>
void for_each_below(std::span<const UOp> roots, const Look& look) {
  if (roots.empty()) return;
  const uint64_t visit = roots.front().graph().next_visit();
  std::vector<std::span<const UOp>> rest{roots};
  while (!rest.empty()) {
    const std::span<const UOp> nodes = rest.back();
    rest.pop_back();
    for (const UOp& u : nodes) {
      if (std::exchange(u.node()->visit, visit) == visit) continue;
      look(u);
      if (!u.src().empty()) rest.push_back(u.src());
    }
  }
}

}  // namespace

RangeSet shared_columns(const Kernel& kernel) {
  constexpr size_t kSources = 7;  // of a term whose operands are shared
  RangeSet columns = 0;
  for_each_below(kernel.roots, [&](const UOp& u) {
    if (u.op() == Op::MatrixTerm && u.src().size() == kSources)
      columns |= bit(kernel.position(u.src(3)));
  });
  return columns;
}

RangeSet local_ranges(const Kernel& kernel) {
  RangeSet local = 0;
  for (size_t i = 0; i < kernel.ranges.size(); ++i)
    if (kernel.ranges[i].kind == RangeKind::Local) local |= bit(i);
  return local;
}

bool is_grouped(const Kernel& kernel) {
  bool grouped = local_ranges(kernel) != 0;
  for_each_below(kernel.roots,
                 [&](const UOp& u) { grouped |= is_stage(u) && u.stage_arg().is_shared; });
  return grouped;
}

size_t thread_ranges(const Kernel& kernel) {
  size_t count = 0;
  while (count < kernel.ranges.size() && kernel.ranges[count].kind == RangeKind::Thread) ++count;
  return count;
}

namespace {

// The places in the indices of stores, which loads may have as well.
std::vector<UOp> places_of(const Kernel& kernel) {
  std::vector<UOp> indices;
  for (const UOp& root : kernel.roots)
    if (root.op() == Op::Store)
      for (const UOp& index : root.src().subspan(2))
        if (!index.src().empty()) indices.push_back(index);
  std::vector<UOp> places = topological(indices);
  std::erase_if(places, [](const UOp& u) { return u.op() != Op::Place; });
  return places;
}

}  // namespace

bool runs_along(std::span<const UOp> nodes, const UOp& range) {
  return std::ranges::any_of(
      nodes, [&](const UOp& u) { return u.op() == Op::Running && u.src(1) == range; });
}

RangeSet ordered_ranges(const Kernel& kernel) {
  RangeSet ordered = 0;
  bool has_places = false;
  for_each_below(kernel.roots, [&](const UOp& u) {
    has_places |= u.op() == Op::Place;
    if (u.op() != Op::Running) return;
    const size_t along = kernel.position(u.src(1));
    if (!kernel.ranges[along].reduced) ordered |= bit(along);
  });
  if (!has_places) return ordered;
  for (const UOp& place : places_of(kernel))
    for (const UOp& r : topological({&place.src(1), 1}))
      if (r.op() == Op::Range) ordered |= bit(kernel.position(r));
  return ordered;
}

bool stores_by_index(const Kernel& kernel) {
  return !places_of(kernel).empty();
}

void map_kernel(Kernel& kernel, const MakeNode& make) {
  std::vector<UOp> nodes = kernel.roots;
  nodes.insert(nodes.end(), kernel.facts.begin(), kernel.facts.end());
  for (const KernelPrefetch& p : kernel.prefetches) nodes.push_back(p.index);
  const std::vector<UOp> mapped = map_nodes(nodes, nullptr, make);
  auto next = mapped.begin();
  for (UOp& root : kernel.roots) root = *next++;
  for (UOp& fact : kernel.facts) fact = *next++;
  for (KernelPrefetch& p : kernel.prefetches) p.index = *next++;
}

Kernel copy_kernel(const Kernel& kernel, Graph& graph) {
  std::vector<UOp> nodes = kernel.roots;
  for (const KernelRange& r : kernel.ranges) nodes.push_back(r.range);
  nodes.insert(nodes.end(), kernel.facts.begin(), kernel.facts.end());
  nodes.insert(nodes.end(), kernel.variables.begin(), kernel.variables.end());
  for (const KernelPrefetch& p : kernel.prefetches) nodes.insert(nodes.end(), {p.param, p.index});
  const std::vector<UOp> copied = copy_nodes(nodes, graph);
  auto next = copied.begin();
  Kernel copy = kernel;
  for (UOp& root : copy.roots) root = *next++;
  for (KernelRange& r : copy.ranges) r.range = *next++;
  for (UOp& fact : copy.facts) fact = *next++;
  for (UOp& variable : copy.variables) variable = *next++;
  for (KernelPrefetch& p : copy.prefetches) {
    p.param = *next++;
    p.index = *next++;
  }
  return copy;
}

std::string to_string(const Kernel& kernel) {
  static constexpr const char* kKinds[] = {"", "/U", "/R", "/V", "/T", "/D", "/L"};
  std::string out = "kernel " + kernel.name + "\n  order";
  for (const KernelRange& r : kernel.ranges)
    out += cat(" r", r.range.int_arg(), ":", expression_text(r.range.src(0)),
               kKinds[static_cast<size_t>(r.kind)], r.reduced ? "*" : "");
  out += "\n";
  for (const UOp& f : kernel.facts) out += cat("  fact ", expression_text(f), " >= 0\n");
  for (const UOp& root : kernel.roots) out += cat("  ", expression_text(root), "\n");
  return out;
}

}  // namespace tiny

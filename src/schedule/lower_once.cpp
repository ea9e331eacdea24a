#include "schedule/lower_once.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/hash.h"
#include "ir/rebuild.h"
#include "schedule/lower.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// The place of a destination that the value does not read.
constexpr uint32_t kApart = UINT32_MAX;

uint64_t hash_dim(uint64_t seed, const Dim& dim) {
  return hash_mix(seed, dim.is_const() ? static_cast<uint64_t>(dim.value())
                                       : std::bit_cast<uintptr_t>(dim.expression().node()));
}

uint64_t hash_shape(uint64_t seed, const Shape& shape) {
  for (const Dim& d : shape) seed = hash_dim(seed, d);
  return hash_mix(seed, shape.size());
}

// How many elements lie in the order of their indices, from the first of a buffer on; 0: they do
// not, or there is none.
int64_t elements_in_order(const View& view) {
  if (!view.offset.is(0) || !all_const(view.shape) || !all_const(view.strides)) return 0;
  int64_t count = 1;
  for (size_t i = view.shape.size(); i-- > 0; count *= view.shape[i].value())
    if (view.shape[i].value() != 1 && view.strides[i].value() != count) return 0;
  return count;
}

// What a chain of movement that keeps the elements' order, or fills a shape, is made of.
UOp base_in_order(const UOp& node) {
  UOp base = node;
  while (base.op() == Op::Reshape) base = UOp(base.src(0));
  UOp filling = base;
  while (filling.op() == Op::Reshape || filling.op() == Op::Expand) filling = UOp(filling.src(0));
  return filling.op() == Op::Const ? filling : base;
}

uint32_t place_among(const std::vector<UOp>& leaves, const UOp& node) {
  const auto at = std::ranges::find(leaves, node);
  return at == leaves.end() ? kApart : static_cast<uint32_t>(at - leaves.begin());
}

}  // namespace

// Lowering reads what has a buffer, but for the value that it is there to compute.
bool LowerOnce::is_leaf(const UOp& node, const UOp& root, const UOp& destination) const {
  return has_memory(node) || (decision_.stored[node.id()] &&
                              (!(node == root) || decision_.is_copied(root, destination)));
}

LowerOnce::Structure& LowerOnce::structure_of(const UOp& root, const UOp& destination) {
  Structure& out = structure_;
  out.nodes.clear();
  out.sources.clear();
  out.leaves.clear();
  out.leaf_at.clear();
  out.hash = out.hash_without_sizes = 0;
  out.is_elementwise = true;
  Graph& graph = root.graph();
  places_.resize(graph.id_limit());
  const uint64_t visit = graph.next_visit();
  struct Frame {
    const UOp* node;
    size_t next;
    size_t end;
  };
  std::vector<Frame> stack;
  const auto enter = [&](const UOp& u) {
    if (std::exchange(u.node()->visit, visit) != visit)
      stack.push_back({&u, 0, is_leaf(u, root, destination) ? 0 : u.src().size()});
  };
  enter(root);
  while (!stack.empty()) {
    Frame& top = stack.back();
    const UOp& u = *top.node;
    if (top.next < top.end) {
      enter(u.src(top.next++));
      continue;
    }
    stack.pop_back();
    const auto place = static_cast<uint32_t>(out.nodes.size());
    places_[u.id()] = place;
    out.nodes.push_back(u.node());
    const uint64_t kind =
        static_cast<uint64_t>(u.dtype().scalar) << 8 | static_cast<uint64_t>(u.op());
    if (is_leaf(u, root, destination)) {
      out.leaves.push_back(u);
      out.leaf_at.push_back(place);
      out.hash = hash_shape(hash_mix(out.hash, u.dtype().lanes), shape_of(u));
      out.hash_without_sizes = hash_mix(out.hash_without_sizes, kind);
      continue;
    }
    out.hash = hash_mix(hash_mix(out.hash, kind), hash_of(u.arg()));
    out.hash_without_sizes = hash_mix(out.hash_without_sizes, kind);
    if (!has(u.op(), kElementwise) && u.op() != Op::Contiguous && out.is_elementwise) {
      const UOp base = base_in_order(u);
      out.is_elementwise = base.op() == Op::Const || is_leaf(base, root, destination);
    }
    for (const UOp& s : u.src()) {
      out.sources.push_back(places_[s.id()]);
      out.hash = hash_mix(out.hash, out.sources.back());
      out.hash_without_sizes = hash_mix(out.hash_without_sizes, out.sources.back());
    }
  }
  return out;
}

bool LowerOnce::is_same(const Entry& entry, const Structure& other, const View& view,
                        uint32_t destination) const {
  const Structure& own = entry.structure;
  if (own.nodes.size() != other.nodes.size() || own.sources != other.sources ||
      own.leaf_at != other.leaf_at || entry.destination != destination || !(entry.view == view))
    return false;
  for (size_t i = 0, leaf = 0; i < own.nodes.size(); ++i) {
    if (leaf < own.leaf_at.size() && own.leaf_at[leaf] == i) {
      const UOp& a = own.leaves[leaf];
      const UOp& b = other.leaves[leaf];
      if (!(a.dtype() == b.dtype()) || !(shape_of(a) == shape_of(b)) ||
          !(entry.layouts[leaf] == decision_.view_of(b)))
        return false;
      ++leaf;
      continue;
    }
    const Node& a = *own.nodes[i];
    const Node& b = *other.nodes[i];
    if (&a != &b &&
        (a.op != b.op || !(a.dtype == b.dtype) || a.src_count != b.src_count || !(a.arg == b.arg)))
      return false;
  }
  return true;
}

void LowerOnce::keep(const Structure& structure, const View& view, uint32_t destination,
                     const ScheduledKernel& kernel) {
  Entry entry;
  for (const UOp& leaf : structure.leaves) entry.layouts.push_back(decision_.view_of(leaf));
  for (const UOp& value : kernel.values)
    entry.values.push_back(place_among(structure.leaves, value));
  for (const ScheduledKernel::Read& read : kernel.reads)
    entry.reads.push_back(place_among(structure.leaves, read.base));
  entry.view = view;
  entry.destination = destination;
  entry.kernel = kernel;
  entry.structure = structure;
  const auto is_load = [](const ScheduledKernel::Read& read) { return bool(read.load); };
  entry.fits_other_sizes = is_in_order(structure, view, destination) &&
                           kernel.kernel.ranges.size() == view.shape.size() &&
                           std::ranges::all_of(kernel.reads, is_load);
  const auto [at, added] = entries_.insert_or_assign(structure.hash, std::move(entry));
  if (at->second.fits_other_sizes) of_other_size_[structure.hash_without_sizes] = &at->second;
}

bool LowerOnce::is_in_order(const Structure& structure, const View& view,
                            uint32_t destination) const {
  if (!structure.is_elementwise || destination != kApart || view.shape.empty()) return false;
  const int64_t count = elements_in_order(view);
  // Axes of one place have no loop.
  return count > 0 && std::ranges::none_of(view.shape, [](const Dim& d) { return d.is(1); }) &&
         std::ranges::all_of(structure.leaves, [&](const UOp& leaf) {
           return elements_in_order(decision_.view_of(leaf)) == count;
         });
}

const LowerOnce::Entry* LowerOnce::find_of_other_size(const Structure& structure,
                                                      const View& view) const {
  const auto found = of_other_size_.find(structure.hash_without_sizes);
  if (found == of_other_size_.end()) return nullptr;
  const Entry& entry = *found->second;
  const Structure& own = entry.structure;
  if (!entry.fits_other_sizes || own.nodes.size() != structure.nodes.size() ||
      own.sources != structure.sources || own.leaf_at != structure.leaf_at ||
      entry.view.shape.size() != view.shape.size())
    return nullptr;
  for (size_t i = 0; i < own.nodes.size(); ++i) {
    const Node& a = *own.nodes[i];
    const Node& b = *structure.nodes[i];
    if (!(a.dtype == b.dtype)) return nullptr;
    if (std::ranges::binary_search(own.leaf_at, static_cast<uint32_t>(i))) continue;
    const bool has_sizes = has(a.op, kMovement);
    if (a.op != b.op || a.src_count != b.src_count || (!has_sizes && !(a.arg == b.arg)))
      return nullptr;
  }
  return &entry;
}

// Each range and access of the kernel has the sizes of the view, and nothing else has any.
ScheduledKernel LowerOnce::with_sizes(const Entry& entry, const View& view) {
  ScheduledKernel out = entry.kernel;
  Graph& graph = out.kernel.roots.front().graph();
  ViewArg arg;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    arg.shape.push_back(view.shape[i].value());
    arg.strides.push_back(view.strides[i].value());
    UOp& range = out.kernel.ranges[i].range;
    range = graph.make(Op::Range, {graph.integer(arg.shape[i])}, range.int_arg());
  }
  map_kernel(out.kernel, [&](const UOp& u, std::vector<UOp>& src) {
    if (u.op() == Op::Range) return out.kernel.ranges[static_cast<size_t>(u.int_arg())].range;
    if (u.op() != Op::Load && u.op() != Op::Store) return u.with_src(src);
    UOp access = graph.make(u.op(), src, arg, u.dtype());
    for (size_t i = 0; i < out.reads.size(); ++i)
      if (entry.kernel.reads[i].load == u) out.reads[i].load = access;
    return access;
  });
  for (ScheduledKernel::Read& read : out.reads) read.elements = extent(view);
  name_by_sizes(out.kernel, out.kernel.ranges.size());
  return out;
}

ScheduledKernel LowerOnce::store(const UOp& node, const UOp& destination, const View& view) {
  const bool has_writes = decision_.slots.size() > 0 || !decision_.copies.empty();
  if (has_writes) {
    ++lowered_;
    return lower_store(node, destination, view, decision_);
  }
  Structure& structure = structure_of(node, destination);
  structure.hash = hash_shape(hash_shape(structure.hash, view.shape), view.strides);
  const uint32_t place = place_among(structure.leaves, destination);
  const auto known = entries_.find(structure.hash);
  const bool is_known = known != entries_.end() && is_same(known->second, structure, view, place);
  const Entry* entry = is_known ? &known->second : nullptr;
  if (!entry && is_in_order(structure, view, place)) entry = find_of_other_size(structure, view);
  if (!entry) {
    ++lowered_;
    ScheduledKernel made = lower_store(node, destination, view, decision_);
    keep(structure, view, place, made);
    return made;
  }
  const auto base = [&](uint32_t at) { return at == kApart ? destination : structure.leaves[at]; };
  ScheduledKernel out = is_known ? entry->kernel : with_sizes(*entry, view);
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] = base(entry->values[i]);
  for (size_t i = 0; i < out.reads.size(); ++i) out.reads[i].base = base(entry->reads[i]);
  out.stores = {{node, destination, view}};
  return out;
}

ScheduledKernel LowerOnce::value(const UOp& node) {
  if (node.op() != Op::Assign) return store(node, node, decision_.view_of(node));
  ++lowered_;
  return lower_value(node, decision_);
}

}  // namespace tiny

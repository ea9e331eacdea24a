#include "engine/versions.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "engine/compile.h"
#include "engine/realize.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

bool is_pending(const UOp& u) {
  return u.op() == Op::After && !has_memory(u);
}

// Whether a pending write belongs to the step of a program that reads `memories`: nothing but a
// program with these inputs could do it, or the program reads what it replaces.
bool is_of_step(const UOp& version, const NodeSet& known,
                const std::unordered_set<const RefCounted*>& memories) {
  bool depends = false;
  for (const UOp& u : topological(std::vector{version}, has_memory)) {
    if (!is_input(u)) continue;
    if (!known.contains(u.node())) return false;
    depends = true;
  }
  return depends || memories.contains(memory_of(memory_below(version)));
}

// What the elements of `node` are computed as, or stored in.
UOp moved_from(UOp node) {
  while (has(node.op(), kMovement) && !has_memory(node)) node = UOp(node.src(0));
  return node;
}

int64_t count_of(const UOp& node) {
  return product(shape_of(node)).value();
}

std::vector<UOp> live_nodes(const Context& context) {
  std::vector<UOp> nodes;
  for (const Cell* cell = context.cells(); cell; cell = cell->next()) nodes.push_back(cell->node());
  return nodes;
}

}  // namespace

const UOp& memory_below(const UOp& version) {
  const UOp* node = &version;
  while (!has_memory(*node)) node = &node->src(0);
  return *node;
}

std::vector<UOp> pending_below(std::span<const UOp> roots) {
  std::vector<UOp> found;
  for (const UOp& u : topological(roots, has_memory))
    if (is_pending(u)) found.push_back(u);
  return found;
}

std::vector<UOp> writes_beside(const Context& context, std::span<const UOp> outputs,
                               std::span<const UOp> inputs) {
  const std::vector<UOp> found = pending_below(outputs);
  if (found.empty()) return {};
  // A write after one of those is the caller's to list.
  const auto follows_found = [&](UOp version) {
    for (; is_pending(version); version = UOp(version.src(0)))
      if (std::ranges::count(found, version)) return true;
    return false;
  };
  std::vector<UOp> waiting;
  for (const Cell* cell = context.cells(); cell; cell = cell->next())
    if (is_pending(cell->node()) && !follows_found(cell->node())) waiting.push_back(cell->node());
  NodeSet known;
  for (const UOp& u : inputs) known.insert(u.node());
  std::vector<UOp> roots(outputs.begin(), outputs.end()), added;
  for (bool grows = true; std::exchange(grows, false) && !waiting.empty();) {
    std::unordered_set<const RefCounted*> memories;
    for (const UOp& u : topological(roots, has_memory))
      if (has_memory(u) && !is_input(u)) memories.insert(memory_of(u));
    std::erase_if(waiting, [&](const UOp& version) {
      if (!is_of_step(version, known, memories)) return false;
      roots.push_back(version);
      added.push_back(version);
      return grows = true;
    });
  }
  return added;
}

std::vector<UOp> begin_writes_along(Context& context, std::span<const UOp> roots) {
  std::vector<UOp> begun;
  if (!context.has_writes_along()) return begun;
  NodeSet computed;
  for (const UOp& u : topological(roots, has_memory)) computed.insert(u.node());
  const auto is_computed = [&](const Cell::Along& write) {
    return computed.contains(moved_from(write.companion).node());
  };
  for (Cell* cell = context.cells(); cell; cell = cell->next()) {
    if (std::ranges::none_of(cell->along(), is_computed)) continue;
    UOp version = cell->node();
    for (const Cell::Along& write : cell->along()) {
      if (!is_computed(write)) continue;
      const std::vector<std::pair<UOp, UOp>> now{{write.base, version}};
      const UOp value = write.base == version ? write.value : substitute(write.value, now);
      version = make_version(version, make_reshape(version, shape_of(value)), value,
                             context.next_version());
    }
    cell->set(version);
    begun.push_back(std::move(version));
  }
  return begun;
}

Versions::Versions(Context& context, std::span<const UOp> outputs) : context_(context) {
  find_writes(outputs);
  if (!any()) return;
  find_readers(outputs);
  make_copies();
}

void Versions::find_writes(std::span<const UOp> outputs) {
  const std::vector<UOp> order = topological(outputs, has_memory);
  for (const UOp& u : order) {
    if (u.op() != Op::After || has_memory(u)) continue;
    if (written_.empty()) {
      written_.resize(context_.graph().id_limit());
      is_last_ = written_;
    }
    written_[u.id()] = is_last_[u.id()] = 1;
    is_last_[u.src(0).id()] = 0;
  }
  if (written_.empty()) return;
  for (const UOp& u : order)
    if (is_last_[u.id()]) {
      last_.push_back(u);
      memories_.insert(memory_of(memory_below(u)));
    }
}

// Whether the value that the node stands for now will be gone.
bool Versions::is_lost(const UOp& node) const {
  if (has_memory(node)) return memories_.contains(memory_of(node));
  return written_[node.id()] && !is_last_[node.id()];
}

// Walks what is alive and will not be computed by the schedule.
void Versions::find_readers(std::span<const UOp> outputs) {
  // What a run has written since has a new node here, with an id of its own.
  std::vector<UOp> stack = live_nodes(context_);
  written_.resize(context_.graph().id_limit());
  is_last_.resize(written_.size());
  std::vector<uint8_t> seen = is_last_;
  for (const UOp& out : outputs) {
    UOp base = out;
    seen[base.id()] = 1;
    while (!has_memory(base) && has(base.op(), kMovement) && base.op() != Op::Pad &&
           !repeats_elements(base)) {
      base = UOp(base.src(0));
      seen[base.id()] = 1;
    }
  }
  while (!stack.empty()) {
    const UOp node = std::move(stack.back());
    stack.pop_back();
    if (reads_lost(node) || seen[node.id()]) continue;
    seen[node.id()] = 1;
    if (!has_memory(node)) stack.insert(stack.end(), node.src().begin(), node.src().end());
  }
}

// Notes which part of a lost version `node` is a view of; false if it is none.
bool Versions::reads_lost(const UOp& node) {
  UOp base = node;
  while (!has_memory(base) && has(base.op(), kMovement)) base = UOp(base.src(0));
  if (!is_lost(base)) return false;
  flags_.resize(written_.size());
  flags_[base.id()] = 1;
  const auto stored = as_view(node, flags_);
  flags_[base.id()] = 0;
  if (!stored) return false;
  const View& view = stored->view;
  std::pair<int64_t, int64_t> part{0, count_of(base) - 1};
  if (all_const(view.shape) && all_const(view.strides) && view.offset.is_const())
    part = extent(view);
  const auto [at, is_new] = index_.try_emplace(base.node(), old_.size());
  if (is_new) old_.push_back({.version = base});
  // What reads no element needs no copy, and must not have the write done again either.
  if (part.first > part.second) return true;
  Old& old = old_[at->second];
  old.first = old.is_read() ? std::min(old.first, part.first) : part.first;
  old.last = std::max(old.last, part.second);
  return true;
}

void Versions::make_copies() {
  for (size_t i = 0; i < old_.size(); ++i) {
    Old& old = old_[i];
    if (!old.is_read()) continue;
    const UOp flat = make_reshape(old.version, {Dim(count_of(old.version))});
    const UOp part = make_shrink(flat, {Dim(old.first)}, {Dim(old.last + 1)});
    old.copy = flat.graph().make(Op::Copy, {part});
    copied_.emplace(old.copy.node(), i);
    copies_.push_back(old.copy);
    copied_bytes_ += (old.last + 1 - old.first) * flat.dtype().bytes();
  }
}

Ref<Storage> Versions::memory_for(const UOp& copy) const {
  const auto at = copied_.find(copy.node());
  if (at == copied_.end()) return nullptr;
  const Old& old = old_[at->second];
  // At its own place in memory for the whole, of which only the part is touched.
  const int64_t size = copy.dtype().bytes();
  const Ref<Storage> whole = context_.allocate(count_of(old.version) * size);
  return make_ref<Storage>(Ref<Buffer>(&whole->memory()), old.first * size);
}

void Versions::settle() {
  // First what has the memory now loses it.
  std::vector<Ref<Storage>> fresh;
  for (const UOp& last : last_) fresh.push_back(make_ref<Storage>(storage_of(memory_below(last))));
  std::vector<Ref<Storage>> kept;  // some memory, where no element of it is read
  for (const Old& old : old_)
    kept.push_back(old.is_read()
                       ? make_ref<Storage>(Ref<Buffer>(&storage_of(old.copy)->memory()), 0)
                       : make_ref<Storage>(storage_of(memory_below(old.version))));
  forget_old_memory();
  for (size_t i = 0; i < old_.size(); ++i) old_[i].version.node()->realized = kept[i];
  for (size_t i = 0; i < last_.size(); ++i) last_[i].node()->realized = fresh[i];
  // What has the old elements without owning their memory was published where they are no more.
  for (Cell* cell = context_.cells(); cell; cell = cell->next())
    if (!cell->owns_memory() && index_.contains(moved_from(cell->node()).node()))
      cell->set(UOp(cell->node()));
  rebind_cells(context_);
}

// Nodes that were computed into memory that is written now are not computed any more.
void Versions::forget_old_memory() {
  for (const UOp& u : topological(live_nodes(context_)))
    if (u.node()->realized && u.op() != Op::Buffer && memories_.contains(memory_of(u)))
      u.node()->realized = nullptr;
}

std::unordered_set<const RefCounted*> memories_written(std::span<const UOp> versions) {
  std::unordered_set<const RefCounted*> memories;
  for (const UOp& version : versions) memories.insert(memory_of(memory_below(version)));
  return memories;
}

void part_equals(Context& context, const std::unordered_set<const RefCounted*>& written) {
  if (written.empty()) return;
  std::vector<Cell*> cells;
  std::vector<UOp> copies;
  for (Cell* cell = context.cells(); cell; cell = cell->next()) {
    UOp base = cell->node();
    while (base.op() == Op::Reshape && !has_memory(base)) base = UOp(base.src(0));
    if (cell->owns_memory() || base.op() != Op::Buffer || !written.contains(memory_of(base)))
      continue;
    cells.push_back(cell);
    copies.push_back(base.graph().make(Op::Copy, {base}));
  }
  if (cells.empty()) return;
  realize(context, copies);
  for (size_t i = 0; i < cells.size(); ++i) {
    const Ref<Storage> storage = storage_of(copies[i]);
    const UOp flat = make_buffer(context.graph(), storage, copies[i].dtype(), count_of(copies[i]));
    if (storage->claim())
      cells[i]->set_memory(flat);
    else  // several have the same elements
      cells[i]->set(make_reshape(flat, shape_of(cells[i]->node())));
  }
}

void rebind_cells(Context& context) {
  for (Cell* cell = context.cells(); cell; cell = cell->next())
    if (cell->owns_memory() && cell->node().op() == Op::After && has_memory(cell->node()))
      cell->set(make_buffer(context.graph(), storage_of(cell->node()), cell->node().dtype(),
                            count_of(cell->node())));
}

}  // namespace tiny

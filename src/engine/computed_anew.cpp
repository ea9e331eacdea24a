#include "engine/computed_anew.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "engine/compile.h"
#include "engine/realize.h"
#include "engine/versions.h"
#include "ir/node_map.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

// Elements that are what they are, whatever they once were computed from.
bool is_given(const UOp& u) {
  if (!has_memory(u)) return false;
  return u.op() == Op::Buffer || u.op() == Op::After ||
         (u.op() == Op::Alias && alias_kind(u) == AliasKind::Apart);
}

// What is in the tensors' memory now, by where it lies.
class Newest {
 public:
  explicit Newest(const Context& context) {
    for (const Cell* cell = context.cells(); cell; cell = cell->next())
      if (cell->owns_memory()) {
        const Ref<Storage> storage = storage_of(memory_below(cell->node()));
        if (storage->has_memory()) newest_[place_of(*storage)] = storage.get();
      }
  }

  // Whether other elements lie there by now.
  bool has_replaced(const UOp& given) const {
    const Ref<Storage> storage = storage_of(given);
    if (!storage->has_memory()) return false;
    const auto at = newest_.find(place_of(*storage));
    return !storage->is_current() || (at != newest_.end() && at->second != storage.get());
  }

 private:
  using Place = std::pair<const Buffer*, int64_t>;
  static Place place_of(const Storage& s) { return {&s.memory(), s.byte_offset()}; }

  std::map<Place, const Storage*> newest_;
};

// The memories that are to be written, as they are before.
NodeSet memories_before(const Context& context, std::span<const UOp> outputs,
                        std::span<const UOp> inputs) {
  NodeSet memories;
  const auto add = [&](const UOp& version) { memories.insert(memory_below(version).node()); };
  for (const UOp& version : pending_below(outputs)) add(version);
  for (const UOp& version : writes_beside(context, outputs, inputs)) add(version);
  if (!context.has_writes_along()) return memories;
  for (const Cell* cell = context.cells(); cell; cell = cell->next())
    if (!cell->along().empty()) add(cell->node());
  return memories;
}

}  // namespace

ComputedAnew::ComputedAnew(const Context& context, std::span<const UOp> outputs,
                           std::span<const UOp> inputs) {
  // What is computed anew may read more memory, to which other writes are pending.
  for (bool grows = true; std::exchange(grows, false);) {
    const NodeSet written = memories_before(context, outputs, inputs);
    if (written.empty()) return;
    const Newest newest(context);
    NodeSet depends, replaced;
    for (const UOp& u : topological(outputs, is_given)) {
      const auto is_one_of = [&](const NodeSet& set) {
        return std::ranges::any_of(u.src(), [&](const UOp& s) { return set.contains(s.node()); });
      };
      const bool given = is_given(u);
      const bool is_made_of_written = given ? written.contains(u.node()) : is_one_of(depends);
      const bool is_made_of_replaced = given ? newest.has_replaced(u) : is_one_of(replaced);
      if (!given && has_memory(u)) {
        if (!is_made_of_written || is_made_of_replaced) continue;  // it stays in memory
        hidden_.emplace_back(u, std::exchange(u.node()->realized, nullptr));
        grows = true;
      }
      if (is_made_of_written) depends.insert(u.node());
      if (is_made_of_replaced) replaced.insert(u.node());
    }
  }
}

ComputedAnew::~ComputedAnew() {
  for (auto& [node, memory] : hidden_) node.node()->realized = std::move(memory);
}

void note_origin(const UOp& computed) {
  std::vector<Ref<Storage::Identity>> memories;
  for (const UOp& u : topological({&computed, 1}, is_given))
    if (is_given(u)) memories.push_back(storage_of(u)->identity());
  storage_of(computed)->set_made_of(std::move(memories));
}

void require_computed_by_runs(std::span<const UOp> outputs, std::span<const UOp> versions) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto stored = as_view(outputs[i]);
    if (!stored || stored->base.op() != Op::Buffer) continue;
    const Ref<Storage> storage = storage_of(stored->base);
    for (const UOp& version : versions)
      require(
          !storage->is_made_of(*storage_of(memory_below(version))), Status::InvalidArgument,
          "outputs[", i,
          "] was computed before, of a tensor that the program writes: every run"
          " would give what it was then. Compile before it is read; a tiny_clone of it, or what was"
          " realised (tiny_realize) before it was read, is an output that stays");
  }
}

}  // namespace tiny

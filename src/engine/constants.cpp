#include "engine/constants.h"

#include <optional>
#include <utility>

#include "engine/backend.h"
#include "engine/copied_constant.h"
#include "engine/kernel_key.h"
#include "engine/realize.h"
#include "ir/rebuild.h"
#include "schedule/rewrite/narrow_operands.h"
#include "schedule/rewrite/pack_constants.h"
#include "schedule/rewrite/scales.h"
#include "schedule/rewrite/winograd.h"
#include "schedule/rewrite/zero_points.h"
#include "schedule/scans.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// By id, of nodes in order: whether an input, or memory that may be written to, reaches them.
std::vector<uint8_t> varying(std::span<const UOp> order, bool memory_is_constant) {
  const auto is_written = [&](const UOp& u) {
    return has_memory(u) && !memory_is_constant && !storage_of(u)->is_constant();
  };
  std::vector<uint8_t> varies(order.front().graph().id_limit());
  for (const UOp& u : order) {
    bool v = is_input(u) || u.op() == Op::Variable || u.op() == Op::After || u.op() == Op::Call ||
             is_of_scan(u) || is_written(u);
    if (!has_memory(u))
      for (const UOp& s : u.src()) v |= varies[s.id()] != 0;
    varies[u.id()] = v ? 1 : 0;
  }
  return varies;
}

// What each node of an order is a view of, by id.
std::vector<const UOp*> bases_of(std::span<const UOp> order) {
  std::vector<const UOp*> bases(order.front().graph().id_limit());
  for (const UOp& u : order) {
    const bool is_view = has(u.op(), kMovement) && u.op() != Op::Pad && !has_memory(u);
    bases[u.id()] = is_view ? bases[u.src(0).id()] : &u;
  }
  return bases;
}

// Values that no input reaches but that a value that inputs reach is made from.
std::vector<UOp> constant_frontier(std::span<const UOp> outputs, bool memory_is_constant,
                                   const Machine& target) {
  const std::vector<UOp> order = topological(outputs, has_memory);
  const std::vector<uint8_t> varies = varying(order, memory_is_constant);
  // What is made of constants and positions alone by a few operations: no buffer is as cheap.
  std::vector<uint8_t> light(varies.size());
  for (const UOp& u : order) {
    bool l = !has_memory(u) && !has(u.op(), kTranscendental) && u.op() != Op::ReduceAxis &&
             u.op() != Op::Scatter;
    if (!has_memory(u))
      for (const UOp& s : u.src()) l &= light[s.id()] != 0;
    light[u.id()] = l ? 1 : 0;
  }
  const std::vector<uint8_t> widens = widening_nodes(outputs, target, varies);
  const std::vector<const UOp*> bases = bases_of(order);
  std::vector<uint8_t> is_found(varies.size());
  std::vector<UOp> frontier;
  for (const UOp& u : order) {
    if ((!varies[u.id()] && !widens[u.id()]) || has_memory(u)) continue;
    for (const UOp& s : u.src()) {
      // Views cost nothing, and constants are better left where kernels can see them.
      const UOp& base = *bases[s.id()];
      if (varies[s.id()] || has_memory(base) || light[base.id()] || widens[base.id()]) continue;
      if (!std::exchange(is_found[base.id()], 1)) frontier.push_back(base);
    }
  }
  return frontier;
}

// Constants that repeat along an axis (a correction that is the same for every row) are stored
// once, and read as often.
std::vector<UOp> store_once(std::span<const UOp> roots, bool memory_is_constant,
                            const Machine& target) {
  std::vector<uint8_t> is_stored(roots.front().graph().id_limit());
  for (const UOp& u : constant_frontier(roots, memory_is_constant, target))
    is_stored[u.id()] = has(u.op(), kElementwise) ? 1 : 0;
  return rebuild(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (node.id() >= is_stored.size() || !is_stored[node.id()]) return now;
    const Shape& shape = shape_of(now);
    std::vector<bool> same(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) same[i] = !shape[i].is(1) && is_same_along(now, i);
    const UOp first = first_along(now, same);
    if (first == now) return now;
    return make_expand(first.graph().make(Op::Contiguous, {first}), shape);
  });
}

// By id: the nodes with memory that no run binds, and what is to be stored of them alone.
std::vector<uint8_t> constant_nodes(std::span<const UOp> roots, bool memory_is_constant) {
  const std::vector<UOp> order = topological(roots, has_memory);
  const std::vector<uint8_t> varies = varying(order, memory_is_constant);
  std::vector<uint8_t> flags(varies.size());
  for (const UOp& u : order)
    flags[u.id()] = !varies[u.id()] && (has_memory(u) || u.op() == Op::Contiguous) ? 1 : 0;
  return flags;
}

// The memory of a device may have larger pages than a mapped file: what kernels walk through from
// end to end, and is at least as large as such a page, is copied.  What they pick from is not.
constexpr int64_t kWalkedMin = 2 << 20;

std::vector<UOp> copy_walked(std::span<const UOp> roots, bool memory_is_constant) {
  const std::vector<UOp> order = topological(roots, has_memory);
  const std::vector<uint8_t> varies = varying(order, memory_is_constant);
  const std::vector<const UOp*> bases = bases_of(order);
  std::vector<uint8_t> walked(varies.size());
  for (const UOp& u : order) {
    if (!varies[u.id()] || has_memory(u) || u.op() == Op::Gather) continue;
    for (const UOp& s : u.src())
      if (const UOp& base = *bases[s.id()]; !varies[s.id()] && base.op() == Op::Buffer) {
        const Ref<Storage> storage = storage_of(base);
        walked[base.id()] =
            storage->can_unload() && storage->memory().bytes() >= kWalkedMin ? 1 : 0;
      }
  }
  return rebuild(roots, has_memory, [&](const UOp& node, const UOp& now) {
    const bool copy = node.id() < walked.size() && walked[node.id()];
    return copy ? node.graph().make(Op::Contiguous, {now}) : now;
  });
}

// The one memory that a value is made of, and how; none if there are several.
struct Derivation {
  Ref<Storage> storage;
  std::string recipe;
};
std::optional<Derivation> derivation_of(const UOp& value) {
  GraphKey key = graph_key({&value, 1}, {}, {});
  if (key.leaves.size() != 1) return std::nullopt;
  return Derivation{storage_of(key.leaves.front()), std::move(key.bytes)};
}

// Bytes of mapped files that are read before their memory is given back.
constexpr int64_t kLoadedMax = 4 << 20;

// Values with where they come from, computed together.
struct Batch {
  std::vector<UOp> values;
  std::vector<std::optional<Derivation>> origins;
  int64_t loaded = 0;  // bytes of their origins that need not stay in memory
};

void compute_batch(Context& context, Batch& batch, ProgramRecorder& recorder) {
  if (batch.values.empty()) return;
  const Realized made = realize(context, batch.values, Placement::Together);
  std::vector<ProgramRecorder::Kept> kept;
  for (size_t i = 0; i < batch.values.size(); ++i) {
    const Ref<Storage> value =
        batch.values[i].node()->realized ? storage_of(batch.values[i]) : Ref<Storage>();
    if (value) value->set_constant();
    if (!batch.origins[i]) continue;
    Storage& origin = *batch.origins[i]->storage;
    if (value) origin.keep_derived(batch.origins[i]->recipe, value);
    origin.unload();
    kept.push_back({value, batch.origins[i]->storage, std::move(batch.origins[i]->recipe)});
  }
  recorder.add(made, kept);
  batch = {};
}

// Realises the values; those that were made of their constant before are taken from there.
void compute(Context& context, const std::vector<UOp>& values, ProgramRecorder& recorder) {
  Batch batch;
  for (const UOp& value : values) {
    std::optional<Derivation> origin = derivation_of(value);
    const Ref<Storage> known = origin ? origin->storage->derived(origin->recipe) : nullptr;
    if (known) {
      value.node()->realized = known;
      recorder.give_up();  // of what it was made is another program's
      continue;
    }
    if (origin && is_copied(value)) {
      const Ref<Storage> made = copy_and_unload(context, *origin->storage);
      made->set_constant();
      value.node()->realized = made;
      origin->storage->keep_derived(origin->recipe, made);
      recorder.add_copy({made, origin->storage, std::move(origin->recipe)});
      continue;
    }
    const int64_t loaded =
        origin && origin->storage->can_unload() ? origin->storage->memory().bytes() : 0;
    if (batch.loaded + loaded > kLoadedMax) compute_batch(context, batch, recorder);
    batch.loaded += loaded;
    batch.values.push_back(value);
    batch.origins.push_back(std::move(origin));
  }
  compute_batch(context, batch, recorder);
}

}  // namespace

void compute_constants(Context& context, std::vector<UOp>& roots, const Captured& captured,
                       ProgramRecorder& recorder) {
  const Machine& target = context.backend().machine();
  const bool all = captured.is_constant;
  const auto varies = [&] { return varying(topological(roots, has_memory), all); };
  roots = rewrite_scales(roots, target, varies());
  roots = rewrite_zero_points(roots, target, varies());
  roots = store_once(roots, all, target);
  compute(context, constant_frontier(roots, all, target), recorder);
  roots = rewrite_winograd(roots, target, constant_nodes(roots, all),
                           winograd_use(context.flags().wino));
  if (context.flags().pack != 0) {
    roots = pack_constants(roots, target, constant_nodes(roots, all), varies());
    roots = copy_walked(roots, all);
  }
  compute(context, constant_frontier(roots, all, target), recorder);
}

}  // namespace tiny

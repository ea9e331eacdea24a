#include "engine/constants.h"

#include <algorithm>
#include <optional>

#include "engine/backend.h"
#include "engine/kernel_key.h"
#include "engine/realize.h"
#include "schedule/pack_constants.h"
#include "schedule/rewrite_winograd.h"
#include "schedule/schedule.h"

namespace tiny {

namespace {

// Values that no input reaches but that a value that inputs reach is made from.
std::vector<UOp> constant_frontier(std::span<const UOp> outputs, bool memory_is_constant) {
  const std::vector<UOp> order = topological(outputs, has_memory);
  std::vector<uint8_t> varies(outputs.front().graph().id_limit());
  // What is made of constants and positions alone by a few operations: no buffer is as cheap.
  std::vector<uint8_t> light(varies.size());
  for (const UOp& u : order) {
    bool v = is_input(u) || u.op() == Op::Variable || u.op() == Op::After ||
             (has_memory(u) && !memory_is_constant);
    bool l = !has_memory(u) && !has(u.op(), kTranscendental) && u.op() != Op::ReduceAxis;
    if (!has_memory(u))
      for (const UOp& s : u.src()) {
        v |= varies[s.id()] != 0;
        l &= light[s.id()] != 0;
      }
    varies[u.id()] = v ? 1 : 0;
    light[u.id()] = l ? 1 : 0;
  }
  std::vector<UOp> frontier;
  const auto add = [&](const UOp& u) {
    // Views cost nothing, and constants are better left where kernels can see them.
    UOp base = u;
    while (has(base.op(), kMovement) && base.op() != Op::Pad) base = UOp(base.src(0));
    if (has_memory(base) || light[base.id()]) return;
    if (std::find(frontier.begin(), frontier.end(), base) == frontier.end())
      frontier.push_back(base);
  };
  for (const UOp& u : order) {
    if (!varies[u.id()] || has_memory(u)) continue;
    for (const UOp& s : u.src())
      if (!varies[s.id()]) add(s);
  }
  return frontier;
}

// By id: the nodes with memory that no run binds, and what is to be stored of them alone.
std::vector<uint8_t> constant_nodes(std::span<const UOp> roots) {
  std::vector<uint8_t> flags(roots.front().graph().id_limit());
  std::vector<uint8_t> varies(flags.size());
  for (const UOp& u : topological(roots, has_memory)) {
    bool v = is_input(u) || u.op() == Op::Variable || u.op() == Op::After;
    if (!has_memory(u))
      for (const UOp& s : u.src()) v |= varies[s.id()] != 0;
    varies[u.id()] = v ? 1 : 0;
    flags[u.id()] = !v && (has_memory(u) || u.op() == Op::Contiguous) ? 1 : 0;
  }
  return flags;
}

// The one memory that a value is made of, and how; none if there are several.
struct Origin {
  Ref<Storage> storage;
  std::string recipe;
};
std::optional<Origin> origin_of(const UOp& value) {
  GraphKey key = graph_key({&value, 1}, {}, {});
  if (key.leaves.size() != 1) return std::nullopt;
  return Origin{storage_of(key.leaves.front()), std::move(key.bytes)};
}

// Bytes of mapped files that are read before their memory is given back.
constexpr int64_t kLoadedMax = 4 << 20;

// Values with where they come from, computed together.
struct Batch {
  std::vector<UOp> values;
  std::vector<std::optional<Origin>> origins;
  int64_t loaded = 0;  // bytes of their origins that need not stay in memory
};

void compute_batch(Context& context, Batch& batch) {
  if (!batch.values.empty()) realize(context, batch.values, Placement::Together);
  for (size_t i = 0; i < batch.values.size(); ++i) {
    if (!batch.origins[i]) continue;
    Storage& origin = *batch.origins[i]->storage;
    if (batch.values[i].node()->realized)
      origin.keep_derived(std::move(batch.origins[i]->recipe), storage_of(batch.values[i]));
    origin.unload();
  }
  batch = {};
}

// Realises the values; those that were made of their constant before are taken from there.
void compute(Context& context, const std::vector<UOp>& values) {
  Batch batch;
  for (const UOp& value : values) {
    std::optional<Origin> origin = origin_of(value);
    const Ref<Storage> known = origin ? origin->storage->derived(origin->recipe) : nullptr;
    if (known) {
      value.node()->realized = known;
      continue;
    }
    const int64_t loaded =
        origin && origin->storage->can_unload() ? origin->storage->memory().bytes() : 0;
    if (batch.loaded + loaded > kLoadedMax) compute_batch(context, batch);
    batch.loaded += loaded;
    batch.values.push_back(value);
    batch.origins.push_back(std::move(origin));
  }
  compute_batch(context, batch);
}

}  // namespace

void compute_constants(Context& context, std::vector<UOp>& roots, const Captured& captured) {
  compute(context, constant_frontier(roots, captured.is_constant));
  if (!captured.is_constant) return;
  const Target& target = context.backend().target();
  roots =
      rewrite_winograd(roots, target, constant_nodes(roots), winograd_use(context.flags().wino));
  if (context.flags().pack != 0) roots = pack_constants(roots, target, constant_nodes(roots));
  compute(context, constant_frontier(roots, captured.is_constant));
}

}  // namespace tiny

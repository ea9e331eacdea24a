#include "engine/constants.h"

#include <optional>
#include <utility>

#include "engine/copied_constant.h"
#include "engine/kernel_key.h"
#include "engine/realize.h"
#include "ir/node_map.h"
#include "schedule/schedule.h"

namespace tiny {

namespace {

// Of a recipe: what is made of more is not looked for among what other programs have made, so that
// many values over one long computation do not each walk it.
constexpr size_t kRecipeNodesMax = 256;

bool is_short(const UOp& value) {
  NodeSet seen{value.node()};
  std::vector<UOp> found{value};
  for (size_t i = 0; i < found.size(); ++i) {
    if (has_memory(found[i])) continue;
    for (const UOp& s : UOp(found[i]).src())
      if (seen.insert(s.node())) found.push_back(s);
    if (found.size() > kRecipeNodesMax) return false;
  }
  return true;
}

// The one memory that a value is made of, and how; none if there are several.
struct Derivation {
  Ref<Storage> storage;
  std::string recipe;
};
std::optional<Derivation> derivation_of(const UOp& value) {
  if (!is_short(value)) return std::nullopt;
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

}  // namespace

void compute_constants(Context& context, const std::vector<UOp>& values,
                       ProgramRecorder& recorder) {
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

}  // namespace tiny

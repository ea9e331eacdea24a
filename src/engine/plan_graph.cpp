#include "engine/plan_graph.h"

#include <algorithm>

#include "engine/backend.h"
#include "engine/kernel_cache.h"
#include "engine/kernel_key.h"
#include "engine/observe.h"
#include "engine/plan.h"
#include "engine/plan_cache.h"
#include "engine/realize.h"
#include "engine/stored.h"
#include "schedule/schedule.h"
#include "schedule/split_reductions.h"
#include "shape/view.h"

namespace tiny {

namespace {

// The stored bases of the roots stay; everything else that is stored lives in the arena.
std::vector<UOp> kept_nodes(const Schedule& schedule, std::span<const UOp> roots) {
  std::vector<UOp> kept;
  for (const UOp& node : schedule.stored) {
    std::vector<uint8_t> flags(node.graph().id_limit());
    flags[node.id()] = 1;
    for (const UOp& root : roots)
      if (const auto stored = as_view(root, flags); stored && stored->base == node) {
        kept.push_back(node);
        break;
      }
  }
  return kept;
}

// The plan for other graphs of this structure; null if it depends on more than that.
std::shared_ptr<const CachedPlan> without_memory(const GraphPlan& made, const GraphKey& key) {
  auto out = std::make_shared<CachedPlan>(CachedPlan{made.plan, {}});
  for (Slot& slot : out->plan.slots) {
    if (slot.kind != SlotKind::Captured) continue;
    if (slot.number >= std::ssize(key.leaves)) return nullptr;
    slot.storage = nullptr;
  }
  for (const UOp& output : made.outputs) {
    const auto at = std::find(key.order.begin(), key.order.end(), output);
    if (at == key.order.end()) return nullptr;
    out->outputs.push_back(static_cast<uint32_t>(at - key.order.begin()));
  }
  return out;
}

GraphPlan with_memory(const CachedPlan& found, const GraphKey& key) {
  GraphPlan out;
  out.plan = found.plan;
  for (Slot& slot : out.plan.slots)
    if (slot.kind == SlotKind::Captured)
      slot.storage = storage_of(key.leaves[static_cast<size_t>(slot.number)]);
  for (TapeEntry& entry : out.plan.tape) entry.info.cached = true;
  for (uint32_t position : found.outputs) out.outputs.push_back(key.order[position]);
  return out;
}

// The plan that an earlier process has made; null if there is none.
std::shared_ptr<const CachedPlan> plan_from_disk(Context& context, const GraphKey& key) {
  const auto content = context.kernels().disk().find(key.bytes);
  if (!content) return nullptr;
  auto stored = decode_plan(*content, key.order.size(), key.leaves.size());
  if (!stored) return nullptr;
  std::vector<TapeEntry>& tape = stored->cached.plan.tape;
  const std::vector<const CompiledKernel*> kernels = context.kernels().load_files(stored->kernels);
  if (kernels.size() != tape.size()) return nullptr;
  for (size_t i = 0; i < tape.size(); ++i) {
    if (kernels[i]->info.params.size() != tape[i].slots.size()) return nullptr;
    tape[i].executable = kernels[i]->executable;
    tape[i].threads_extent = kernels[i]->threads_extent;
    tape[i].info = kernels[i]->info;
  }
  return std::make_shared<CachedPlan>(std::move(stored->cached));
}

void keep_on_disk(Context& context, const GraphKey& key, const CachedPlan& cached) {
  const auto has_file = [](const TapeEntry& entry) { return !entry.info.file.empty(); };
  if (std::ranges::all_of(cached.plan.tape, has_file))
    context.kernels().disk().store(key.bytes, encode_plan(cached));
}

GraphPlan plan_anew(Context& context, const GraphRequest& request, const GraphKey& key) {
  GraphPlan out;
  Observer& observer = context.observer();
  const double begin = observer.now();
  std::vector<JoinTrial> trials;
  const JoinSettings joins{parse_joins(context.flags().flip_joins),
                           observer.tells(5) ? &trials : nullptr, &context.stop()};
  const Target& target = context.backend().target();
  const SplitReductions split = split_reductions(request.roots, target);
  const Schedule schedule = make_schedule(split.roots, target, context.flags().fusion != 0, joins);
  const double scheduled = observer.now();
  observer.joined(trials);
  observer.span("schedule", "schedule", begin, scheduled);
  observer.compiles().schedule += scheduled - begin;
  if (request.outputs < 0)
    out.outputs = kept_nodes(schedule, split.roots);
  else
    out.outputs.assign(split.roots.begin(), split.roots.begin() + request.outputs);
  PlanRequest wanted;
  wanted.outputs = out.outputs;
  wanted.inputs = request.inputs;
  wanted.variables = request.variables;
  wanted.leaves = key.leaves;
  out.plan = make_plan(context, schedule, wanted);
  out.plan.has_writes = key.has_writes;
  for (UOp& output : out.outputs) output = split.origin_of(output);
  out.copies = schedule.copies;
  out.copied_bytes = schedule.copied_bytes;
  out.schedule_seconds = scheduled - begin;
  out.compile_seconds = observer.now() - scheduled;
  return out;
}

}  // namespace

GraphPlan plan_graph(Context& context, const GraphRequest& request) {
  const GraphKey key = graph_key(request.roots, request.inputs, request.variables);
  PlanCache& cache = context.plans();
  CompileCounts& counts = context.observer().compiles();
  if (key.has_writes) return plan_anew(context, request, key);
  if (const auto found = cache.find(key.bytes)) {
    ++counts.plans_cached;
    counts.cached += std::ssize(found->plan.tape);
    return with_memory(*found, key);
  }
  const double begin = context.observer().now();
  if (const auto found = plan_from_disk(context, key)) {
    ++counts.plans_on_disk;
    cache.keep(key.bytes, found);
    GraphPlan out = with_memory(*found, key);
    out.compile_seconds = context.observer().now() - begin;
    return out;
  }
  GraphPlan made = plan_anew(context, request, key);
  if (const auto cached = without_memory(made, key)) {
    cache.keep(key.bytes, cached);
    keep_on_disk(context, key, *cached);
  }
  return made;
}

Ref<Program> make_program(Context& context, Plan plan) {
  Ref<Program> program = make_ref<Program>(std::move(plan));
  program->device = &context.device();
  program->time_limit = context.flags().time_limit;
  program->observer = &context.observer();
  program->owner = Ref<RefCounted>(&context);
  return program;
}

}  // namespace tiny

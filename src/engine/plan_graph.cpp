#include "engine/plan_graph.h"

#include <algorithm>

#include "engine/kernel_key.h"
#include "engine/plan.h"
#include "engine/plan_cache.h"
#include "engine/realize.h"
#include "schedule/schedule.h"
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

GraphPlan plan_anew(Context& context, const GraphRequest& request, const GraphKey& key) {
  GraphPlan out;
  Observer& observer = context.observer();
  const double begin = observer.now();
  const Schedule schedule = make_schedule(request.roots, context.backend().target(),
                                          context.flags().fusion != 0, &context.stop());
  const double scheduled = observer.now();
  observer.span("schedule", "schedule", begin, scheduled);
  observer.compiles().schedule += scheduled - begin;
  if (request.outputs < 0)
    out.outputs = kept_nodes(schedule, request.roots);
  else
    out.outputs.assign(request.roots.begin(), request.roots.begin() + request.outputs);
  PlanRequest wanted;
  wanted.outputs = out.outputs;
  wanted.inputs = request.inputs;
  wanted.variables = request.variables;
  wanted.leaves = key.leaves;
  out.plan = make_plan(context, schedule, wanted);
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
  if (!key.has_writes) {
    if (const auto found = cache.find(key.bytes)) {
      ++counts.plans_cached;
      counts.cached += std::ssize(found->plan.tape);
      return with_memory(*found, key);
    }
  }
  GraphPlan made = plan_anew(context, request, key);
  if (!key.has_writes)
    if (auto plan = without_memory(made, key)) cache.keep(key.bytes, std::move(plan));
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

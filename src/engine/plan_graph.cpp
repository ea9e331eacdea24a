#include "engine/plan_graph.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/kept_blocks.h"
#include "codegen/choose/choose.h"
#include "engine/backend.h"
#include "engine/graph_passes.h"
#include "engine/kernel_cache.h"
#include "engine/kernel_key.h"
#include "engine/observe.h"
#include "engine/plan.h"
#include "engine/plan_cache.h"
#include "engine/realize.h"
#include "engine/stored.h"
#include "ir/node_map.h"
#include "schedule/kernel_origins.h"
#include "schedule/schedule.h"
#include "schedule/size_order.h"
#include "shape/view.h"

namespace tiny {

namespace {

// The stored bases of the roots stay; everything else that is stored lives in the arena.
std::vector<UOp> kept_nodes(const Schedule& schedule, std::span<const UOp> roots) {
  if (roots.empty()) return {};
  const size_t ids = roots.front().graph().id_limit();
  std::vector<uint8_t> is_stored(ids), is_kept(ids), flags(ids);
  for (const UOp& node : schedule.stored) is_stored[node.id()] = 1;
  for (const UOp& root : roots)
    for (const UOp* node = &root;; node = &node->src(0)) {
      if (is_stored[node->id()] && !is_kept[node->id()]) {
        flags[node->id()] = 1;
        const auto stored = as_view(root, flags);
        flags[node->id()] = 0;
        is_kept[node->id()] = stored && stored->base == *node ? 1 : 0;
      }
      if (!has(node->op(), kMovement)) break;
    }
  std::vector<UOp> kept;
  std::ranges::copy_if(schedule.stored, std::back_inserter(kept),
                       [&](const UOp& node) { return is_kept[node.id()] != 0; });
  return kept;
}

// The plan for other graphs of this structure; null if it depends on more than that.
std::shared_ptr<const CachedPlan> without_memory(const GraphPlan& made) {
  const GraphKey& key = made.key;
  auto out = std::make_shared<CachedPlan>(CachedPlan{made.plan, {}});
  for (Slot& slot : out->plan.slots) {
    if (slot.kind != SlotKind::Captured) continue;
    if (slot.number >= std::ssize(key.leaves)) return nullptr;
    slot.storage = nullptr;
  }
  NodeTable<uint32_t> places;
  for (const UOp& output : made.outputs) places.emplace(output.node(), UINT32_MAX);
  for (size_t i = 0; i < key.order.size(); ++i)
    if (uint32_t* place = places.find(key.order[i].node())) *place = static_cast<uint32_t>(i);
  for (const UOp& output : made.outputs) {
    const uint32_t place = places.at(output.node());
    if (place == UINT32_MAX) return nullptr;
    out->outputs.push_back(place);
  }
  return out;
}

Plan with_memory(Plan plan, std::span<const Ref<Storage>> leaves) {
  for (Slot& slot : plan.slots)
    if (slot.kind == SlotKind::Captured) slot.storage = leaves[static_cast<size_t>(slot.number)];
  for (TapeEntry& entry : plan.tape) entry.info.cached = true;
  return plan;
}

GraphPlan with_memory(const CachedPlan& found, GraphKey key) {
  GraphPlan out;
  out.key = std::move(key);
  out.plan = with_memory(found.plan, out.memory());
  for (uint32_t position : found.outputs) out.outputs.push_back(out.key.order[position]);
  return out;
}

// The plan that an earlier process has made; null if the bytes hold none.
std::shared_ptr<const CachedPlan> decoded(Context& context,
                                          const std::optional<DiskContent>& content, size_t nodes,
                                          size_t leaves, const DiskBundle& bundle = {}) {
  if (!content) return nullptr;
  auto stored = decode_plan(content->view(), nodes, leaves);
  if (!stored) return nullptr;
  std::vector<TapeEntry>& tape = stored->cached.plan.tape;
  const std::vector<const CompiledKernel*> kernels =
      context.kernels().load_files(stored->kernels, bundle);
  if (kernels.size() != tape.size()) return nullptr;
  for (size_t i = 0; i < tape.size(); ++i) {
    if (kernels[i]->info.params.size() != tape[i].slots.size()) return nullptr;
    tape[i].executable = kernels[i]->executable;
    tape[i].threads_extent = kernels[i]->threads_extent;
    tape[i].info = kernels[i]->info;
  }
  ++context.observer().compiles().plans_on_disk;
  return std::make_shared<CachedPlan>(std::move(stored->cached));
}

// Says whose work the plan's kernels do, by the places of the key's origins.
void name_kernels(Plan& plan, const Schedule& schedule, std::span<const UOp> roots,
                  const GraphKey& key) {
  if (key.origins.empty()) return;
  std::unordered_map<Origin, uint32_t> places;
  for (const Origin origin : key.origins)
    places.emplace(origin, static_cast<uint32_t>(places.size()));
  const std::vector<std::vector<Origin>> origins = kernel_origins(schedule, roots);
  for (size_t i = 0; i < plan.tape.size(); ++i)
    for (const Origin origin : origins[i])
      if (const auto at = places.find(origin); at != places.end())
        plan.tape[i].computes.push_back(at->second);
}

bool has_files(const Plan& plan) {
  return std::ranges::all_of(plan.tape,
                             [](const TapeEntry& entry) { return !entry.info.file.empty(); });
}

// The request's graph after the passes that are left: a program's were made before its plan.
ChangedGraph ready_to_schedule(Context& context, const GraphRequest& request) {
  const GraphPassContext passes = graph_pass_context(context);
  ChangedGraph graph = unchanged(request.roots);
  if (request.outputs < 0) graph = run_graph_passes(request.roots, GraphStage::Graph, passes);
  graph.become(run_graph_passes(graph.roots, GraphStage::Kernels, passes));
  return graph;
}

GraphPlan plan_anew(Context& context, const GraphRequest& request, GraphKey key) {
  GraphPlan out;
  out.key = std::move(key);
  Observer& observer = context.observer();
  const double begin = observer.now();
  std::vector<JoinTrial> trials;
  const JoinSettings joins{parse_joins(context.flags().flip_joins),
                           observer.tells(5) ? &trials : nullptr, &context.stop(),
                           request.computed};
  const Machine& machine = context.backend().machine();
  const ChangedGraph graph = ready_to_schedule(context, request);
  std::vector<ComputedVariable> computed(request.computed.begin(), request.computed.end());
  for (size_t i = 0; i < computed.size(); ++i)
    computed[i].value = graph.roots[graph.roots.size() - computed.size() + i];
  Schedule schedule = make_schedule(graph.roots, machine, context.flags().fusion != 0, joins);
  order_by_sizes(schedule, computed);
  const double scheduled = observer.now();
  observer.joined(trials);
  observer.span("schedule", "schedule", begin, scheduled);
  observer.compiles().schedule += scheduled - begin;
  if (request.outputs < 0)
    out.outputs = kept_nodes(schedule, graph.roots);
  else
    out.outputs.assign(graph.roots.begin(), graph.roots.begin() + request.outputs);
  PlanRequest wanted;
  wanted.outputs = out.outputs;
  wanted.inputs = request.inputs;
  wanted.variables = request.variables;
  wanted.computed = computed;
  wanted.leaves = out.key.leaves;
  wanted.runs = request.outputs < 0 ? kRunsOnce : kProgramRuns;
  out.plan = make_plan(context, schedule, wanted);
  out.plan.has_writes = out.key.has_writes;
  name_kernels(out.plan, schedule, graph.roots, out.key);
  for (UOp& output : out.outputs) output = graph.origin_of(output);
  out.copies = schedule.copies;
  out.copied_bytes = schedule.copied_bytes;
  out.schedule_seconds = scheduled - begin;
  out.compile_seconds = observer.now() - scheduled;
  return out;
}

}  // namespace

std::vector<std::string> origin_texts(Context& context, std::span<const Origin> origins) {
  std::vector<std::string> texts;
  texts.reserve(origins.size());
  for (const Origin origin : origins) texts.push_back(context.graph().origins().text(origin));
  return texts;
}

namespace {

GraphPlan plan_found_or_made(Context& context, const GraphRequest& request) {
  GraphKey key = graph_key(request.roots, request.inputs, request.variables);
  PlanCache& cache = context.plans();
  CompileCounts& counts = context.observer().compiles();
  // A key does not say which variables the run computes.
  if (!key.is_kept() || !request.computed.empty())
    return plan_anew(context, request, std::move(key));
  if (const auto found = cache.find(key.bytes)) {
    ++counts.plans_cached;
    counts.cached += std::ssize(found->plan.tape);
    return with_memory(*found, std::move(key));
  }
  const double begin = context.observer().now();
  DiskCache& disk = context.kernels().disk();
  if (const auto found =
          decoded(context, disk.find(key.bytes), key.order.size(), key.leaves.size())) {
    cache.keep(key.bytes, found);
    GraphPlan out = with_memory(*found, std::move(key));
    out.compile_seconds = context.observer().now() - begin;
    return out;
  }
  GraphPlan made = plan_anew(context, request, std::move(key));
  if (const auto cached = without_memory(made)) {
    cache.keep(made.key.bytes, cached);
    if (has_files(cached->plan)) disk.store(made.key.bytes, encode_plan(*cached));
  }
  return made;
}

}  // namespace

GraphPlan plan_graph(Context& context, const GraphRequest& request) {
  const KeptBlocks::Scope scope(context.blocks(), Context::kRestBytesMax);
  GraphPlan out = plan_found_or_made(context, request);
  out.plan.names = origin_texts(context, out.key.origins);
  return out;
}

std::string GraphPlan::key_on_disk(Context& context) const {
  const bool is_kept = context.kernels().disk().enabled() && key.is_kept() && has_files(plan);
  return is_kept ? key.bytes : std::string();
}

std::vector<Ref<Storage>> GraphPlan::memory() const {
  std::vector<Ref<Storage>> out;
  for (const UOp& leaf : key.leaves) out.push_back(storage_of(leaf));
  return out;
}

std::optional<Plan> stored_plan(Context& context, const std::string& file,
                                std::span<const Ref<Storage>> leaves, const DiskBundle& bundle) {
  // What its outputs are called in the graph that it was made for is not asked.
  const auto found = decoded(context, context.kernels().disk().find_named(file, bundle), SIZE_MAX,
                             leaves.size(), bundle);
  return found ? std::optional(with_memory(found->plan, leaves)) : std::nullopt;
}

Ref<Program> make_program(Context& context, Plan plan) {
  Ref<Program> program = make_ref<Program>(std::move(plan));
  program->device = &context.device();
  program->layout = context.backend().target().arena;
  program->time_limit = context.flags().time_limit;
  program->poll = context.flags().poll;
  program->observer = &context.observer();
  program->owner = Ref<RefCounted>(&context);
  return program;
}

}  // namespace tiny

#include "engine/compile.h"

#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/kept_blocks.h"
#include "engine/constants.h"
#include "engine/graph_passes.h"
#include "engine/kernel_cache.h"
#include "engine/kernel_key.h"
#include "engine/observe.h"
#include "engine/plan_graph.h"
#include "engine/program_record.h"
#include "engine/realize.h"
#include "engine/versions.h"
#include "ir/node_map.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// What stands in for an input's memory until a run binds it.
class InputTag : public Storage {
 public:
  explicit InputTag(Ref<RefCounted> s = {}) : Storage(Ref<Buffer>(), 0), source(std::move(s)) {}

  const Ref<RefCounted> source;
};

// Where the disk cache has the record of a program: by all that decides how it is made.
std::string record_key(const Context& context, const GraphKey& graph) {
  ByteWriter out;
  out.text("program").number(context.flags().pack);
  // Which constants are copied depends on where they lie.
  for (const UOp& leaf : graph.leaves) out.number(storage_of(leaf)->can_unload());
  return out.text(graph.bytes).result();
}

// The program that an earlier process has made of a graph of this structure, its constants computed
// as there; none if there is none.
std::optional<Plan> replayed(Context& context, const std::string& key, const GraphKey& graph) {
  const auto content = context.kernels().disk().find(key);
  if (!content) return std::nullopt;
  const auto record = decode_record(content->view(), graph.leaves.size());
  return record ? replay(context, *record, graph) : std::nullopt;
}

int64_t mapped_bytes(const UOp& u) {
  const Ref<Storage> storage = storage_of(u);
  return storage->can_unload() ? storage->memory().bytes() : 0;
}

// Rewrites the graph, computes its constants and makes its plan.
Plan made_plan(Context& context, const GraphRequest& given, const Captured& captured,
               ProgramRecorder& recorder, CompiledProgram& out) {
  std::vector<UOp> roots(given.roots.begin(), given.roots.end());
  roots.insert(roots.end(), captured.versions.begin(), captured.versions.end());
  Observer& observer = context.observer();
  const double start = observer.now();
  GraphPassContext passes = graph_pass_context(context);
  passes.outputs = given.roots.size();
  passes.compute = [&](const std::vector<UOp>& values) {
    compute_constants(context, values, recorder);
  };
  passes.is_fixed = [all = captured.is_constant](const UOp& u) {
    return !is_input(u) && (all || storage_of(u)->is_constant());
  };
  passes.mapped_bytes = mapped_bytes;
  const size_t first_computed = roots.size();
  for (const ComputedVariable& one : given.computed) roots.push_back(one.value);
  roots = run_graph_passes(roots, GraphStage::Graph, passes).roots;
  std::vector<ComputedVariable> computed;
  for (size_t i = 0; i < given.computed.size(); ++i)
    computed.push_back(
        {given.computed[i].variable, roots[first_computed + i], given.computed[i].is_open});
  context.device().release_kept();  // what constants needed must not stand beside what comes
  out.init_seconds += observer.now() - start;
  observer.drawn(roots);
  GraphRequest request = given;
  request.roots = roots;
  request.computed = computed;
  GraphPlan planned = plan_graph(context, request);
  out.schedule_seconds = planned.schedule_seconds;
  out.compile_seconds = planned.compile_seconds;
  recorder.finish(planned.key_on_disk(context), planned.memory(), planned.key.origins);
  return std::move(planned.plan);
}

}  // namespace

UOp make_input(Context& context, DType dtype, const Dim& count, Ref<RefCounted> source) {
  return make_buffer(context.graph(), Ref<RefCounted>(make_ref<InputTag>(std::move(source))), dtype,
                     count);
}

bool is_input(const UOp& node) {
  if (node.op() != Op::Buffer) return false;
  return !storage_of(node)->has_memory();
}

RefCounted* source_of(const UOp& input) {
  return static_cast<const InputTag&>(*storage_of(input)).source.get();
}

CompiledProgram compile_program(Context& context, std::span<const UOp> outputs,
                                std::span<const UOp> inputs, std::span<const UOp> variables,
                                const Captured& captured,
                                std::span<const ComputedVariable> computed) {
  const KeptBlocks::Scope scope(context.blocks(), Context::kRestBytesMax);
  CompiledProgram out;
  Observer& observer = context.observer();
  const int64_t cached = observer.compiles().cached;
  const double start = observer.now();
  GraphRequest request;
  request.roots = outputs;
  request.outputs = std::ssize(outputs);
  request.inputs = inputs;
  request.variables = variables;
  request.computed = computed;
  DiskCache& disk = context.kernels().disk();
  const bool is_kept =
      disk.enabled() && captured.is_constant && captured.versions.empty() && computed.empty();
  const GraphKey graph = is_kept ? graph_key(outputs, inputs, variables) : GraphKey{};
  const bool has_record = is_kept && graph.is_kept();
  const std::string key = has_record ? record_key(context, graph) : std::string();
  std::optional<Plan> plan = has_record ? replayed(context, key, graph) : std::nullopt;
  if (plan) context.device().release_kept();
  out.init_seconds = observer.now() - start;
  if (!plan) {
    ProgramRecorder recorder(disk, graph);
    plan = made_plan(context, request, captured, recorder, out);
    if (has_record)
      if (const auto record = recorder.encoded()) disk.store(key, *record);
  }
  out.cached = observer.compiles().cached - cached;
  out.program = make_program(context, std::move(*plan));
  for (const Slot& slot : out.program->slots)
    if (slot.kind == SlotKind::Captured) out.weight_bytes += slot.bytes;
  return out;
}

std::vector<UOp> pending_versions(Context& context, std::span<const UOp> outputs,
                                  std::span<const UOp> inputs) {
  std::vector<UOp> roots(outputs.begin(), outputs.end());
  const std::vector<UOp> beside = writes_beside(context, outputs, inputs);
  roots.insert(roots.end(), beside.begin(), beside.end());
  const std::vector<UOp> along = begin_writes_along(context, roots);
  roots.insert(roots.end(), along.begin(), along.end());
  return pending_below(roots);
}

void take_versions(Context& context, std::span<const UOp> versions) {
  NodeSet taken;
  for (const UOp& u : versions) taken.insert(u.node());
  const auto is_taken = [&](const UOp& u) { return taken.contains(u.node()); };
  // First all checks, then the changes.
  for (Cell* cell = context.cells(); cell; cell = cell->next()) {
    UOp below = cell->node();
    if (is_taken(below)) continue;
    while (below.op() == Op::After && !has_memory(below)) {
      below = UOp(below.src(0));
      require(!is_taken(below), Status::InvalidArgument,
              "a tensor that the program writes has a later write pending: list it among the "
              "outputs, or realise it");
    }
  }
  for (Cell* cell = context.cells(); cell; cell = cell->next()) {
    if (!is_taken(cell->node())) continue;
    UOp below = cell->node();
    while (!has_memory(below)) below = UOp(below.src(0));
    cell->set(make_buffer(context.graph(), storage_of(below), below.dtype(),
                          product(shape_of(below)).value()));
  }
  for (const UOp& u : versions) u.node()->realized = make_ref<InputTag>();
}

}  // namespace tiny

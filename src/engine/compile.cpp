#include "engine/compile.h"

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "engine/constants.h"
#include "engine/kernel_cache.h"
#include "engine/kernel_key.h"
#include "engine/observe.h"
#include "engine/plan_graph.h"
#include "engine/program_record.h"
#include "engine/realize.h"
#include "ir/node_map.h"
#include "ir/rebuild.h"
#include "ir/spec.h"
#include "schedule/rewrite/onehot.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

// What stands in for an input's memory until a run binds it.
class InputTag : public Storage {
 public:
  InputTag() : Storage(Ref<Buffer>(), 0) {}
};

// What is stored in a buffer of its own, row-major where it is an output; of a concatenation each
// part into its place.
bool is_stored_whole(const UOp& u) {
  return u.op() == Op::Contiguous || u.op() == Op::Concat || u.op() == Op::Scatter ||
         u.op() == Op::Scan;
}

// The same elements in the same order, without the shape that they were given last.
UOp without_reshapes(const UOp& value) {
  UOp u = value;
  while (u.op() == Op::Reshape && !has_memory(u)) u = UOp(u.src(0));
  return u;
}

// Each output in a buffer of its own, row-major, then the versions.  What else reads an output
// reads that buffer, so that the value is not stored twice; what is a view of memory is read from
// there.
std::vector<UOp> in_own_buffers(std::span<const UOp> outputs, std::span<const UOp> versions) {
  std::vector<UOp> roots(outputs.begin(), outputs.end());
  roots.insert(roots.end(), versions.begin(), versions.end());
  if (roots.empty()) return roots;
  std::vector<uint8_t> is_output(roots.front().graph().id_limit());
  for (const UOp& u : outputs) is_output[u.id()] = as_view(u) ? 0 : 1;
  return rebuild(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (!is_output[node.id()] || is_stored_whole(without_reshapes(now))) return now;
    return now.graph().make(Op::Contiguous, {now});
  });
}

// The first `count` of the roots are to be stored anew: what has memory already, or is stored for
// another of them, is copied.
void copy_what_is_stored(std::vector<UOp>& roots, size_t count) {
  NodeSet taken;
  for (UOp& root : std::span(roots).first(count)) {
    if (const UOp base = without_reshapes(root); is_stored_whole(base) && !has_memory(base))
      root = base;
    while (!is_stored_whole(root) || has_memory(root) || taken.contains(root.node()))
      root = root.graph().make(Op::Contiguous, {UOp(root)});
    taken.insert(root.node());
  }
}

// Where the disk cache has the record of a program: by all that decides how it is made.
std::string record_key(const Context& context, const GraphKey& graph) {
  ByteWriter out;
  out.text("program").text(context.flags().wino).number(context.flags().pack);
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

// Rewrites the graph, computes its constants and makes its plan.
Plan made_plan(Context& context, const GraphRequest& given, const Captured& captured,
               ProgramRecorder& recorder, CompiledProgram& out) {
  std::vector<UOp> roots = in_own_buffers(onehot_to_gather(given.roots), captured.versions);
  Observer& observer = context.observer();
  const double start = observer.now();
  if (!roots.empty()) compute_constants(context, roots, captured, recorder);
  copy_what_is_stored(roots, given.roots.size());
  context.device().release_kept();  // what constants needed must not stand beside what comes
  out.init_seconds += observer.now() - start;
  if (context.flags().spec != 0) verify_tensor(roots);
  observer.drawn(roots);
  GraphRequest request = given;
  request.roots = roots;
  GraphPlan planned = plan_graph(context, request);
  out.schedule_seconds = planned.schedule_seconds;
  out.compile_seconds = planned.compile_seconds;
  recorder.finish(planned.key_on_disk(context), planned.memory(), planned.key.origins);
  return std::move(planned.plan);
}

}  // namespace

UOp make_input(Context& context, DType dtype, const Dim& count) {
  return make_buffer(context.graph(), Ref<RefCounted>(make_ref<InputTag>()), dtype, count);
}

bool is_input(const UOp& node) {
  if (node.op() != Op::Buffer) return false;
  return !storage_of(node)->has_memory();
}

CompiledProgram compile_program(Context& context, std::span<const UOp> outputs,
                                std::span<const UOp> inputs, std::span<const UOp> variables,
                                const Captured& captured) {
  CompiledProgram out;
  Observer& observer = context.observer();
  const int64_t cached = observer.compiles().cached;
  const double start = observer.now();
  GraphRequest request;
  request.roots = outputs;
  request.outputs = std::ssize(outputs);
  request.inputs = inputs;
  request.variables = variables;
  DiskCache& disk = context.kernels().disk();
  const bool is_kept = disk.enabled() && captured.is_constant && captured.versions.empty();
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

std::vector<UOp> pending_versions(std::span<const UOp> outputs) {
  std::vector<UOp> found;
  for (const UOp& u : topological(outputs, has_memory))
    if (u.op() == Op::After && !has_memory(u)) found.push_back(u);
  return found;
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

#include "engine/realize.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/pieces.h"
#include "engine/observe.h"
#include "engine/plan_graph.h"
#include "engine/versions.h"
#include "ir/node_map.h"
#include "ir/spec.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

Ref<Storage> storage_of(const UOp& node) {
  // Only the engine attaches memory, and it is always a Storage.  An old version of a buffer may
  // have been copied elsewhere.
  if (node.op() == Op::Buffer && !node.node()->realized)
    return Ref<Storage>(static_cast<Storage*>(std::get<Ref<RefCounted>>(node.arg()).get()));
  return Ref<Storage>(static_cast<Storage*>(node.node()->realized.get()));
}

namespace {

// What `node` is a view of: a stored node, or the first that is no movement.
UOp base_of(const UOp& node) {
  UOp base = node;
  while (!has_memory(base) && has(base.op(), kMovement)) base = UOp(base.src(0));
  return base;
}

// What holds the memory of `node`, if anything does yet.
std::optional<StoredView> stored_view(const UOp& node) {
  const UOp base = base_of(node);
  if (!has_memory(base)) return std::nullopt;
  if (base.op() == Op::Buffer || base.op() == Op::After) return as_view(node);
  std::vector<uint8_t> flags(base.id() + 1);
  flags[base.id()] = 1;
  return as_view(node, flags);
}

// Gives out memory for results: parts of one piece for the outputs among `together`.
class ResultMemory {
 public:
  ResultMemory(Context& context, std::span<const Slot> together) : context_(context) {
    int64_t bytes = 0;
    for (const Slot& slot : together)
      if (slot.kind == SlotKind::Output)
        bytes = checked_add(bytes, round_up(slot.bytes, kAlignment), "the results' size");
    if (bytes > 0) whole_ = context.allocate(bytes);
  }

  Ref<Storage> allocate(int64_t bytes) {
    if (!whole_) return context_.allocate(bytes);
    const int64_t offset = std::exchange(used_, used_ + round_up(bytes, kAlignment));
    return make_ref<Storage>(Ref<Buffer>(&whole_->memory()), offset);
  }

 private:
  static constexpr int64_t kAlignment = 256;  // as devices align what they allocate
  Context& context_;
  Ref<Storage> whole_;
  int64_t used_ = 0;
};

// A call of the caller's function is made once for all its results that are alive: those that
// nobody asks for now are kept as well.
void add_results_beside(std::vector<UOp>& roots) {
  for (const UOp& u : topological(roots, has_memory)) {
    if (u.op() != Op::Call || has_memory(u)) continue;
    const std::vector<UOp> results = alive_results(u);
    if (results.size() == 1) continue;
    for (const UOp& result : results)
      if (!std::ranges::count(roots, result)) roots.push_back(result);
  }
}

// A run of the plan with memory for each of its outputs, where none is given.
Ref<Run> bound_run(Context& context, Plan plan, Placement placement,
                   std::vector<Ref<Storage>>& memory) {
  const Ref<Program> program = make_program(context, std::move(plan));
  program->is_exclusive = false;  // its writes are versions, which the graph knows
  const Ref<Run> run = make_ref<Run>(program, true);
  ResultMemory results(context,
                       placement == Placement::Together ? program->slots : std::span<const Slot>());
  for (const Slot& slot : program->slots) {
    if (slot.kind != SlotKind::Output) continue;
    Ref<Storage>& storage = memory[static_cast<size_t>(slot.number)];
    if (!storage) storage = results.allocate(slot.bytes);
    run->bind_output(slot.number, storage);
  }
  context.counters().launches += run->launch_count();
  return run;
}

}  // namespace

void require_values(std::span<const UOp> outputs, std::span<const UOp> inputs,
                    std::span<const UOp> variables) {
  NodeSet given;
  for (const UOp& input : inputs) given.insert(input.node());
  for (const UOp& u : topological(outputs, has_memory)) {
    if (u.op() == Op::Variable)
      require(std::ranges::count(variables, u) > 0, Status::InvalidArgument,
              "the value depends on the unbound variable \"", u.variable_arg().name,
              "\", which runs of a program bind: compile a program and read its run");
    if (!has_memory(u) || given.contains(u.node())) continue;
    const Ref<Storage> storage = storage_of(u);
    require(storage->has_memory() || u.op() != Op::Buffer, Status::InvalidArgument,
            inputs.empty()
                ? "the value depends on an input (tiny_input), which runs of a program alone"
                  " have: compile a program and read its run"
                : "an output depends on an input that is not among the inputs");
    require(storage->has_memory(), Status::InvalidArgument,
            "the value depends on what a program writes: read it from a run of the program");
    require(storage->is_current(), Status::InvalidArgument,
            "the value was built on a tensor that a program has written to since: realise it before"
            " the run, or build it again");
  }
}

namespace {

// An extremum that was computed before, and is compared with the elements that it is of, is
// computed again beside them: another kernel may have rounded their sums otherwise, so that none of
// them would be it.
void forget_compared_extremes(std::span<const UOp> roots) {
  for (const UOp& u : topological(roots, has_memory)) {
    if (u.op() != Op::Equal && u.op() != Op::NotEqual) continue;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const UOp extreme = base_of(u.src(i));
      if (extreme.op() != Op::ReduceAxis || !extreme.node()->realized) continue;
      const Op kind = extreme.reduce_arg().op;
      const UOp elements = base_of(extreme.src(0));
      if ((kind != Op::Max && kind != Op::Min) || has_memory(elements)) continue;
      if (base_of(u.src(1 - i)) == elements) extreme.node()->realized = nullptr;
    }
  }
}

}  // namespace

Realized realize(Context& context, std::span<const UOp> outputs, Placement placement) {
  std::vector<UOp> missing;
  for (const UOp& out : outputs)
    if (!stored_view(out)) missing.push_back(out);
  require_values(outputs, {});  // an input is stored, but nowhere
  if (missing.empty()) return {};
  forget_compared_extremes(missing);
  if (context.flags().spec != 0) verify_tensor(missing);
  if (!context.custom_ops().empty()) add_results_beside(missing);
  // Before what they replace is gone, of which copies would have to be made.
  for (const UOp& version : writes_beside(context, missing, {})) missing.push_back(version);
  for (const UOp& version : begin_writes_along(context, missing)) missing.push_back(version);
  context.observer().drawn(missing);
  Versions versions(context, missing);
  missing.insert(missing.end(), versions.copies().begin(), versions.copies().end());
  GraphRequest request;
  request.roots = missing;
  GraphPlan planned = plan_graph(context, request);
  const std::vector<UOp>& kept = planned.outputs;
  std::vector<Ref<Storage>> memory;
  for (const UOp& node : kept) memory.push_back(versions.memory_for(node));
  Realized made{planned.key_on_disk(context), planned.memory(), {}};
  context.counters().copies += planned.copies + std::ssize(versions.copies());
  context.counters().copied_bytes += planned.copied_bytes + versions.copied_bytes();
  const Ref<Run> run = bound_run(context, std::move(planned.plan), placement, memory);
  const auto attach = [&](const UOp& node, size_t i) { node.node()->realized = memory[i]; };
  // Writes happen once, even if the run fails on the way.
  if (versions.any()) {
    for (size_t i = 0; i < kept.size(); ++i)
      if (versions.is_copy(kept[i])) attach(kept[i], i);
    versions.settle();
  }
  run->execute(context.stop());
  for (size_t i = 0; i < kept.size(); ++i) attach(kept[i], i);
  made.results = std::move(memory);
  return made;
}

std::vector<Ref<Storage>> run_once(Context& context, Plan plan, Placement placement) {
  std::vector<Ref<Storage>> memory(static_cast<size_t>(plan.outputs));
  bound_run(context, std::move(plan), placement, memory)->execute(context.stop());
  return memory;
}

Ref<Storage> row_major_memory(Context& context, const UOp& node) {
  std::optional<StoredView> stored = stored_view(node);
  UOp source = node;
  if (!stored || !is_row_major(View{stored->view.shape, stored->view.strides, 0})) {
    if (stored) source = node.graph().make(Op::Contiguous, {node});
    realize(context, {&source, 1});
    stored = stored_view(source);
    if (stored && !is_row_major(View{stored->view.shape, stored->view.strides, 0})) {
      source = node.graph().make(Op::Contiguous, {node});
      realize(context, {&source, 1});
      stored = stored_view(source);
    }
  }
  invariant(stored.has_value(), "a realised value has memory");
  require_values({&stored->base, 1}, {});
  return Storage::part(storage_of(stored->base),
                       stored->view.offset.value() * node.dtype().bytes());
}

void read(Context& context, const UOp& node, void* data, int64_t bytes) {
  if (bytes == 0) return;
  const Ref<Storage> elements = row_major_memory(context, node);
  for_each_piece_of(bytes, 1, &context.stop(), [&](int64_t at, int64_t size) {
    context.device().copy_out(nullptr, static_cast<std::byte*>(data) + at, elements->memory(),
                              elements->byte_offset() + at, size);
  });
}

Ref<Storage> copy_to(Device& device, Context& context, const UOp& node, int64_t bytes) {
  const Ref<Storage> made = make_ref<Storage>(device.allocate(bytes), 0);
  if (bytes == 0) return made;
  const Ref<Storage> elements = row_major_memory(context, node);
  copy_between({&made->memory(), 0}, {&elements->memory(), elements->byte_offset()}, bytes,
               context.stop());
  return made;
}

}  // namespace tiny

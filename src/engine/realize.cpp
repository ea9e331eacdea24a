#include "engine/realize.h"

#include <cstring>

#include "base/error.h"
#include "engine/plan.h"
#include "ir/spec.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

Ref<Storage> storage_of(const UOp& node) {
  // Only the engine attaches memory, and it is always a Storage.
  if (node.op() == Op::Buffer)
    return Ref<Storage>(static_cast<Storage*>(std::get<Ref<RefCounted>>(node.arg()).get()));
  return Ref<Storage>(static_cast<Storage*>(node.node()->realized.get()));
}

namespace {

// What holds the memory of `node`, if anything does yet.
std::optional<StoredView> stored_view(const UOp& node) {
  std::vector<uint8_t> flags;
  UOp base = node;
  while (!has_memory(base) && has(base.op(), kMovement)) base = UOp(base.src(0));
  if (!has_memory(base)) return std::nullopt;
  flags.resize(base.id() + 1);
  flags[base.id()] = 1;
  return as_view(node, flags);
}

}  // namespace

void realize(Context& context, std::span<const UOp> outputs) {
  std::vector<UOp> missing;
  for (const UOp& out : outputs)
    if (!stored_view(out)) missing.push_back(out);
  if (missing.empty()) return;
  if (context.flags().spec != 0)
    for (const UOp& out : missing) verify_tensor(out);
  Observer& observer = context.observer();
  observer.drawn(missing);
  const double start = observer.now();
  const Schedule schedule =
      make_schedule(missing, context.backend().target(), context.flags().fusion != 0);
  observer.span("schedule", "schedule", start, observer.now());
  // The stored bases of the outputs stay; everything else that is stored lives in the arena.
  std::vector<UOp> kept;
  for (const UOp& node : schedule.stored) {
    std::vector<uint8_t> flags(node.graph().id_limit());
    flags[node.id()] = 1;
    for (const UOp& out : missing)
      if (as_view(out, flags)) {
        kept.push_back(node);
        break;
      }
  }
  PlanRequest request;
  request.outputs = kept;
  const Ref<Program> program = make_program(context, schedule, request);
  const Ref<Run> run = make_ref<Run>(program);
  std::vector<Ref<Storage>> memory;
  for (const Slot& slot : program->slots) {
    if (slot.kind != SlotKind::Output) continue;
    if (memory.size() <= static_cast<size_t>(slot.number))
      memory.resize(static_cast<size_t>(slot.number) + 1);
    memory[static_cast<size_t>(slot.number)] = context.allocate(slot.bytes);
    run->bind_output(slot.number, memory[static_cast<size_t>(slot.number)]);
  }
  run->execute();
  for (size_t i = 0; i < kept.size(); ++i) kept[i].node()->realized = memory[i];
}

void read(Context& context, const UOp& node, void* data, int64_t bytes) {
  if (bytes == 0) return;
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
  const Ref<Storage> storage = storage_of(stored->base);
  const int64_t offset =
      storage->byte_offset() + stored->view.offset.value() * node.dtype().bytes();
  const Ref<Queue> queue = context.device().make_queue();
  context.device().copy_out(queue.get(), data, storage->memory(), offset, bytes);
  context.device().wait(queue.get());
}

}  // namespace tiny

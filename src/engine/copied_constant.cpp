#include "engine/copied_constant.h"

#include <algorithm>

#include "base/checked.h"
#include "base/thread_pool.h"
#include "engine/realize.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

// Large enough that giving pages back costs nothing beside the copy.
constexpr int64_t kPieceBytes = 16 << 20;

int64_t bytes_of(const Storage& storage) {
  return storage.memory().bytes() - storage.byte_offset();
}

}  // namespace

bool is_copied(const UOp& value) {
  if (value.op() != Op::Contiguous || has_memory(value)) return false;
  const auto stored = as_view(value.src(0));
  if (!stored || stored->base.op() != Op::Buffer || !is_row_major(stored->view)) return false;
  const Ref<Storage> origin = storage_of(stored->base);
  const Dim count = product(stored->view.shape);
  return origin->can_unload() && count.is_const() &&
         count.value() * value.dtype().bytes() == bytes_of(*origin);
}

Ref<Storage> copy_and_unload(Context& context, const Storage& origin) {
  const int64_t bytes = bytes_of(origin);
  const Ref<Storage> made = context.allocate(bytes);
  Device& device = context.device();
  const Ref<Queue> queue = device.make_queue();
  const int64_t pieces = ceil_div(bytes, kPieceBytes);
  for_each_piece(device.threads(), pieces, context.stop(), [&](int64_t piece, int) {
    const int64_t at = piece * kPieceBytes;
    device.copy(queue.get(), made->memory(), at, origin.memory(), origin.byte_offset() + at,
                std::min(kPieceBytes, bytes - at));
    // What other threads are copying comes back from the file.
    origin.unload();
  });
  device.wait(queue.get());
  return made;
}

}  // namespace tiny

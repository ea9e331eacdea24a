#include "api/counted.h"

#include <iterator>

#include "base/error.h"

namespace tiny {

namespace {

// In the order of HandleKind.
constexpr const char* kNames[] = {
    "tiny_options",  "tiny_context",     "tiny_tensor",    "tiny_report", "tiny_cancel",
    "tiny_archive",  "tiny_model",       "tiny_program",   "tiny_run",    "tiny_variable",
    "tiny_window",   "tiny_custom_op",   "tiny_optimizer", "tiny_loader", "tiny_generator",
    "tiny_module",   "tiny_loss_scaler", "tiny_plateau",   "tiny_node",   "tiny_value",
    "tiny_processes"};
constexpr uint64_t kKinds = std::size(kNames);
static_assert(kKinds == static_cast<uint64_t>(HandleKind::Processes) + 1);

}  // namespace

void throw_wrong(const Counted* handle, HandleKind wanted, const char* name) {
  const char* const expected = kNames[static_cast<size_t>(wanted)];
  const uint64_t tag = is_aligned(handle) ? handle->tag_.load(std::memory_order_relaxed) : 0;
  const uint64_t live = tag - Counted::kLive;
  const uint64_t released = tag - Counted::kReleased;
  if (live < kKinds && live != static_cast<uint64_t>(wanted))
    throw_error(Status::InvalidArgument, name, " is a ", kNames[live], " where a ", expected,
                " is wanted");
  if (live < kKinds || released < kKinds)
    throw_error(Status::InvalidArgument, name, " is a released ",
                kNames[live < kKinds ? live : released]);
  throw_error(Status::InvalidArgument, name, " is no ", expected,
              ": it was released, or never one");
}

}  // namespace tiny

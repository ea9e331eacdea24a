#include "api/handle.h"

#include <chrono>

#include "api/boundary.h"
#include "base/checked.h"
#include "base/inside.h"
#include "engine/observe.h"

namespace {

bool is_waiting(const tiny::Flags& flags) {
  tiny::require(flags.busy == "wait" || flags.busy == "error", tiny::Status::InvalidArgument,
                "option \"busy\" is \"", flags.busy, "\"; known: wait, error");
  return flags.busy == "wait";
}

void forget_pins(void* core) {
  static_cast<tiny::Context*>(core)->forget_pins();
}

}  // namespace

// What a wait for the context may take, and what it ends with.
struct tiny_context::WaitLimit {
  const char* name;
  int64_t milliseconds;  // 0: no limit
  tiny::Status status;
};

tiny_context::tiny_context(const tiny::Flags& flags)
    : core(tiny::make_ref<tiny::Context>(flags)),
      lock(forget_pins, core.get()),
      waits_(is_waiting(flags)) {
}

tiny_context::~tiny_context() {
  drain();
  tiny::guarded("tiny_context_release", [&] { core->observer().finish(); });
}

// What a fork left half done is let alone.
void tiny_context::release() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) == 1 && !lock.is_lost()) delete this;
}

tiny::StopSignal::Since tiny_context::enter(tiny::StopSignal::Since since) {
  using tiny::Status;
  tiny::require(!tiny::Inside::is(this), Status::Busy,
                "a function that this context called, such as log, progress or a deleter, calls "
                "the context, which it must not");
  if (lock.try_lock()) return since;
  tiny::require(waits_ || lock.is_lost(), Status::Busy,
                "another call is using the context; the option \"busy\" = \"wait\" waits for it");
  if (!since) since = tiny::StopSignal::Clock::now();
  // Of the two limits the one that comes first ends it.
  const tiny::Flags& flags = core->flags();
  const bool is_busy =
      flags.busy_timeout > 0 && (flags.time_limit == 0 || flags.busy_timeout <= flags.time_limit);
  wait(is_busy ? WaitLimit{"busy_timeout", flags.busy_timeout, Status::Busy}
               : WaitLimit{"the limit time_limit", flags.time_limit, Status::Limit},
       *since);
  return since;
}

void tiny_context::enter_again(tiny::StopSignal::Since since) {
  if (lock.try_lock()) return;
  wait({"the limit time_limit", core->flags().time_limit, tiny::Status::Limit},
       since.value_or(tiny::StopSignal::Clock::now()));
}

// The caller's poll function must not call the context.
void tiny_context::wait(const WaitLimit& limit, tiny::StopSignal::Clock::time_point since) {
  using Result = tiny::FairLock::Result;
  using tiny::Status;
  const auto until = limit.milliseconds > 0 ? since + std::chrono::milliseconds(limit.milliseconds)
                                            : tiny::FairLock::Clock::time_point::max();
  const tiny::Inside inside(this);
  const Result result = lock.lock(until, core->flags().poll);
  if (result == Result::TimedOut)
    tiny::throw_error(limit.status, "another call was using the context for more than ", limit.name,
                      " = ", limit.milliseconds, " milliseconds");
  tiny::require(result != Result::Cancelled, Status::Cancelled,
                "the cancel token was set while the call waited for another that is using the "
                "context");
  tiny::require(result != Result::Ended, Status::Cancelled,
                "the poll function ended it while the call waited for another that is using the "
                "context");
  tiny::require(result != Result::Lost, Status::DeviceLost,
                "the process was forked while another thread was using the context: a child makes "
                "a context of its own");
}

bool tiny_context::try_enter() {
  return !tiny::Inside::is(this) && lock.try_lock();
}

void tiny_context::leave() {
  core->publish_cells();
  lock.unlock();
  drain_if_free();
}

// Who releases puts the tensor on the list first and tries the lock then; who has the lock gives it
// back first and looks at the list then: one of them sees the other.  Where nobody waits, a release
// by another thread than the builder's must not be what makes a call of the builder's BUSY.
void tiny_context::drain_if_free() {
  if (!waits_ && !lock.was_mine()) return;
  while (released.load() && lock.try_lock()) {
    drain();
    lock.unlock();
  }
}

void tiny_context::drain() {
  const tiny::Inside inside(this);
  tiny::HoldsNodes* list = released.exchange(nullptr);
  while (list) {
    tiny::HoldsNodes* const handle = std::exchange(list, list->next);
    handle->end(handle);
  }
}

void tiny_tensor::hold(tiny::Tensor tensor) {
  value = std::move(tensor);
  dtype = value.dtype();
  is_number = value.is_number() && value.node().is_const();
  is_weak = value.weak() && !dtype.is_bool() && context->core->flags().weak_results != 0;
  if (is_number) number_bits = value.node().const_bits();
  const tiny::View& view = value.view();
  rank = view.shape.size();
  tiny::invariant(rank <= TINY_RANK_MAX, "a tensor that a caller sees has a few dimensions");
  is_fixed = view.offset.is_const();
  if (is_fixed) offset = view.offset.value();
  numel = 1;
  for (size_t i = 0; i < rank; ++i) {
    const tiny::Dim& size = view.shape[i];
    const tiny::Dim& stride = view.strides[i];
    is_fixed = is_fixed && size.is_const() && stride.is_const();
    dims[i] = context->marks.mark(size);
    if (!is_fixed) continue;
    strides[i] = stride.value();
    numel = tiny::checked_mul(numel, dims[i], "a size");
  }
  if (!is_fixed) shape = tiny::cat(view.shape);
}

namespace tiny {

void release_nodes(HoldsNodes* handle) noexcept {
  tiny_context* context = handle->context;
  handle->next = context->released.load(std::memory_order_relaxed);
  while (!context->released.compare_exchange_weak(handle->next, handle)) {
  }
  context->drain_if_free();
  context->release();
}

void release_handle(tiny_tensor* tensor) noexcept {
  if (is_last_release(tensor)) release_nodes(tensor);
}

}  // namespace tiny

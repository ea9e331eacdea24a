#include "api/handle.h"

#include "api/boundary.h"
#include "engine/observe.h"

namespace {

// Its address marks the thread.
thread_local char thread_mark;

}  // namespace

tiny_context::~tiny_context() {
  drain();
  tiny::guarded("tiny_context_release", [&] { core->observer().finish(); });
}

void tiny_context::release() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

bool tiny_context::try_enter() {
  if (busy.exchange(true, std::memory_order_acquire)) return false;
  builder.store(&thread_mark, std::memory_order_relaxed);
  return true;
}

void tiny_context::drain() {
  tiny_tensor* list = released.exchange(nullptr, std::memory_order_acquire);
  while (list) delete std::exchange(list, list->next);
}

namespace tiny {

void release_handle(tiny_tensor* tensor) noexcept {
  if (!is_last_release(tensor)) return;
  tiny_context* context = tensor->context;
  // Only the builder takes the flag here: another thread would make its next call BUSY.
  if (context->builder.load(std::memory_order_relaxed) == &thread_mark && context->try_enter()) {
    delete tensor;
    context->leave();
  } else {
    tensor->next = context->released.load(std::memory_order_relaxed);
    while (!context->released.compare_exchange_weak(tensor->next, tensor, std::memory_order_release,
                                                    std::memory_order_relaxed)) {
    }
  }
  context->release();
}

}  // namespace tiny

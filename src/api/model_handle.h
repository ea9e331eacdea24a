// What the handles of models, programs, runs and reports are.  None of them holds nodes of a graph,
// so any thread may release them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "api/handle.h"
#include "onnx/session.h"

struct tiny_report {
  std::string text;
};

// Each keeps its context's handle alive.
struct tiny_model {
  tiny_model(tiny_context& c, tiny::Ref<tiny::onnx::LoadedModel> v)
      : context(&c), value(std::move(v)) {
    c.retain();
  }

  std::atomic<int64_t> references{1};
  tiny_context* context;
  tiny::Ref<tiny::onnx::LoadedModel> value;
};

struct tiny_program {
  tiny_program(tiny_context& c, tiny::Ref<const tiny::TensorProgram> v)
      : context(&c), value(std::move(v)) {
    c.retain();
  }

  std::atomic<int64_t> references{1};
  tiny_context* context;
  tiny::Ref<const tiny::TensorProgram> value;
};

struct tiny_run {
  tiny_run(tiny_context& c, tiny::Ref<tiny::TensorRun> v) : context(&c), value(std::move(v)) {
    c.retain();
  }

  std::atomic<bool> busy{false};  // one thread at a time uses a run
  tiny_context* context;
  tiny::Ref<tiny::TensorRun> value;
};

namespace tiny {

template <class Handle>
void retain_counted(Handle* handle) {
  if (handle) handle->references.fetch_add(1, std::memory_order_relaxed);
}

// The context goes last: what the handle holds may live in its memory.
template <class Handle>
void destroy(Handle* handle) {
  tiny_context* context = handle->context;
  delete handle;
  context->release();
}

template <class Handle>
void release_counted(Handle* handle) {
  if (handle && handle->references.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(handle);
}

}  // namespace tiny

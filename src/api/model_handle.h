// What the handles of programs, runs and reports are; loaded_model.h has that of models.  None of
// them holds nodes of a graph, so any thread may release them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/handle.h"
#include "api/joint.h"
#include "tensor/program.h"
#include "tensor/run.h"

struct tiny_report : tiny::CountedAs<tiny::HandleKind::Report> {
  explicit tiny_report(std::string t) : text(std::move(t)) {}

  std::string text;
};

// Each keeps its context's handle alive.
struct tiny_program : tiny::CountedAs<tiny::HandleKind::Program> {
  tiny_program(tiny_context& c, tiny::Ref<const tiny::TensorProgram> v)
      : context(&c), value(std::move(v)) {
    c.retain();
  }

  // Those of one context each that it consists of, in their order.
  std::vector<tiny::ProgramPart> parts() const {
    if (joint) return joint->parts();
    return {{context, value}};
  }

  tiny_context* context;
  tiny::Ref<const tiny::TensorProgram> value;  // of several devices: its ports alone
  tiny::Ref<const tiny::JointProgram> joint;   // null for a program of one device
};

struct tiny_run : tiny::CountedAs<tiny::HandleKind::Run> {
  tiny_run(tiny_context& c, tiny::Ref<tiny::TensorRun> v)
      : context(&c), value(std::move(v)), taken(value->output_ports().size()) {
    c.retain();
  }
  ~tiny_run() { forget_taken(); }
  void forget_taken() {
    for (tiny_tensor*& tensor : taken) tiny::release_handle(std::exchange(tensor, nullptr));
  }

  std::atomic<bool> busy{false};  // one thread at a time uses a run
  tiny_context* context;
  tiny::Ref<tiny::TensorRun> value;
  tiny::Ref<tiny::JointRun> joint;  // of a program of several devices: what executes
  std::vector<tiny_tensor*>
      taken;  // by output: the tensor that has its memory, if one was asked for
};

namespace tiny {

// The context goes last: what the handle holds may live in its memory.
template <class Handle>
void release_owned(Handle* handle) {
  if (!is_last_release(handle)) return;
  tiny_context* context = handle->context;
  delete handle;
  context->release();
}

}  // namespace tiny

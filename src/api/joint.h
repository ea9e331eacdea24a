// Programs over several devices: what tiny_program_compile makes of outputs that depend on a call
// over several devices (tiny_allreduce, tiny_allgather, tiny_tensor_to) of tensors without values.
//
// Each context has a graph of its own, which knows nothing of the others.  The results of such a
// call are placeholders, and their node has what gives them elements: an Exchange.  A program is
// cut at its exchanges: parts of one context each, which compute what an exchange needs, the
// exchanges, the parts that follow, and so on.  What a later part needs of an earlier one, and no
// exchange carries, is computed again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "api/handle.h"
#include "tensor/program.h"
#include "tensor/run.h"

struct tiny_program;

namespace tiny {

// An execution after the other of all parts and exchanges.  Inputs and outputs as the program
// counts them.  One thread at a time.
class JointRun : public RefCounted {
 public:
  // In this build contexts are entered.
  virtual void set_input(size_t index, const tiny_tensor& tensor) = 0;
  virtual void bind_input(size_t index, const void* data, int64_t bytes) = 0;
  virtual void set_output(size_t index, tiny_tensor* tensor) = 0;
  virtual void bind_output(size_t index, void* data, int64_t bytes) = 0;
  virtual void execute() = 0;
  virtual void read_output(size_t index, void* data) = 0;
  // Where the output is computed.
  virtual tiny_context& context_of(size_t index) = 0;
  virtual Tensor take_output(size_t index) = 0;  // that context was entered
  virtual void require_output(size_t index) = 0;
  virtual void set_cancel(const Ref<CancelToken>& token) = 0;
  virtual void set_timed(bool timed) = 0;
  virtual std::vector<double> seconds() = 0;  // part by part
};

struct ProgramPart {
  tiny_context* context;  // counted by whom it is a part of
  Ref<const TensorProgram> value;
};

class JointProgram : public RefCounted {
 public:
  virtual const std::vector<ProgramPart>& parts() const = 0;
  virtual Ref<JointRun> begin() const = 0;
};

// What the results of a call over several devices come from; counted by their nodes.
class Exchange : public RefCounted {
 public:
  // A program of outputs of which one depends on it.
  virtual std::unique_ptr<tiny_program> compile(std::span<tiny_tensor* const> inputs,
                                                std::span<tiny_tensor* const> outputs) const = 0;
};

}  // namespace tiny

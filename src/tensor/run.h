// Executions of programs over tensors, and the memory that they read and write.  They hold no nodes
// of a graph: any thread may release them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"
#include "engine/program.h"
#include "tensor/program.h"
#include "tensor/tensor.h"

namespace tiny {

// One execution after the other of a program, each output in memory of its own.  A variable has the
// value that it was given last: by set_variable, or by an input whose shape says it.  At an
// execution all inputs and outputs must fit these values.  One that executions compute has its
// greatest value before, for which outputs need memory, and then the last one's.  Where nothing
// says how great it may be, executions make the outputs' memory.
class TensorRun : public RefCounted {
 public:
  TensorRun(Ref<Context> context, Ref<const TensorProgram> program);

  // Error{InvalidArgument} that names the variable if the value is out of its range.
  void set_variable(size_t index, int64_t value);
  // The tensor must have the program's dtype and shape, whose variables take their values from it;
  // it is computed now if need be, and its memory is kept until another is set.  Belongs to the
  // context's thread; the other calls do not.
  void set_input(size_t index, const Tensor& tensor);
  // From now on executions write the output into the tensor (null: into memory of the run's own
  // again), which has the result then.  It must have the program's dtype and shape, its elements be
  // row-major, and share no memory with what the run reads or with another output.  As set_input;
  // variables must have values before.
  void set_output(size_t index, Tensor* tensor);
  // The same with memory of the caller's, row-major, which need not be told again when its elements
  // change.  `bytes` must be those of the port, with the variables' values at an execution.  An
  // output's `data` may be null: into memory of the run's own again.  Binding other memory of the
  // same size allocates nothing; belongs to the run's thread alone.
  void bind_input(size_t index, const void* data, int64_t bytes);
  void bind_output(size_t index, void* data, int64_t bytes);
  // Error{InvalidArgument} that names the inputs and variables that are not bound, Error{Shape} if
  // an input or output does not fit the variables.
  // `since`: when the call began that this is part of.
  void execute(StopSignal::Since since = {});
  // `within`: the signal of the call that this is part of, which ends it instead of the run's own.
  void execute(const StopSignal& within);
  // Error{InvalidArgument} unless there is an output: the last execution succeeded, and no variable
  // has changed since.
  void require_output(size_t index) const;
  // Of the last execution; null for an output without elements.
  const Ref<Storage>& output(size_t index) const { return outputs_[index].written; }
  // Copies an output's elements, row-major.
  void read_output(size_t index, void* data) const;
  // An output of the last execution as a tensor, whose memory it is; the next has other memory.  A
  // second one of the same output has the same memory.  Belongs to the context's thread.
  Tensor take_output(size_t index);
  void set_timed(bool timed);
  void set_cancel(Ref<CancelToken> token);
  // Lets go of the memory of inputs and outputs: inputs are to be set again, outputs get new
  // memory.
  void let_go();
  // Of each kernel of the last timed execution.
  std::span<const double> seconds() const;
  // That execution in Chrome's trace format; Error{InvalidArgument} if there is none.
  std::string trace() const;
  const TensorProgram& program() const { return *program_; }
  // The program's outputs, with the shapes of this run: once every variable has a value.
  const std::vector<TensorProgram::Port>& output_ports() const { return output_ports_; }
  // The dimension with the values of this run's variables, which must have one.  Belongs to the
  // context's thread.
  int64_t value_of(const Dim& dim) const;
  // Error{InvalidArgument} that names the variables which have no value yet.
  void require_variables() const;

 private:
  // Memory of the caller's that is bound to a port, in objects that serve the next: itself, or
  // memory of a device that does not see it, between which executions copy.
  struct OfCaller {
    void* data = nullptr;
    Ref<Buffer> buffer;
    Ref<Storage> storage;
    bool is_bound = false;
  };
  struct Input {
    Ints shape;  // of the tensor that was set
    OfCaller memory;
    bool is_bound = false;  // the one or the other
  };
  struct Output {
    Ref<Storage> written;  // by the last execution
    Ref<Storage> next;     // what executions write
    Ref<Storage> given;    // memory of a tensor or the caller's, if one was set
    Ints given_shape;      // of the tensor that was set
    OfCaller memory;
    bool was_given = false;  // the last execution wrote it there
  };
  struct Place {
    const Storage& memory;
    int64_t bytes;
    const char* what;  // it is, for messages
  };
  // Executes the tape, which there is, by `execute`.
  template <class Execute>
  void execute_by(Execute execute);
  // True if the memory was bound, with as many bytes: then only the address is another.
  bool lay(OfCaller& memory, void* data, int64_t bytes);
  int64_t given_bytes(size_t output) const;
  // The same checks where the device does not see what is bound: by its addresses.
  void require_input_apart(size_t index, const void* data, int64_t bytes) const;
  void require_output_apart(size_t index, const void* data, int64_t bytes) const;
  void require_apart_of_outputs(size_t input, const Place& place) const;
  void learn(size_t index, const Ints& shape);
  void take_value(size_t variable, int64_t value);
  void fit();
  void take_greatest_sizes();
  void read_computed_sizes();
  void fit_all_ports();
  bool is_made(size_t output) const;
  void require_not_made(size_t output) const;
  void take_made_outputs();
  void bind_outputs();
  void bind_number(int64_t number);
  void forget_outputs();
  void forget_written(size_t index);
  void number_execution();
  Ref<Storage> copied(const Storage& memory, int64_t bytes);
  void require_apart(size_t index, const Place& place) const;
  void copy_outputs();
  // From and to memory of the caller's that the device does not see.
  void copy_from_caller();
  void copy_to_caller();

  Ref<Context> context_;
  Ref<const TensorProgram> program_;
  Ints values_;
  std::vector<uint8_t> is_known_;  // by variable
  bool fits_ = false;              // the outputs' memory is for these values
  std::vector<TensorProgram::Port> input_ports_;
  std::vector<TensorProgram::Port> output_ports_;
  Ref<Run> run_;  // null for a program that has nothing to compute
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  OfCaller probe_;          // is bound nowhere
  Ref<Storage> execution_;  // holds the execution's number; null where nothing asks
  enum class Outcome : uint8_t { None, Failed, Done, Outdated };
  Outcome outcome_ = Outcome::None;  // of the last execution
  Ref<Queue> queue_;                 // for copies of outputs
};

}  // namespace tiny

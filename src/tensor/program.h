// Programs over tensors: what a graph compiles to, with the names, types and shapes of what goes in
// and comes out.  They hold no nodes of a graph: any thread may release them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"
#include "engine/compile.h"
#include "tensor/tensor.h"

namespace tiny {

// What tells one execution of programs that share a count from the next, for random numbers.
struct ExecutionNumber {
  uint64_t seed = 0;
  uint64_t number = 0;
};
class ExecutionCount : public RefCounted {
 public:
  ExecutionNumber next() {
    return {seed_.load(std::memory_order_relaxed), next_.fetch_add(1, std::memory_order_relaxed)};
  }
  ExecutionNumber upcoming() const {
    return {seed_.load(std::memory_order_relaxed), next_.load(std::memory_order_relaxed)};
  }
  // From this one on.
  void begin(ExecutionNumber number) {
    seed_.store(number.seed, std::memory_order_relaxed);
    next_.store(number.number, std::memory_order_relaxed);
  }
  // From the first on again.
  void begin(uint64_t seed) {
    seed_.store(seed, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> seed_{0}, next_{0};
};

// A model compiled for certain shapes, or for all that its variables allow.  Immutable; holds no
// nodes.
class TensorProgram : public RefCounted {
 public:
  struct Port {
    std::string name;
    DType dtype;
    Ints shape;  // with the variables at their greatest values
    int64_t bytes = 0;
    int64_t number = -1;                // in the program; < 0: nothing to bind
    std::vector<SizeExpression> sizes;  // the shape, by the variables
    // An output that is the memory of a tensor which the program writes.
    Ref<Storage> captured = {};
    int64_t empty_number = -1;  // what `number` is, of an input of no elements that it has too
  };
  std::vector<ProgramVariable> variables;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  // The number of the input, uint32 [4], in which each execution finds its ExecutionNumber, by
  // which random numbers differ; < 0: there is none.
  int64_t execution = -1;
  Ref<ExecutionCount> executions;
  CompiledProgram compiled;
  double import_seconds = 0;
};

// A port's name, dtype and shape, by the program's variables.
TensorProgram::Port make_port(std::string name, DType dtype, const Shape& shape,
                              std::span<const UOp> variables);

// A stand-in for a tensor that is given to every run; it has no value of its own.  Dimensions may
// be expressions over Variables.
Tensor make_placeholder(const Ref<Context>& context, DType dtype, const Shape& shape);

// The Variables below the expressions, each once.  Error{InvalidArgument} for two of one name: a
// program tells them by their names.
std::vector<UOp> variables_below(std::span<const UOp> expressions);

// Compiles what `outputs` need, for runs that set `inputs` (placeholders); computes nothing.  The
// program's variables are those of the inputs' shapes, then those below the outputs.
// Pending writes that an output depends on are done by every run, in place: an output that is a
// tensor with such writes is that tensor's memory.  The tensors themselves have what their memory
// holds from then on.  Other tensors are read as they are when a run executes.
Ref<const TensorProgram> compile_tensors(const Ref<Context>& context,
                                         std::span<const Tensor> inputs,
                                         std::span<const Tensor> outputs);

}  // namespace tiny

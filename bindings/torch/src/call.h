// One call of an operator, as PyTorch's dispatcher boxes it: arguments by their place in the
// schema, results into the tensors that the schema names, or new ones.  Kernels are rows of tables:
// a name of the schema and a function from values to values.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "storage.h"
#include "value.h"

namespace tiny_torch {

// How results, new ones, lie in memory.
struct Placed {
  Value value;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
};

class Call {
 public:
  Call(const c10::FunctionSchema& schema, torch::jit::Stack& stack);

  const c10::IValue& argument(size_t index) const { return stack_[first_ + index]; }
  bool has(size_t index) const;  // neither None nor an undefined tensor
  const at::Tensor& tensor(size_t index) const { return argument(index).toTensor(); }
  Value value(size_t index) const;  // of a tensor of this device, or of a number on the CPU
  // The same for what an operation, not movement, makes another value of.
  Value operand(size_t index) const;
  std::vector<Value> values(size_t index) const;
  Sizes ints(size_t index) const { return argument(index).toIntVector(); }
  int64_t integer(size_t index) const { return argument(index).toInt(); }
  double real(size_t index) const { return argument(index).toScalar().toDouble(); }
  bool flag(size_t index) const { return argument(index).toBool(); }
  std::optional<at::Generator> generator(size_t index) const;

  // Result `index`: into the tensor that the call brought for it, or a new one.
  void give(size_t index, const Value& value,
            at::MemoryFormat format = at::MemoryFormat::Contiguous);
  void give(size_t index, at::Tensor tensor);
  // A result of these sizes that few look at, made when somebody does.
  void give_later(size_t index, at::IntArrayRef sizes, at::ScalarType type,
                  std::function<Value()> make,
                  at::MemoryFormat format = at::MemoryFormat::Contiguous);
  // The tensor that the call brought for a result, or that is written in place.
  const at::Tensor& target(size_t index) const { return results_[index]; }
  void finish();

 private:
  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  size_t first_;
  std::vector<at::Tensor> results_;
};

struct Row {
  const char* name;  // "sum.IntList_out"
  void (*compute)(Call&);
};
void add_rows(torch::Library& library, std::span<const Row> rows);

// A number or a tensor of the CPU without dimensions, as a value of `dtype`.
Value value_of_number(const at::Scalar& number, tiny_dtype dtype);

// New tensors of this device.
at::Tensor empty_tensor(at::IntArrayRef sizes, at::ScalarType type,
                        at::MemoryFormat format = at::MemoryFormat::Contiguous);
at::Tensor tensor_of(const Value& value, at::MemoryFormat format = at::MemoryFormat::Contiguous);

// Axes of a reduction: none are all; sorted, counted from the front.
Sizes axes_of(const c10::IValue& given, int64_t rank);
// The dtype that sums of a dtype are formed in: float32 for 16-bit floats.
tiny_dtype wide(tiny_dtype dtype);

}  // namespace tiny_torch

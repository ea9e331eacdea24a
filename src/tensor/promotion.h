// Which dtype operands meet in: docs/semantics.md, "Promotion".
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace tiny {

// The dtype that values of two strong dtypes meet in.
DType promoted(DType a, DType b);

// Operands where they are: a call makes no tensors of them.
using TensorRefs = std::span<const Tensor* const>;
std::vector<const Tensor*> refs_to(std::span<const Tensor> tensors);

// The dtype that operands meet in, weak scalars included.
DType common_dtype(TensorRefs operands);

// Whether the dtype of what such operands make gives way to others, where the settings have it so:
// no strong operand is of its category.
bool meet_weakly(TensorRefs operands);
// `result`, weak if its operands meet weakly and the settings have that.
Tensor weak_like(Tensor result, TensorRefs operands);
inline Tensor weak_like(Tensor result, const Tensor& operand) {
  const Tensor* const one = &operand;
  return weak_like(std::move(result), TensorRefs(&one, 1));
}

// `dtype` if it is a float, the default one otherwise: what functions of floats compute in.
DType float_dtype(const Context& context, DType dtype);
inline DType float_dtype(const Tensor& a) {
  return float_dtype(a.context(), a.dtype());
}
// What sums and products accumulate in: float32 for 16-bit floats.
DType accumulator_dtype(DType dtype);
// What the sum or product of `dtype` is: int64 for bool and small integers.
DType sum_dtype(DType dtype);

// The operand's value as `dtype`; a weak scalar is converted from its unrounded number.
UOp as_dtype(const Tensor& operand, DType dtype);

// Operands as one dtype and one shape.  Error{InvalidArgument} if their contexts differ.
struct Meeting {
  DType dtype;
  Shape shape;
  std::vector<UOp> nodes;
};
Meeting meet(TensorRefs operands);
// The same, for operands that an operation wants in a dtype of its own.
Meeting meet_as(TensorRefs operands, DType dtype);

// Error{InvalidArgument} unless all operands come from one context.
void require_one_context(TensorRefs operands);

}  // namespace tiny

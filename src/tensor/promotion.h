// Which dtype operands meet in: docs/semantics.md, "Promotion".
#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace tiny {

// The dtype that values of two strong dtypes meet in.
DType promoted(DType a, DType b);

// The dtype that operands meet in, weak scalars included.
DType common_dtype(std::span<const Tensor> operands);

// Whether the dtype of what such operands make gives way to others, where the settings have it so:
// no strong operand is of its category.
bool meet_weakly(std::span<const Tensor> operands);
// `result`, weak if its operands meet weakly and the settings have that.
Tensor weak_like(const Tensor& result, std::span<const Tensor> operands);

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
Meeting meet(std::span<const Tensor> operands);
// The same, for operands that an operation wants in a dtype of its own.
Meeting meet_as(std::span<const Tensor> operands, DType dtype);

// Error{InvalidArgument} unless all operands come from one context.
void require_one_context(std::span<const Tensor> operands);

}  // namespace tiny

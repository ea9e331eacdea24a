#include "tensor/promotion.h"

#include <algorithm>

#include "base/error.h"
#include "ir/build.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

// bool < integers < floats.
int category(DType dtype) {
  return dtype.is_bool() ? 0 : dtype.is_int() ? 1 : 2;
}

DType wider(DType a, DType b) {
  return a.bits() >= b.bits() ? a : b;
}

DType promoted_floats(DType a, DType b) {
  if (a == b) return a;
  // binary16 and bfloat16 hold neither's values.
  if (a.bits() == b.bits()) return kFloat32;
  return wider(a, b);
}

DType promoted_ints(DType a, DType b) {
  if (a.is_signed() == b.is_signed()) return wider(a, b);
  const DType s = a.is_signed() ? a : b;
  const DType u = a.is_signed() ? b : a;
  if (u.bits() < s.bits()) return s;
  switch (u.bits()) {
    case 8:
      return kInt16;
    case 16:
      return kInt32;
    case 32:
      return kInt64;
    default:
      return kFloat32;
  }
}

}  // namespace

DType promoted(DType a, DType b) {
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (a.is_bool()) return a;
  return a.is_float() ? promoted_floats(a, b) : promoted_ints(a, b);
}

DType common_dtype(std::span<const Tensor> operands) {
  DType strong = kVoid;
  DType weak = kVoid;
  for (const Tensor& t : operands) {
    DType& met = t.weak() ? weak : strong;
    met = met == kVoid ? t.dtype() : promoted(met, t.dtype());
  }
  if (strong == kVoid) return weak;
  if (weak == kVoid || category(weak) <= category(strong)) return strong;
  return weak;
}

DType float_dtype(DType dtype) {
  return dtype.is_float() ? dtype : kFloat32;
}

DType accumulator_dtype(DType dtype) {
  return dtype.is_float() ? dtype.computed() : dtype;
}

DType sum_dtype(DType dtype) {
  return dtype.is_float() || dtype == kUInt64 ? dtype : kInt64;
}

UOp as_dtype(const Tensor& operand, DType dtype) {
  if (operand.weak() && operand.dtype().is_float() && dtype.is_float())
    return operand.graph().constant(dtype, operand.weak_value());
  return cast(operand.node(), dtype);
}

void require_one_context(std::span<const Tensor> operands) {
  for (const Tensor& t : operands) {
    require(static_cast<bool>(t), Status::InvalidArgument, "an operand is no tensor");
    require(&t.context() == &operands.front().context(), Status::InvalidArgument,
            "the operands come from different contexts");
  }
}

Meeting meet_as(std::span<const Tensor> operands, DType dtype) {
  require_one_context(operands);
  Meeting meeting;
  meeting.dtype = dtype;
  for (const Tensor& t : operands) meeting.shape = broadcast_shape(meeting.shape, t.shape());
  for (const Tensor& t : operands)
    meeting.nodes.push_back(broadcast_to(as_dtype(t, dtype), meeting.shape));
  return meeting;
}

Meeting meet(std::span<const Tensor> operands) {
  return meet_as(operands, common_dtype(operands));
}

}  // namespace tiny

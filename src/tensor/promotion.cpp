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
  // Neither holds the other's values.
  if (a.bits() == b.bits()) return a.is_float8() ? kFloat16 : kFloat32;
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

namespace {

// The dtypes that strong and weak operands meet in; kVoid where there are none.
struct Met {
  DType strong = kVoid;
  DType weak = kVoid;
  bool is_unsure = false;  // the strong ones are integers that no integer type holds
};

Met met_of(TensorRefs operands) {
  Met met;
  bool has_float = false;
  for (const Tensor* t : operands) {
    DType& dtype = t->weak() ? met.weak : met.strong;
    dtype = dtype == kVoid ? t->dtype() : promoted(dtype, t->dtype());
    has_float |= !t->weak() && t->dtype().is_float();
  }
  met.is_unsure = met.strong.is_float() && !has_float;
  return met;
}

bool is_weak(const Met& met) {
  return met.strong == kVoid || met.is_unsure ||
         (met.weak != kVoid && category(met.weak) > category(met.strong));
}

}  // namespace

std::vector<const Tensor*> refs_to(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> refs;
  for (const Tensor& t : tensors) refs.push_back(&t);
  return refs;
}

DType common_dtype(TensorRefs operands) {
  const Met met = met_of(operands);
  if (!is_weak(met)) return met.strong;
  const Context& context = operands.front()->context();
  const DType highest = met.is_unsure ? met.strong : met.weak;
  return highest.is_bool()  ? highest
         : highest.is_int() ? context.default_int()
                            : context.default_float();
}

bool meet_weakly(TensorRefs operands) {
  return is_weak(met_of(operands));
}

Tensor weak_like(Tensor result, TensorRefs operands) {
  if (result.context().flags().weak_results == 0 || result.dtype().is_bool()) return result;
  return meet_weakly(operands) ? result.as_weak() : result;
}

DType float_dtype(const Context& context, DType dtype) {
  return dtype.is_float() ? dtype : context.default_float();
}

DType accumulator_dtype(DType dtype) {
  return dtype.is_float() ? dtype.computed() : dtype;
}

DType sum_dtype(DType dtype) {
  return dtype.is_float() || dtype == kUInt64 ? dtype : kInt64;
}

UOp as_dtype(const Tensor& operand, DType dtype) {
  if (operand.is_number() && operand.dtype().is_float() && dtype.is_float())
    return operand.graph().constant(dtype, operand.weak_value());
  return cast(operand.node(), dtype);
}

void require_one_context(TensorRefs operands) {
  for (const Tensor* t : operands) {
    require(static_cast<bool>(*t), Status::InvalidArgument, "an operand is no tensor");
    require(&t->context() == &operands.front()->context(), Status::InvalidArgument,
            "the operands come from different contexts",
            of_two_devices(t->context(), operands.front()->context()));
  }
}

Meeting meet_as(TensorRefs operands, DType dtype) {
  require_one_context(operands);
  Meeting meeting;
  meeting.dtype = dtype;
  // Mostly they are of one shape: one copy then, which every call pays.
  for (const Tensor* t : operands) {
    const Shape& shape = shape_of(t->node());
    if (t == operands.front())
      meeting.shape = shape;
    else if (shape != meeting.shape)
      meeting.shape = broadcast_shape(meeting.shape, shape);
  }
  meeting.nodes.reserve(operands.size());
  for (const Tensor* t : operands)
    meeting.nodes.push_back(broadcast_to(as_dtype(*t, dtype), meeting.shape));
  return meeting;
}

Meeting meet(TensorRefs operands) {
  return meet_as(operands, common_dtype(operands));
}

}  // namespace tiny

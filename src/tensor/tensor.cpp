#include "tensor/tensor.h"

namespace tiny {

Tensor Tensor::weak_int(Ref<Context> context, int64_t value) {
  const UOp node = context->graph().constant_int(kInt64, value);
  Tensor t(std::move(context), node);
  t.weak_ = true;
  return t;
}

Tensor Tensor::weak_float(Ref<Context> context, double value) {
  const UOp node = context->graph().constant(kFloat32, value);
  Tensor t(std::move(context), node);
  t.weak_ = true;
  t.weak_value_ = value;
  return t;
}

}  // namespace tiny

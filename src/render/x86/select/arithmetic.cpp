#include "render/x86/select/arithmetic.h"

#include "render/x86/select/floats.h"
#include "render/x86/select/integers.h"
#include "render/x86/select/vector_integers.h"

namespace tiny::x86 {

VReg binary(Emitter& e, Op op, DType dtype, VReg a, const Operand& b, VReg dst) {
  if (in_int(dtype)) return int_binary(e, op, dtype, a, b, dst);
  if (dtype.is_float()) return float_binary(e, op, dtype, a, b, dst);
  return vector_int_binary(e, op, dtype, a, b, dst);
}

VReg unary(Emitter& e, Op op, DType dtype, VReg a) {
  if (in_int(dtype)) return int_unary(e, op, dtype, a);
  if (dtype.is_float()) return float_unary(e, op, dtype, a);
  return vector_int_unary(e, op, dtype, a);
}

}  // namespace tiny::x86

#include "ir/target.h"

namespace tiny {

// Integer division has no vector form anywhere; everything else is judged by operand width.  Small
// integers are stored and converted as vectors but computed as int32 (rules/decompositions).
bool Target::vectorises(Op op, DType dtype) const {
  if (vector_bytes <= 8) return false;
  switch (op) {
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::TruncDiv:
    case Op::TruncMod:
      return false;
    default:
      break;
  }
  if (isa == Isa::Generic || isa == Isa::Avx512) return true;
  const bool wide_int = dtype.is_int() && dtype.bits() == 64;
  switch (op) {  // AVX2
    case Op::Mul:
    case Op::Max:
    case Op::Min:
    case Op::Abs:
    case Op::Shr:
      return !wide_int;
    case Op::Cast:
      return !wide_int && dtype.scalar != ScalarType::UInt32;
    default:
      return true;
  }
}

Target generic_target(int64_t vector_bytes) {
  Target t;
  t.vector_bytes = static_cast<int32_t>(vector_bytes);
  return t;
}

Target avx2_target() {
  Target t;
  t.name = "avx2";
  t.isa = Isa::Avx2;
  t.vector_bytes = 32;
  t.vector_registers = 16;
  return t;
}

Target avx512_target() {
  Target t;
  t.name = "avx512";
  t.isa = Isa::Avx512;
  t.vector_bytes = 64;
  t.vector_registers = 32;
  t.scales = true;
  return t;
}

}  // namespace tiny

#include "ir/target.h"

namespace tiny {

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
  constexpr ScalarTypes kWideInts = scalar_bit(ScalarType::Int64) | scalar_bit(ScalarType::UInt64);
  for (const Op op : {Op::Mul, Op::Max, Op::Min, Op::Abs, Op::Shr, Op::Cast})
    t.without_vectors[static_cast<size_t>(op)] = kWideInts;
  t.without_vectors[static_cast<size_t>(Op::Cast)] |= scalar_bit(ScalarType::UInt32);
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

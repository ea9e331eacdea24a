// Floats of 8 and 4 bits as ONNX's operators hold and round them: by their bits, one in each uint8,
// a float of 4 bits in the lower ones.  They are made of float32 and become float32.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// By ONNX's names: the bits of the exponent and of what is stored of the significand; FN has no
// infinities, FNUZ neither those nor a negative zero.
enum class Narrow : uint8_t {
  Float8E4M3FN,
  Float8E4M3FNUZ,
  Float8E5M2,
  Float8E5M2FNUZ,
  Float4E2M1,
  Float8E8M0,  // powers of two alone
};

// How a power of two is chosen.
enum class NarrowRounding : uint8_t { Up, Down, Nearest };

// What is beyond the greatest number becomes that (`saturate`), or infinity, or NaN where there is
// no infinity; floats of 4 bits always saturate.  Halves go to even; `rounding` is of powers of
// two.
Tensor to_narrow(const Tensor& x, Narrow type, bool saturate = true,
                 NarrowRounding rounding = NarrowRounding::Up);
// The numbers of these bits, as `dtype`.
Tensor from_narrow(const Tensor& bits, Narrow type, DType dtype);

}  // namespace tiny

// What parameters begin with, by PyTorch's names and definitions (torch.nn.init).
#pragma once

#include "tensor/tensor.h"

namespace tiny {

enum class Initial : uint8_t {
  Constant,         // a
  Uniform,          // from a to b
  Normal,           // mean a, deviation b
  TruncatedNormal,  // the same, within two deviations
  XavierUniform,    // gain a (Glorot and Bengio 2010)
  XavierNormal,
  KaimingUniform,  // negative slope a; b: 0 by the inputs, 1 by the outputs (He et al. 2015)
  KaimingNormal,
  Orthogonal,  // gain a (Saxe et al. 2013)
  Dirac,       // of a groups: convolutions that pass their input on
  Sparse,      // a share a of each column is 0, the others normal with deviation b
};
struct Initialization {
  Initial kind = Initial::Constant;
  double a = 0;
  double b = 0;
};

// Floats of this shape; the same for the same key (random.h).
Tensor initialize(const Tensor& key, const Initialization& how, DType dtype, const Ints& shape);

}  // namespace tiny

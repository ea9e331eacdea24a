// Operators of elements: PyTorch's TensorIterator decides sizes, dtypes, strides of the result and
// refuses overlaps; a row computes one value of operands that have the common dtype.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <span>
#include <string_view>

#include "value.h"

namespace tiny_torch {

// What operands become before a row sees them.
enum class Types {
  Same,       // the dtype that they promote to
  Float,      // the same, but float where that is no float
  Compare,    // the dtype that they promote to; the result is a bool
  Division,   // Float without a rounding mode, Same with one
  Condition,  // of the first one none: a bool; of the others that they promote to
  Own         // each keeps its own; the result is a bool
};

class Operands {
 public:
  c10::SmallVector<Value, 3> x;  // undefined where an operand was left out
  tiny_dtype dtype = 0;          // what they promote to
  c10::SmallVector<const c10::IValue*, 4> parameters;

  const Value& operator[](size_t index) const { return x[index]; }
  bool has(size_t parameter) const { return !parameters[parameter]->isNone(); }
  double real(size_t parameter) const { return parameters[parameter]->toScalar().toDouble(); }
  int64_t integer(size_t parameter) const { return parameters[parameter]->toInt(); }
  bool flag(size_t parameter) const { return parameters[parameter]->toBool(); }
  std::string_view text(size_t parameter) const { return parameters[parameter]->toStringView(); }
  // A parameter as an operand.
  Value number(size_t parameter) const;
  bool is_one(size_t parameter) const { return real(parameter) == 1; }
};

struct PointwiseRow {
  const char* name;  // of the functional form, "add.Tensor"; those in place and with out= follow
  Types types;
  Value (*compute)(const Operands&);
  // What PyTorch refuses before it decides the result's dtype: operands as they were given.
  void (*refuse)(std::span<const at::Tensor> given, const Operands& parameters) = nullptr;
};
// How floats of 16 bits are computed: as they are, by rows of one step; in 32 bits, rounded once,
// by rows of several.
enum class Steps { One, Several };
void add_pointwise(torch::Library& library, std::span<const PointwiseRow> rows, Steps steps);

}  // namespace tiny_torch

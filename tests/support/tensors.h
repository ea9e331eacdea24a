// Tensors of floats and whole numbers for tests: made of numbers, read as numbers, and inputs of
// programs.
#pragma once

#include <vector>

#include "engine/compile.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/value.h"

namespace tiny::testing {

using Floats = std::vector<float>;
using Whole = std::vector<int32_t>;

// The values in this shape; a row of them where there is none.
inline Tensor floats(const Ref<Context>& context, const Floats& values, Ints shape = {}) {
  if (shape.empty()) shape = {std::ssize(values)};
  return from_data(context, kFloat32, shape, values.data(), std::ssize(values) * 4);
}

// The elements, computed now.
inline Floats floats_of(Tensor t) {
  Floats out(static_cast<size_t>(element_count(t)));
  read(t, out.data(), std::ssize(out) * 4);
  return out;
}

inline Whole whole_of(Tensor t) {
  Whole out(static_cast<size_t>(element_count(t)));
  read(t, out.data(), std::ssize(out) * 4);
  return out;
}

inline Ints ints_of(Tensor t) {
  Ints out(static_cast<size_t>(element_count(t)));
  read(t, out.data(), std::ssize(out) * 8);
  return out;
}

// An input of this shape: a tensor without a value.
inline Tensor float_input(const Ref<Context>& context, const Ints& shape) {
  const int64_t count = product(to_shape(shape)).value();
  return reshape(Tensor(context, make_input(*context, kFloat32, count)), to_shape(shape));
}

}  // namespace tiny::testing

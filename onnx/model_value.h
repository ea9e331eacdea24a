// What goes into a model and comes out of it: a tensor, texts, a list of values, a map, or nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace tiny::onnx {

struct ModelValue {
  enum class Kind : uint8_t { Tensor, Texts, Sequence, Map, Nothing };
  Kind kind = Kind::Nothing;
  Tensor tensor;  // of a Tensor
  Ints shape;     // of Texts, row-major
  std::vector<std::string> texts;
  std::vector<ModelValue> elements;  // of a Sequence; of a Map its keys and its values
};

}  // namespace tiny::onnx

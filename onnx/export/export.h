// From a tensor graph to an ONNX model.
//
// A node of the graph becomes the operator that makes it: a row of the rules (recognize.h) where
// one of ONNX's larger operators does, and its own elementary one otherwise (elementary.cpp).
// Variables become names of dimensions; memory becomes initializers.
#pragma once

#include <string>
#include <vector>

#include "onnx/model.h"
#include "tensor/tensor.h"

namespace tiny::onnx {

// The version of the operator set that is written, and of the format that goes with it.
inline constexpr int64_t kWrittenOpset = 20;
inline constexpr int64_t kWrittenIrVersion = 9;
// Where the bits of floats are taken: since then there is BitCast.
inline constexpr int64_t kBitCastOpset = 26;
inline constexpr int64_t kBitCastIrVersion = 13;

struct ExportPort {
  std::string name;
  Tensor tensor;
};

// The model of `outputs` as functions of `inputs`, which are placeholders.  Weights point into the
// memory of tensors.  Error{Unsupported} names what no operator does; Error{InvalidArgument} what
// has no value and is no input.
Model export_model(const Ref<Context>& context, const std::vector<ExportPort>& inputs,
                   const std::vector<ExportPort>& outputs);

}  // namespace tiny::onnx

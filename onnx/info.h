// What a model file holds, as JSON for people's tools.
#pragma once

#include <optional>
#include <string>

#include "engine/custom_op.h"
#include "onnx/import/import.h"
#include "onnx/model.h"

namespace tiny::onnx {

// One object with the keys of `tiny info --json`: model, inputs, outputs, dims, operators, nodes,
// initializers, unsupported, supported, flops, metadata.  `operations` (of one run; none if shapes
// are free) becomes flops.
// `custom_ops`, which the context was given, are supported.
std::string info_json(const Model& model, const std::vector<UnsupportedNode>& unsupported,
                      std::optional<double> operations, const CustomOps& custom_ops);
// What it has under "model": what the file says of itself.
std::string header_json(const Model& model);

}  // namespace tiny::onnx

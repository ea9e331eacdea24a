// The attributes of one node as a JSON object, and back: integers, floats, strings, lists of these,
// and tensors as {"dtype": "float32", "shape": [2], "data": [1.5, 2]}.
//
// JSON's numbers have no types and an empty list has none either: what is read from it is bare
// (Attribute::is_bare), and stands for what the operator asks for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.h"

namespace tiny::onnx {

// Error{InvalidArgument} names the attribute and the place.  What is null is left out.
std::vector<Attribute> attributes_from_json(std::string_view json);
// Error{Unsupported} for what JSON cannot say: graphs, types, elements that are not the engine's.
std::string attributes_to_json(const Node& node);

}  // namespace tiny::onnx

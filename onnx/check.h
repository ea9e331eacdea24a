// The laws of a graph beyond the wire format: names defined once, uses after definitions.
#pragma once

#include "onnx/model.h"

namespace tiny::onnx {

// Checks the model's graph, its subgraphs and its functions, and brings their nodes into
// topological order (stable: a list in order stays as it is).  Error{InvalidModel} names a value
// defined twice, a value that nobody defines, or the nodes of a cycle.
void check_and_sort(Model& model);

}  // namespace tiny::onnx

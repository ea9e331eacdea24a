// The versions of the operator sets that a model's nodes are of.
#pragma once

#include "onnx/model.h"

namespace tiny::onnx {

// Gives every node the version of its operator set.  Error{InvalidModel} names a set imported with
// two versions, or a node of one that is not imported.
void set_versions(Model& model);

}  // namespace tiny::onnx

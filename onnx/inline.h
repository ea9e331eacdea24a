// Model functions replaced by their bodies.
#pragma once

#include "io/limits.h"
#include "onnx/model.h"

namespace tiny::onnx {

// Replaces every call of one of the model's functions by the function's nodes, in all graphs, with
// fresh names for what is inside and the call's attributes in place of references to them.
// leaves: no functions, no ref_attr_name, the laws of model.h.  A function that calls itself is
// Error{InvalidModel}; more nodes or deeper calls than the limits allow, Error{Limit}.  After an
// error the model is not to be used.
void inline_functions(Model& model, const Limits& limits = {});

}  // namespace tiny::onnx

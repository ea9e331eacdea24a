// One operator of a model's kind, applied to tensors: what graphs take from the importer.
#pragma once

#include <cstdint>
#include <string>

#include "onnx/import/call.h"

namespace tiny::onnx {

struct OperatorCall {
  std::string domain;      // "" or "ai.onnx": the standard's
  std::string op;          // "TopK"
  int64_t opset = 0;       // the version of the domain's operator set; 0: the newest that has it
  Tensors inputs;          // one that is left out is no tensor
  std::string attributes;  // a JSON object (onnx/attributes.h), or ""
  size_t outputs = 1;      // how many of the first are wanted
};

// The outputs, not computed.  Error{Unsupported} for an operator that is not known, with the
// versions that are, and for one that takes graphs; Error{InvalidArgument} for what a model could
// not have either, and for an attribute that the operator does not look at.
Tensors apply_operator(const Ref<Context>& context, const OperatorCall& call);

}  // namespace tiny::onnx

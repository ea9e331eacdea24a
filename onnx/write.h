// A model's structures as an ONNX file: what read_model reads.
#pragma once

#include <string>

#include "onnx/model.h"

namespace tiny::onnx {

// Writes the file, as write_file does; weights go from where they lie.  Error{Limit} for more than
// a protobuf message may have.  Takes no functions, no external data, no types but tensors'.
void write_model(const std::string& path, const Model& model, const StopSignal* stop = nullptr);

}  // namespace tiny::onnx

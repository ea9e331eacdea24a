// Element types of 8 bits and fewer that the engine has not: integers of 4 and 2 bits, floats of 8
// and 4.  Tensors carry them (io/tensor_pb.h); few operators know what they carry.
#pragma once

#include "onnx/import/call.h"

namespace tiny::onnx {

// Whether the operator takes or makes such types, or texts; whether it hands on unchanged what it
// is given, and of which type that is.
bool takes_narrow(const Node& node);
bool takes_texts(const Node& node);
bool moves_narrow(const Node& node);
int32_t moved_narrow(const Node& node, const Call& call);
// Error{Unsupported} if an input is of such a type and the operator takes none.
void require_takes_narrow(const Node& node, const std::vector<Value>& inputs);
// The narrow type that the graph declares for its input; 0 for another.
int32_t narrow_input(const Graph& graph, const std::string& name);
// What the packed bytes of a tensor of fewer than 8 bits hold, in the carrier and its shape.
Tensor unpacked(const Tensor& bytes, const TensorData& tensor);

// x as what its type is, 0 for what the tensor itself is: integers, or floats of float32.
Tensor widened(const Tensor& x, int32_t type);
// x as the carrier of a narrow type: integers wrap, floats round as the attributes say.
Tensor narrowed(const Call& call, const Tensor& x, int32_t type);

}  // namespace tiny::onnx

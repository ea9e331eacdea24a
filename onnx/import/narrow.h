// Element types of 8 bits and fewer that the engine has not: integers of 4 and 2 bits, floats of 8
// and 4.  Tensors carry them (io/tensor_pb.h); few operators know what they carry.
#pragma once

#include "onnx/import/call.h"

namespace tiny::onnx {

// Whether the operator hands on unchanged what it is given, of such types or texts; and of which
// type that is.
bool moves_narrow(const Node& node);
int32_t moved_narrow(const Node& node, const Call& call);
// Whether the operator takes or makes elements of this type of ONNX's, which a tensor carries.
bool takes_carried(const Node& node, int32_t type);
// Error{Unsupported} if an input carries what the operator does not take.
void require_takes_carried(const Node& node, const std::vector<Value>& inputs);
// The type that a tensor carries where the graph declares it for its input; 0 for another.
int32_t carried_input(const Graph& graph, const std::string& name);
// What the packed bytes of a tensor of fewer than 8 bits hold, in the carrier and its shape.
Tensor unpacked(const Tensor& bytes, const TensorData& tensor);

// x as what its type is, 0 for what the tensor itself is: integers, or floats of float32.
Tensor widened(const Tensor& x, int32_t type);
// The carrier of a narrow type whose bits are the lowest of these integers'.
Tensor narrow_of_bits(const Tensor& bits, int32_t type);
// x as the carrier of a narrow type: integers wrap, floats round as the attributes say.
Tensor narrowed(const Call& call, const Tensor& x, int32_t type);

}  // namespace tiny::onnx

// Complex numbers, which the engine has none of: a tensor of pairs carries them, one axis more, the
// last, of real and imaginary part (io/tensor_pb.h).  Operators that move, choose or add elements
// do so with both parts; no other ones of ONNX take them.
#pragma once

#include "onnx/import/call.h"
#include "onnx/import/table.h"

namespace tiny::onnx {

// Whether the operator takes or makes complex numbers.
bool takes_complex(const Node& node);
// Whether one of the inputs is complex, and the operator knows nothing of pairs: it is told of
// parts.
bool is_of_parts(const Node& node, const Call& call);
// What the operator makes of each part, as the call's outputs.
Tensors by_parts(Call& call, ImportFunction import);

// The place of an axis of a tensor of this type among those of its carrier.
int64_t carrier_axis(int64_t axis, int32_t type);
// The bits of a complex64 as an integer of 64, and back.
Tensor bits_of_complex(const Tensor& pairs);
Tensor complex_of_bits(const Tensor& bits);

}  // namespace tiny::onnx

// Reads the attributes of nodes.
#pragma once

#include <cstdint>

#include "io/tensor_pb.h"
#include "io/wire.h"
#include "onnx/model.h"

namespace tiny::onnx {

// Reads the AttributeProto before the reader, which belongs to a graph of this depth.  Its type is
// as stated, or, in files older than the field, that of its value; other values are dropped.
Attribute read_attribute(WireReader& reader, const TensorSource& source, int64_t depth);

}  // namespace tiny::onnx

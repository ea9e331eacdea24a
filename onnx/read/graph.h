// Reads graphs and functions: one function for each message, as deep on the stack as the file nests
// graphs, which the limit subgraph_depth bounds.
#pragma once

#include <cstdint>

#include "io/tensor_pb.h"
#include "io/wire.h"
#include "onnx/model.h"

namespace tiny::onnx {

// Reads the GraphProto before the reader.  Attributes hold graphs: `depth` is this one's, from 1
// on.
Graph read_graph(WireReader& reader, const TensorSource& source, int64_t depth);

// Reads the FunctionProto before the reader.
Function read_function(WireReader& reader, const TensorSource& source);

// Reads the OperatorSetIdProto before the reader.
OpsetImport read_opset(WireReader& reader);

}  // namespace tiny::onnx

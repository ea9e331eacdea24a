// Reads the declared types of values.
#pragma once

#include <cstdint>

#include "io/wire.h"
#include "onnx/model.h"

namespace tiny::onnx {

// Reads the ValueInfoProto before the reader.
ValueInfo read_value_info(WireReader& reader);

// Reads the TypeProto before the reader.  Types nest: `depth` is this one's, from 1 on.
ValueType read_value_type(WireReader& reader, int64_t depth);

}  // namespace tiny::onnx

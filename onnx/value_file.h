// Values in files, as ONNX's test data has them: a TensorProto, SequenceProto, OptionalProto or
// MapProto, which does not say itself what it is.
#pragma once

#include <cstdint>
#include <string>

#include "engine/context.h"
#include "onnx/model_value.h"

namespace tiny::onnx {

enum class FileValue : uint8_t { Tensor, Sequence, Optional, Map };
ModelValue read_value(const Ref<Context>& context, const std::string& path, FileValue kind);

}  // namespace tiny::onnx

// ONNX TensorProto: the form of a model's weights and of the test data beside models.
//
// raw_data, float_data and double_data are used where they lie; the other typed fields are
// converted once to row-major little-endian bytes.  Weights in files beside the model are mapped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/host_tensor.h"
#include "io/wire.h"

namespace tiny {

// One row of ONNX's element types.
struct TensorTypeInfo {
  const char* name;  // "FLOAT8E4M3FN"
  int32_t number;
  int32_t bits;         // of an element; 0 for strings
  ScalarType ours;      // Void where the engine has no such type
  uint32_t data_field;  // of TensorProto, for values outside raw_data
};

// What holds a type that the engine has not: integers of few bits as an integer of 8, floats of 8
// and 4 bits as their bits in uint8, complex numbers as pairs of floats, which are one axis more,
// the last; the engine's own type where it has it, else Void.
DType carrier_of(const TensorTypeInfo& type);
inline bool is_carried(const TensorTypeInfo& type) {
  return type.ours == ScalarType::Void && carrier_of(type) != kVoid;
}

bool is_complex(int64_t number);
// The shape of the carrier of a tensor of these dimensions.
Ints carrier_dims(int64_t number, Ints dims);

// The row of a type number; null if ONNX has no such type.
const TensorTypeInfo* tensor_type(int64_t number);
// "FLOAT", or "type 99" for a number that ONNX does not have.
std::string tensor_type_name(int64_t number);
// The engine's dtype or its carrier, or Error{Unsupported} that names the type and `what` has it.
DType dtype_of_tensor_type(int64_t number, std::string_view what, std::string_view name);
// The ONNX number of a dtype.
int32_t tensor_type_of_dtype(DType dtype);

// A tensor of any ONNX type.
struct TensorData {
  std::string name;
  int32_t type = 0;  // 1..26, always in the table
  Ints dims;
  int64_t count = 0;                 // of elements
  SharedBytes bytes;                 // (count * bits + 7) / 8 of them; empty for strings
  std::vector<std::string> strings;  // `count` of them for type STRING
  std::string location;              // the file that holds the bytes; "" for the model itself
};

// Where the bytes behind a reader live, and the files a tensor may name.
struct TensorSource {
  Ref<const BytesOwner> owner;
  ExternalFiles* external = nullptr;  // null: external data is refused
};

// Reads the TensorProto before the reader.
TensorData read_tensor(WireReader& reader, const TensorSource& source);

// Reads the SparseTensorProto before the reader as the dense tensor it stands for, named as its
// values; zeros (or empty strings) elsewhere.
TensorData read_sparse_tensor(WireReader& reader, const TensorSource& source);

// The tensor with one of the engine's dtypes, or in its carrier; Error{Unsupported} names any other
// type.
HostTensor to_host_tensor(const TensorData& tensor);

// Reads a file that holds one TensorProto.  A SequenceProto or OptionalProto is Error{Unsupported}.
TensorData parse_tensor_pb(const SharedBytes& bytes, const Limits& limits = {});
TensorData read_tensor_pb(const std::string& path, const Limits& limits = {},
                          const FileAccess& access = {});

// The bytes of a TensorProto with raw_data.
std::string tensor_pb_bytes(const HostTensor& tensor, const std::string& name);
void write_tensor_pb(const std::string& path, const HostTensor& tensor, const std::string& name,
                     const StopSignal* stop = nullptr);

}  // namespace tiny

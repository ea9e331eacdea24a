#include "io/tensor_pb.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "base/checked.h"

namespace tiny {

namespace {

namespace f = field::TensorProto;

constexpr TensorTypeInfo kTensorTypes[] = {
#define TENSOR_TYPE(name, number, bits, ours, field) \
  {#name, number, bits, ScalarType::ours, f::field},
#include "io/onnx_proto.def"
};

constexpr int32_t kStringType = 8;
constexpr int32_t kBoolType = 9;
constexpr int32_t kInt64Type = 7;
constexpr int32_t kFirstNarrowType = 17;  // FLOAT8E4M3FN
constexpr int32_t kComplex64Type = 14;
constexpr int32_t kComplex128Type = 15;
constexpr int32_t kInt4Type = 22;
constexpr int32_t kInt2Type = 26;

// What the scalar fields of a TensorProto say; the values are taken once the type is known.
struct Parts {
  std::string_view raw;
  bool has_raw = false;
  bool has_external = false;
  int64_t location_kind = 0;
  std::string location;
  std::string offset;
  std::string length;
};

void read_external_entry(WireReader& reader, Parts& parts) {
  std::string key;
  std::string value;
  while (reader.next()) {
    if (reader.field() == field::StringStringEntryProto::key) key = reader.name();
    if (reader.field() == field::StringStringEntryProto::value) value = reader.name();
  }
  parts.has_external = true;
  if (key == "location")
    parts.location = std::move(value);
  else if (key == "offset")
    parts.offset = std::move(value);
  else if (key == "length")
    parts.length = std::move(value);
  else
    reader.check(key == "checksum" || key == "basepath", "unknown external_data key \"", key, "\"");
}

Parts read_parts(WireReader& reader, TensorData& tensor) {
  Parts parts;
  int64_t type = 0;
  while (reader.next()) {
    switch (reader.field()) {
      case f::dims:
        reader.append_integers(tensor.dims, reader.budget().limits.rank);
        break;
      case f::data_type:
        type = reader.integer();
        break;
      case f::name:
        tensor.name = reader.name();
        break;
      case f::raw_data:
        parts.raw = reader.bytes();
        parts.has_raw = true;
        break;
      case f::external_data: {
        WireReader entry = reader.message(ProtoMessage::StringStringEntryProto);
        read_external_entry(entry, parts);
        break;
      }
      case f::data_location:
        parts.location_kind = reader.integer();
        break;
      case f::segment:
        reader.fail(Status::Unsupported, "a tensor split into segments");
      default:
        break;
    }
  }
  reader.check(tensor_type(type) != nullptr, "tensor \"", tensor.name, "\" has type ", type,
               ", which is no element type");
  tensor.type = static_cast<int32_t>(type);
  return parts;
}

// The number of elements and of bytes that the dimensions ask for.
int64_t sized(const WireReader& reader, TensorData& tensor) {
  const Limits& limits = reader.budget().limits;
  try {
    tensor.count = element_count(tensor.dims, "the number of elements");
    const int64_t bits = checked_mul(tensor.count, tensor_type(tensor.type)->bits, "the bits");
    const int64_t bytes = ceil_div(bits, 8);
    require(bytes <= limits.tensor_bytes, Status::Limit, bytes,
            " bytes, more than the limit tensor_bytes = ", limits.tensor_bytes);
    return bytes;
  } catch (const Error& e) {
    reader.fail(e.status(), "tensor \"", tensor.name, "\": ", e.message());
  }
}

int64_t decimal(const WireReader& reader, const std::string& text, const char* key) {
  int64_t value = -1;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  reader.check(error == std::errc() && at == end && value >= 0, "external_data ", key, " \"", text,
               "\" is not a number of bytes");
  return value;
}

SharedBytes read_external(const WireReader& reader, const TensorData& tensor, const Parts& parts,
                          int64_t size, const TensorSource& source) {
  reader.check(tensor.type != kStringType, "string tensor \"", tensor.name,
               "\" with external data");
  reader.check(!parts.location.empty(), "tensor \"", tensor.name,
               "\" has external data without a location");
  if (!source.external)
    reader.fail(Status::Unsupported, "tensor \"", tensor.name, "\" lies in the file \"",
                parts.location, "\", but the model has no folder");
  const int64_t offset = parts.offset.empty() ? 0 : decimal(reader, parts.offset, "offset");
  const int64_t length = parts.length.empty() ? size : decimal(reader, parts.length, "length");
  reader.check(length == size, "tensor \"", tensor.name, "\" needs ", size,
               " bytes, external_data length is ", length);
  try {
    return source.external->read(parts.location, offset, size);
  } catch (const Error& e) {
    reader.fail(e.status(), "tensor \"", tensor.name, "\": ", e.message());
  }
}

// Bytes of one value in the typed field of this type.
int64_t value_bytes(const TensorTypeInfo& type) {
  if (type.data_field == f::float_data) return 4;
  if (type.data_field == f::double_data) return 8;
  return std::max(type.bits, 8) / 8;
}

SharedBytes read_reals(const WireReader& message, const TensorTypeInfo& type, int64_t size,
                       const TensorSource& source) {
  WireReader reader = message.again();
  std::vector<std::byte> bytes;
  std::string_view first;  // while there is only one run, nothing is copied
  const auto width = static_cast<size_t>(value_bytes(type));
  while (reader.next()) {
    if (reader.field() != type.data_field) continue;
    const std::string_view run = reader.fixed(width);
    if (bytes.empty() && first.empty()) {
      first = run;
      continue;
    }
    const auto append = [&](std::string_view part) {
      const auto* begin = reinterpret_cast<const std::byte*>(part.data());
      bytes.insert(bytes.end(), begin, begin + part.size());
    };
    reader.budget().charge_converted(static_cast<int64_t>(run.size()), "float tensors");
    if (bytes.empty()) append(first);
    append(run);
  }
  const size_t found = bytes.empty() ? first.size() : bytes.size();
  reader.check(static_cast<int64_t>(found) == size, "the dimensions ask for ", size,
               " bytes of values, there are ", found);
  if (!bytes.empty()) return SharedBytes::own(std::move(bytes));
  return {source.owner, {reinterpret_cast<const std::byte*>(first.data()), first.size()}};
}

SharedBytes read_integers(const WireReader& message, const TensorTypeInfo& type, int64_t size) {
  WireReader reader = message.again();
  const int64_t width = value_bytes(type);
  const int64_t count = size / width;
  // Each value takes at least one byte of the message: lying dimensions end here.
  reader.check(count <= message.size(), "the dimensions ask for ", count,
               " values, the message has ", message.size(), " bytes");
  reader.budget().charge_converted(count * 8, "integer tensors");
  Ints values;
  values.reserve(static_cast<size_t>(count));
  while (reader.next())
    if (reader.field() == type.data_field)
      reader.append_integers(values, count, Status::InvalidModel);
  reader.check(static_cast<int64_t>(values.size()) == count, "the dimensions ask for ", count,
               " values, there are ", values.size());
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t value = type.number == kBoolType ? (values[i] != 0 ? 1 : 0) : values[i];
    std::memcpy(bytes.data() + i * static_cast<size_t>(width), &value, static_cast<size_t>(width));
  }
  return SharedBytes::own(std::move(bytes));
}

std::vector<std::string> read_strings(const WireReader& message, const TensorData& tensor) {
  WireReader reader = message.again();
  std::vector<std::string> strings;
  while (reader.next()) {
    if (reader.field() != f::string_data) continue;
    reader.budget().charge_structure(sizeof(std::string), "string tensors");
    strings.push_back(reader.text());
  }
  reader.check(static_cast<int64_t>(strings.size()) == tensor.count, "the dimensions ask for ",
               tensor.count, " strings, there are ", strings.size());
  return strings;
}

bool has_field(const WireReader& message, uint32_t number) {
  WireReader reader = message.again();
  while (reader.next())
    if (reader.field() == number) return true;
  return false;
}

}  // namespace

const TensorTypeInfo* tensor_type(int64_t number) {
  for (const TensorTypeInfo& type : kTensorTypes)
    if (type.number == number) return &type;
  return nullptr;
}

std::string tensor_type_name(int64_t number) {
  const TensorTypeInfo* type = tensor_type(number);
  return type ? type->name : cat("type ", number);
}

bool is_complex(int64_t number) {
  return number == kComplex64Type || number == kComplex128Type;
}

Ints carrier_dims(int64_t number, Ints dims) {
  if (is_complex(number)) dims.push_back(2);
  return dims;
}

DType carrier_of(const TensorTypeInfo& type) {
  if (is_complex(type.number)) return type.number == kComplex64Type ? kFloat32 : kFloat64;
  const bool has_sign = type.number == kInt4Type || type.number == kInt2Type;
  const bool is_narrow = type.number >= kFirstNarrowType && type.number <= kInt2Type;
  if (type.ours != ScalarType::Void || !is_narrow) return type.ours;
  return has_sign ? kInt8 : kUInt8;
}

DType dtype_of_tensor_type(int64_t number, std::string_view what, std::string_view name) {
  const TensorTypeInfo* type = tensor_type(number);
  if (!type || carrier_of(*type) == kVoid)
    throw_error(Status::Unsupported, what, " \"", name, "\" has the element type ",
                tensor_type_name(number), ", which is not supported");
  return carrier_of(*type);
}

int32_t tensor_type_of_dtype(DType dtype) {
  for (const TensorTypeInfo& type : kTensorTypes)
    if (type.ours == dtype.scalar && dtype.scalar != ScalarType::Void && dtype.lanes == 1)
      return type.number;
  throw_error(Status::Unsupported, "elements of ", to_string(dtype), " are not written to ONNX");
}

TensorData read_tensor(WireReader& reader, const TensorSource& source) {
  TensorData tensor;
  const Parts parts = read_parts(reader, tensor);
  const TensorTypeInfo& type = *tensor_type(tensor.type);
  const int64_t size = sized(reader, tensor);
  if (parts.location_kind == 1) {
    tensor.bytes = read_external(reader, tensor, parts, size, source);
    tensor.location = parts.location;
  } else {
    reader.check(parts.location_kind == 0, "data_location ", parts.location_kind, " is unknown");
    if (type.number == kStringType) {
      reader.check(!parts.has_raw, "string tensor \"", tensor.name, "\" with raw_data");
      tensor.strings = read_strings(reader, tensor);
    } else if (parts.has_raw && (!parts.raw.empty() || !has_field(reader, type.data_field))) {
      reader.check(static_cast<int64_t>(parts.raw.size()) == size, "tensor \"", tensor.name,
                   "\" of shape ", list_text(tensor.dims), " and type ", type.name, " needs ", size,
                   " bytes, raw_data has ", parts.raw.size());
      const auto* begin = reinterpret_cast<const std::byte*>(parts.raw.data());
      tensor.bytes = {source.owner, {begin, parts.raw.size()}};
    } else if (type.data_field == f::float_data || type.data_field == f::double_data) {
      tensor.bytes = read_reals(reader, type, size, source);
    } else {
      tensor.bytes = read_integers(reader, type, size);
    }
  }
  const StopSignal* stop = reader.budget().limits.stop;
  if (type.number == kBoolType && has_odd_bools(tensor.bytes, stop)) {
    reader.budget().charge_converted(tensor.bytes.size(), "bool tensors");
    tensor.bytes = normal_bools(tensor.bytes, stop);
  }
  return tensor;
}

namespace {

// The row-major position of each value, in ascending order and inside `dense`.
Ints sparse_positions(const WireReader& reader, const TensorData& dense, const TensorData& indices,
                      int64_t count) {
  const auto rank = static_cast<int64_t>(dense.dims.size());
  const bool linear = indices.dims.size() == 1;
  reader.check(indices.type == kInt64Type, "sparse indices of type ",
               tensor_type_name(indices.type));
  reader.check(
      linear ? indices.dims[0] == count
             : indices.dims.size() == 2 && indices.dims[0] == count && indices.dims[1] == rank,
      "sparse indices of shape ", list_text(indices.dims), " for ", count, " values of rank ",
      rank);
  const auto index_at = [&](int64_t i) {
    int64_t index = 0;
    std::memcpy(&index, indices.bytes.data() + i * 8, 8);
    return index;
  };
  Ints positions;
  positions.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t position = linear ? index_at(i) : 0;
    for (int64_t k = 0; !linear && k < rank; ++k) {
      const int64_t dim = dense.dims[static_cast<size_t>(k)];
      const int64_t index = index_at(i * rank + k);
      reader.check(index >= 0 && index < dim, "sparse index ", index, " in a dimension of ", dim);
      position = position * dim + index;
    }
    reader.check(position >= 0 && position < dense.count, "sparse index ", position, " of ",
                 dense.count, " elements");
    reader.check(positions.empty() || position > positions.back(),
                 "sparse indices are not in ascending order");
    positions.push_back(position);
  }
  return positions;
}

}  // namespace

TensorData read_sparse_tensor(WireReader& reader, const TensorSource& source) {
  namespace s = field::SparseTensorProto;
  std::optional<TensorData> values;
  std::optional<TensorData> indices;
  TensorData dense;
  while (reader.next()) {
    if (reader.field() == s::values || reader.field() == s::indices) {
      auto& target = reader.field() == s::values ? values : indices;
      WireReader child = reader.message(ProtoMessage::TensorProto);
      target = read_tensor(child, source);
    } else if (reader.field() == s::dims) {
      reader.append_integers(dense.dims, reader.budget().limits.rank);
    }
  }
  reader.check(values && indices, "a sparse tensor without values or without indices");
  reader.check(values->dims.size() == 1, "sparse values of shape ", list_text(values->dims));
  dense.name = values->name;
  dense.type = values->type;
  const int64_t size = sized(reader, dense);
  const Ints positions = sparse_positions(reader, dense, *indices, values->count);
  if (dense.type == kStringType) {
    reader.budget().charge_structure(
        checked_mul(dense.count, sizeof(std::string), "the size of a sparse tensor"),
        "sparse tensors");
    dense.strings.resize(static_cast<size_t>(dense.count));
    for (size_t i = 0; i < positions.size(); ++i)
      dense.strings[static_cast<size_t>(positions[i])] = std::move(values->strings[i]);
    return dense;
  }
  const int64_t width = tensor_type(dense.type)->bits / 8;
  if (width == 0)
    reader.fail(Status::Unsupported, "a sparse tensor of type ", tensor_type_name(dense.type));
  reader.budget().charge_converted(size, "sparse tensors");
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  for (size_t i = 0; i < positions.size(); ++i)
    std::memcpy(bytes.data() + positions[i] * width,
                values->bytes.data() + static_cast<int64_t>(i) * width, static_cast<size_t>(width));
  dense.bytes = SharedBytes::own(std::move(bytes));
  return dense;
}

HostTensor to_host_tensor(const TensorData& tensor) {
  const DType dtype = dtype_of_tensor_type(tensor.type, "tensor", tensor.name);
  const int bits = tensor_type(tensor.type)->bits;
  if (bits >= 8) return {dtype, carrier_dims(tensor.type, tensor.dims), tensor.bytes};
  // Several in a byte, the lowest bits first.
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.count));
  const unsigned mask = (1U << bits) - 1, sign = dtype.is_signed() ? 1U << (bits - 1) : 0;
  for (int64_t i = 0; i < tensor.count; ++i) {
    const auto word = static_cast<unsigned>(tensor.bytes.data()[i * bits / 8]);
    const unsigned value = (word >> (i * bits % 8)) & mask;
    bytes[static_cast<size_t>(i)] = static_cast<std::byte>((value ^ sign) - sign);
  }
  return {dtype, tensor.dims, SharedBytes::own(std::move(bytes))};
}

namespace {

// A SequenceProto and an OptionalProto hold elem_type where a TensorProto holds data_type, and
// their values in the fields 3 to 7: messages, of which a TensorProto uses none.
bool looks_like_container(std::string_view bytes, Budget& budget) {
  WireReader reader(bytes, ProtoMessage::TensorProto, budget);
  constexpr uint32_t kFirstValues = 3;
  constexpr uint32_t kLastValues = 7;
  int64_t elem_type = 0;
  bool only_own_fields = true;
  bool values_fit = true;
  try {
    while (reader.next()) {
      const uint32_t number = reader.field();
      if (number == f::data_type)
        elem_type = reader.integer();
      else if (number >= kFirstValues && number <= kLastValues)
        values_fit = values_fit && reader.is_packed() && elem_type == int64_t{number} - 2;
      else
        only_own_fields = only_own_fields && number == f::dims && reader.is_packed();
    }
  } catch (const Error&) {
    return false;
  }
  return only_own_fields && values_fit && elem_type >= 0 && elem_type <= 5;
}

}  // namespace

TensorData parse_tensor_pb(const SharedBytes& bytes, const Limits& limits) {
  require(bytes.size() <= limits.model_bytes, Status::Limit, "a tensor file of ", bytes.size(),
          " bytes, more than the limit model_bytes = ", limits.model_bytes);
  Budget budget{.limits = limits};
  WireReader reader(bytes.text(), ProtoMessage::TensorProto, budget);
  try {
    return read_tensor(reader, {bytes.owner(), nullptr});
  } catch (const Error&) {
    if (bytes.size() == 0 || !looks_like_container(bytes.text(), budget)) throw;
  }
  throw_error(Status::Unsupported,
              "the file holds a SequenceProto or an OptionalProto, not a TensorProto");
}

TensorData read_tensor_pb(const std::string& path, const Limits& limits, const FileAccess& access) {
  const SharedBytes bytes = open_file(path, access, limits.model_bytes);
  try {
    return parse_tensor_pb(bytes, limits);
  } catch (const Error& e) {
    throw e.at(path).in_file(path);
  }
}

namespace {

// What stands before the elements, which come last.
std::string tensor_pb_head(const HostTensor& tensor, const std::string& name) {
  std::string out;
  protozero::pbf_writer writer(out);
  for (int64_t dim : tensor.shape) writer.add_int64(f::dims, dim);
  writer.add_int32(f::data_type, tensor_type_of_dtype(tensor.dtype));
  if (!name.empty()) writer.add_string(f::name, name);
  constexpr auto kKey = static_cast<uint32_t>(f::raw_data) << 3 |
                        static_cast<uint32_t>(protozero::pbf_wire_type::length_delimited);
  protozero::write_varint(std::back_inserter(out), uint64_t{kKey});
  protozero::write_varint(std::back_inserter(out), static_cast<uint64_t>(tensor.bytes.size()));
  return out;
}

}  // namespace

std::string tensor_pb_bytes(const HostTensor& tensor, const std::string& name) {
  return tensor_pb_head(tensor, name).append(tensor.bytes.text());
}

void write_tensor_pb(const std::string& path, const HostTensor& tensor, const std::string& name,
                     const StopSignal* stop) {
  const std::string head = tensor_pb_head(tensor, name);
  const std::string_view parts[] = {head, tensor.bytes.text()};
  write_file(path, parts, stop);
}

}  // namespace tiny

#include "onnx_file.h"

#include <cstring>
#include <stdexcept>

namespace tiny::bench {
namespace {

// Numbers of fields, as onnx.proto has them.
enum { kIrVersion = 1, kGraph = 7, kOpset = 8 };
enum { kNode = 1, kGraphName = 2, kInitializer = 5, kGraphInput = 11, kGraphOutput = 12 };
enum { kNodeInput = 1, kNodeOutput = 2, kOpType = 4, kAttribute = 5 };
enum { kAttributeName = 1, kInt = 3, kInts = 8, kAttributeType = 20, kIntType = 2, kIntsType = 7 };
enum { kDims = 1, kDataType = 2, kTensorName = 8, kRaw = 9 };

// A message in protobuf's wire format.
class Message {
 public:
  Message& number(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }

  Message& text(int field, const std::string& value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }

  Message& message(int field, const Message& value) { return text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

int64_t type_number(tiny_dtype dtype) {
  switch (dtype) {
    case TINY_FLOAT32:
      return 1;
    case TINY_UINT8:
      return 2;
    case TINY_INT8:
      return 3;
    case TINY_INT32:
      return 6;
    case TINY_BFLOAT16:
      return 16;
    default:
      throw std::runtime_error("an element type that bench cannot write");
  }
}

// The elements in little-endian order; bfloat16 cuts what it cannot hold.
std::string raw(const OnnxValue& tensor) {
  std::string out;
  for (const float value : tensor.values) {
    char bytes[4];
    std::memcpy(bytes, &value, 4);
    if (tensor.dtype == TINY_FLOAT32) {
      out.append(bytes, 4);
    } else if (tensor.dtype == TINY_BFLOAT16) {
      out.append(bytes + 2, 2);
    } else {
      out += static_cast<char>(static_cast<int>(value));
    }
  }
  return out;
}

Message node_message(const OnnxNode& node) {
  Message out;
  for (const std::string& input : node.inputs) out.text(kNodeInput, input);
  out.text(kNodeOutput, node.output).text(kOpType, node.op);
  for (const auto& [name, list] : node.lists) {
    Message attribute;
    attribute.text(kAttributeName, name);
    for (const int64_t value : list) attribute.number(kInts, value);
    out.message(kAttribute, attribute.number(kAttributeType, kIntsType));
  }
  for (const auto& [name, value] : node.numbers) {
    Message attribute;
    attribute.text(kAttributeName, name).number(kInt, value);
    out.message(kAttribute, attribute.number(kAttributeType, kIntType));
  }
  return out;
}

Message constant_message(const OnnxValue& tensor) {
  Message out;
  for (const int64_t dim : tensor.dims) out.number(kDims, dim);
  out.number(kDataType, type_number(tensor.dtype));
  return out.text(kTensorName, tensor.name).text(kRaw, raw(tensor));
}

// ValueInfo: a name and a type, which is a tensor's: an element type and dimensions.
Message port_message(const OnnxValue& port) {
  Message shape;
  for (const int64_t dim : port.dims) shape.message(1, Message().number(1, dim));
  const Message tensor = Message().number(1, type_number(port.dtype)).message(2, shape);
  return Message().text(1, port.name).message(2, Message().message(1, tensor));
}

}  // namespace

std::string onnx_bytes(const OnnxGraph& graph) {
  Message body;
  for (const OnnxNode& node : graph.nodes) body.message(kNode, node_message(node));
  body.text(kGraphName, "row");
  for (const OnnxValue& tensor : graph.constants)
    body.message(kInitializer, constant_message(tensor));
  body.message(kGraphInput, port_message(graph.input));
  body.message(kGraphOutput, port_message(graph.output));
  Message model;
  model.number(kIrVersion, 8).message(kGraph, body);
  return model.message(kOpset, Message().text(1, "").number(2, 17)).bytes();
}

}  // namespace tiny::bench

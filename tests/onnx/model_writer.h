// Writes ONNX messages for tests: only what a test names is in the bytes, legal or not.
#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/wire.h"

namespace tiny::onnx::testing {

using Writer = protozero::pbf_writer;

// The bytes of one message, by its fields.
class Message {
 public:
  Message& number(uint32_t field, int64_t value) {
    Writer(bytes_).add_int64(field, value);
    return *this;
  }
  Message& text(uint32_t field, const std::string& value) {
    Writer(bytes_).add_string(field, value);
    return *this;
  }
  Message& real(uint32_t field, float value) {
    Writer(bytes_).add_float(field, value);
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  Message& packed(uint32_t field, const std::vector<int64_t>& values) {
    Writer(bytes_).add_packed_int64(field, values.begin(), values.end());
    return *this;
  }
  Message& packed_reals(uint32_t field, const std::vector<float>& values) {
    Writer(bytes_).add_packed_float(field, values.begin(), values.end());
    return *this;
  }
  Message& packed_doubles(uint32_t field, const std::vector<double>& values) {
    Writer(bytes_).add_packed_double(field, values.begin(), values.end());
    return *this;
  }
  // Bytes that need not be a field.
  Message& raw(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// TensorProto::DataType, as far as tests name them.
inline constexpr int64_t kFloatType = 1;
inline constexpr int64_t kInt64Type = 7;
inline constexpr int64_t kBoolType = 9;

inline Message node(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::string& domain = "") {
  namespace f = field::NodeProto;
  Message m;
  for (const std::string& name : inputs) m.text(f::input, name);
  for (const std::string& name : outputs) m.text(f::output, name);
  m.text(f::op_type, op);
  if (!domain.empty()) m.text(f::domain, domain);
  return m;
}

inline Message attribute(const std::string& name, int64_t type) {
  namespace f = field::AttributeProto;
  return Message().text(f::name, name).number(f::type, type);
}

inline Message int_attribute(const std::string& name, int64_t value) {
  return attribute(name, 2).number(field::AttributeProto::i, value);
}

inline Message ints_attribute(const std::string& name, const std::vector<int64_t>& values) {
  Message m = attribute(name, 7);
  for (int64_t v : values) m.number(field::AttributeProto::ints, v);
  return m;
}

inline Message text_attribute(const std::string& name, const std::string& value) {
  return attribute(name, 3).text(field::AttributeProto::s, value);
}

inline Message graph_attribute(const std::string& name, const Message& graph) {
  return attribute(name, 5).message(field::AttributeProto::g, graph);
}

// A node with one attribute more.
inline Message with(Message node, const Message& attribute) {
  return node.message(field::NodeProto::attribute, attribute);
}

inline Message dim(int64_t value) {
  return Message().number(field::Dimension::dim_value, value);
}
inline Message dim(const std::string& name) {
  return Message().text(field::Dimension::dim_param, name);
}

inline Message tensor_type(int64_t elem_type, const std::vector<Message>& dims) {
  Message shape;
  for (const Message& d : dims) shape.message(field::TensorShapeProto::dim, d);
  return Message().message(field::TypeProto::tensor_type,
                           Message()
                               .number(field::TypeTensor::elem_type, elem_type)
                               .message(field::TypeTensor::shape, shape));
}

inline Message value(const std::string& name) {
  return Message().text(field::ValueInfoProto::name, name);
}
inline Message value(const std::string& name, const Message& type) {
  return value(name).message(field::ValueInfoProto::type, type);
}

// A value of type tensor(float).
inline Message floats(const std::string& name, const std::vector<Message>& dims) {
  return value(name, tensor_type(kFloatType, dims));
}

inline Message tensor(const std::string& name, int64_t type, const std::vector<int64_t>& dims) {
  namespace f = field::TensorProto;
  Message m;
  for (int64_t d : dims) m.number(f::dims, d);
  m.number(f::data_type, type);
  if (!name.empty()) m.text(f::name, name);
  return m;
}

// Weights.
inline Message float_tensor(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<float>& values) {
  return tensor(name, kFloatType, dims).packed_reals(field::TensorProto::float_data, values);
}

// A list of integers, and one integer without axes.
inline Message int64s(const std::string& name, const std::vector<int64_t>& values) {
  return tensor(name, kInt64Type, {static_cast<int64_t>(values.size())})
      .packed(field::TensorProto::int64_data, values);
}
inline Message int64_scalar(const std::string& name, int64_t number) {
  return tensor(name, kInt64Type, {}).packed(field::TensorProto::int64_data, {number});
}

// A graph whose inputs are values with types.
inline Message typed_graph(const std::vector<Message>& nodes, const std::vector<Message>& inputs,
                           const std::vector<std::string>& outputs,
                           const std::vector<Message>& initializers = {}) {
  namespace f = field::GraphProto;
  Message m;
  for (const Message& n : nodes) m.message(f::node, n);
  for (const Message& input : inputs) m.message(f::input, input);
  for (const std::string& name : outputs) m.message(f::output, value(name));
  for (const Message& t : initializers) m.message(f::initializer, t);
  return m;
}

// The same, inputs without types.
inline Message graph(const std::vector<Message>& nodes, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs,
                     const std::vector<Message>& initializers = {}) {
  std::vector<Message> values;
  for (const std::string& name : inputs) values.push_back(value(name));
  return typed_graph(nodes, values, outputs, initializers);
}

inline Message opset(const std::string& domain, int64_t version) {
  Message m;
  if (!domain.empty()) m.text(field::OperatorSetIdProto::domain, domain);
  return m.number(field::OperatorSetIdProto::version, version);
}

inline Message model(const Message& graph) {
  namespace f = field::ModelProto;
  return Message()
      .number(f::ir_version, 8)
      .message(f::graph, graph)
      .message(f::opset_import, opset("", 17));
}

inline SharedBytes shared(const Message& message) {
  return SharedBytes::copy(message.bytes());
}

}  // namespace tiny::onnx::testing

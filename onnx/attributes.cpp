#include "onnx/attributes.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_reader.h"
#include "io/host_tensor.h"

namespace tiny::onnx {

namespace {

using Kind = JsonReader::Kind;

void set_number(Attribute& a, const JsonReader::Number& number) {
  a.type = number.is_integer ? AttributeType::Int : AttributeType::Float;
  a.i = number.integer;
  a.f = static_cast<float>(number.real);
}

// A list of numbers or of strings; one fraction makes all its numbers floats, and so does one of
// "nan", "inf", "-inf".
void read_list(JsonReader& in, Attribute& a) {
  size_t texts = 0;
  bool is_whole = true;
  for (in.begin_array(); in.next_item();) {
    JsonReader::Number number;
    if (in.kind() == Kind::Text) {
      ++texts;
      a.strings.push_back(in.text());
      const std::optional<double> value = not_finite(a.strings.back());
      if (value) number.real = *value;
    } else {
      number = in.number();
      a.strings.emplace_back();
    }
    is_whole &= number.is_integer;
    a.ints.push_back(number.integer);
    a.floats.push_back(static_cast<float>(number.real));
  }
  const bool is_text = texts > 0 && texts == a.strings.size();
  a.type = is_text                      ? AttributeType::Strings
           : is_whole || a.ints.empty() ? AttributeType::Ints
                                        : AttributeType::Floats;
  const auto is_other = [](const std::string& s) { return !s.empty() && !not_finite(s); };
  if (!is_text && std::ranges::any_of(a.strings, is_other))
    in.fail("strings and numbers in a list");
  if (!is_text) a.strings.clear();
}

// An element: a number, a bool, or "nan", "inf", "-inf".
uint64_t element_bits(JsonReader& in, DType dtype) {
  if (in.kind() == Kind::Text) {
    const std::optional<double> value = not_finite(in.text());
    if (!value || !dtype.is_float()) in.fail("an element of ", dtype, " is due");
    return bits_of(dtype, *value);
  }
  const JsonReader::Number number = in.number();
  return number.is_integer && !dtype.is_float() ? bits_of_int(dtype, number.integer)
                                                : bits_of(dtype, number.real);
}

struct TensorText {
  std::optional<DType> dtype;
  std::optional<Ints> shape;
  std::vector<uint64_t> elements;
};

TensorText read_tensor_text(JsonReader& in) {
  TensorText out;
  in.begin_object();
  for (std::string key; in.next_key(key);) {
    if (key == "dtype") {
      const std::string name = in.text();
      out.dtype = dtype_named(name);
      if (!out.dtype) in.fail("unknown dtype \"", name, '"');
    } else if (key == "shape") {
      out.shape.emplace();
      for (in.begin_array(); in.next_item();) out.shape->push_back(in.natural());
    } else if (key == "data") {
      if (!out.dtype) in.fail("a tensor's \"dtype\" comes before its \"data\"");
      for (in.begin_array(); in.next_item();) out.elements.push_back(element_bits(in, *out.dtype));
    } else {
      in.fail("unknown key \"", key, "\" of a tensor; known: dtype, shape, data");
    }
  }
  if (!out.dtype) in.fail("a tensor without a \"dtype\"");
  return out;
}

void read_tensor(JsonReader& in, Attribute& a) {
  const TensorText text = read_tensor_text(in);
  a.type = AttributeType::Tensor;
  TensorData data;
  data.count = std::ssize(text.elements);
  data.dims = text.shape.value_or(Ints{data.count});
  if (element_count(data.dims, "a tensor's shape") != data.count)
    in.fail("a tensor of shape ", list_text(data.dims), " with ", data.count, " elements");
  const auto width = static_cast<size_t>(text.dtype->bytes());
  std::vector<std::byte> bytes(text.elements.size() * width);
  for (size_t i = 0; i < text.elements.size(); ++i)
    std::memcpy(bytes.data() + i * width, &text.elements[i], width);
  data.bytes = SharedBytes::own(std::move(bytes));
  data.type = tensor_type_of_dtype(*text.dtype);
  a.tensors.push_back(std::move(data));
}

void read_value(JsonReader& in, Attribute& a) {
  a.is_bare = true;
  switch (in.kind()) {
    case Kind::Text:
      a.type = AttributeType::String;
      a.s = in.text();
      return;
    case Kind::Array:
      return read_list(in, a);
    case Kind::Object:
      return read_tensor(in, a);
    default:
      return set_number(a, in.number());
  }
}

void write_tensor(JsonWriter& json, const TensorData& data) {
  const HostTensor tensor = to_host_tensor(data);
  json.begin_object().key("dtype").text(tiny::to_string(tensor.dtype)).key("shape").begin_array();
  for (int64_t d : tensor.shape) json.integer(d);
  json.end_array().key("data").begin_array();
  const auto width = static_cast<size_t>(tensor.dtype.bytes());
  for (int64_t i = 0; i < data.count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + static_cast<size_t>(i) * width, width);
    if (tensor.dtype.is_float())
      json.real(double_of(tensor.dtype, bits));
    else
      json.integer(int_of(tensor.dtype, bits));
  }
  json.end_array().end_object();
}

void write_value(JsonWriter& json, const Attribute& a) {
  switch (a.type) {
    case AttributeType::Int:
      json.integer(a.i);
      return;
    case AttributeType::Float:
      json.real(a.f);
      return;
    case AttributeType::String:
      json.text(a.s);
      return;
    case AttributeType::Tensor:
      write_tensor(json, a.tensors.front());
      return;
    case AttributeType::Ints:
      json.begin_array();
      for (int64_t i : a.ints) json.integer(i);
      json.end_array();
      return;
    case AttributeType::Floats:
      json.begin_array();
      for (float f : a.floats) json.real(f);
      json.end_array();
      return;
    case AttributeType::Strings:
      json.begin_array();
      for (const std::string& s : a.strings) json.text(s);
      json.end_array();
      return;
    default:
      throw_error(Status::Unsupported, "its attribute \"", a.name, "\" is of type ",
                  to_string(a.type), ", which has no form in JSON");
  }
}

}  // namespace

std::vector<Attribute> attributes_from_json(std::string_view json) {
  std::vector<Attribute> out;
  std::string key;
  try {
    JsonReader in(json);
    in.begin_object();
    while (in.next_key(key)) {
      if (in.skip_null()) continue;
      out.emplace_back().name = key;
      read_value(in, out.back());
    }
    key.clear();
    in.end();
  } catch (const Error& e) {
    throw_error(e.status() == Status::InvalidModel ? Status::InvalidArgument : e.status(),
                key.empty() ? cat("the attributes: ", e.message())
                            : cat("the attribute \"", key, "\": ", e.message()));
  }
  return out;
}

std::string attributes_to_json(const Node& node) {
  JsonWriter json;
  json.begin_object();
  for (const Attribute& a : node.attributes) {
    json.key(a.name);
    write_value(json, a);
  }
  json.end_object();
  return json.result();
}

}  // namespace tiny::onnx

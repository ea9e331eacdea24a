// An ONNX model as plain structures, close to onnx.proto.
//
// Weights are views into the mapped file (TensorData holds a reference to it); everything else is
// copied.  What `read_model` returns keeps these laws: names in a graph are defined once; nodes
// stand in topological order; every name a node or output uses is defined in its graph or in one
// around it; every node has the operator-set version it was written for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "io/tensor_pb.h"

namespace tiny::onnx {

// The newest IR version whose fields these structures know.
inline constexpr int64_t kNewestIrVersion = 13;

// A dimension of a type: a number, a name, or nothing known.
struct Dim {
  int64_t value = -1;  // < 0: not a number
  std::string name;    // empty: not a name either
  bool is_known() const { return value >= 0; }
  bool operator==(const Dim&) const = default;
};

// The type of a value.
struct ValueType {
  enum class Kind : uint8_t { None, Tensor, SparseTensor, Sequence, Optional, Map };
  Kind kind = Kind::None;
  bool has_rank = false;           // tensors: whether `dims` is known
  int32_t elem_type = 0;           // tensors: ONNX element type; maps: that of the key; 0: unknown
  std::vector<Dim> dims;           // tensors
  std::vector<ValueType> element;  // sequences, optionals, maps: one, of what they hold
};

// "tensor(FLOAT)[N, 3, ?]", "seq(tensor(INT64))".
std::string to_string(const ValueType& type);

struct ValueInfo {
  std::string name;
  ValueType type;
};

enum class AttributeType : uint8_t {
#define ATTRIBUTE_TYPE(name, text, number) name = number,
#include "io/onnx_proto.def"
};

// "INTS".
const char* to_string(AttributeType type);

struct Graph;

// `type` says which member holds the value; a TENSOR, GRAPH or TYPE_PROTO is the one element of its
// list, and a sparse tensor has become a dense one.
struct Attribute {
  std::string name;
  // Written without types (onnx/attributes.h): an integer has its value as a float too, and an
  // empty list is one of any type.
  bool is_bare = false;
  AttributeType type = AttributeType::Undefined;
  std::string ref_attr_name;  // functions: the attribute of the call that this one stands for
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  Ints ints;
  std::vector<std::string> strings;
  std::vector<TensorData> tensors;
  std::vector<Graph> graphs;
  std::vector<ValueType> types;
};

struct Node {
  std::string op_type;
  std::string domain;  // "" for ai.onnx
  std::string overload;
  std::string name;
  int64_t version = 0;               // of the domain's operator set
  std::vector<std::string> inputs;   // "" for one left out
  std::vector<std::string> outputs;  // "" for one not wanted
  std::vector<Attribute> attributes;

  // The attribute of this name; null if the node has none.
  const Attribute* attribute(std::string_view wanted) const;
};

// "Conv \"layer1/conv\"", or by its first output where the node has no name.
std::string describe(const Node& node);

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_infos;
  std::vector<TensorData> initializers;  // sparse ones have become dense
};

struct OpsetImport {
  std::string domain;  // "" for ai.onnx
  int64_t version = 0;
};

struct Function {
  std::string name;
  std::string domain;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;  // without a default
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opset_imports;
};

// What a call and its function share: name, domain, overload.  Points into the node or function.
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;
FunctionKey key_of(const Node& call);
FunctionKey key_of(const Function& function);

struct Model {
  int64_t ir_version = 0;
  int64_t model_version = 0;
  std::vector<OpsetImport> opset_imports;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::string doc_string;
  std::vector<std::pair<std::string, std::string>> metadata;
  Graph graph;
  std::vector<Function> functions;
};

}  // namespace tiny::onnx

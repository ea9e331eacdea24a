#include "onnx/reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "onnx/check.h"

namespace tiny::onnx {

namespace {

// The values an AttributeProto holds, as a set of the types they are values of.
class Seen {
 public:
  void add(AttributeType type) { bits_ |= bit(type); }
  bool has(AttributeType type) const { return (bits_ & bit(type)) != 0; }
  // The only type seen, or Undefined.
  AttributeType only() const {
    for (uint32_t i = 1; i < 32; ++i)
      if (bits_ == uint32_t{1} << i) return static_cast<AttributeType>(i);
    return AttributeType::Undefined;
  }

 private:
  static uint32_t bit(AttributeType type) { return uint32_t{1} << static_cast<uint32_t>(type); }
  uint32_t bits_ = 0;
};

// Settles the attribute's type: as stated, or, in files older than the field, from the value.
void settle_type(const WireReader& r, Attribute& attribute, int64_t stated, const Seen& seen) {
  using enum AttributeType;
  r.check(!attribute.name.empty(), "an attribute without a name");
  bool known = false;
#define ATTRIBUTE_TYPE(name, text, number) known = known || stated == number;
#include "io/onnx_proto.def"
  r.check(known, "attribute \"", attribute.name, "\" has type ", stated,
          ", which is no attribute type");
  attribute.type = stated == 0 ? seen.only() : static_cast<AttributeType>(stated);
  if (!attribute.ref_attr_name.empty()) return;
  r.check(attribute.type != Undefined, "attribute \"", attribute.name,
          "\" has neither a type nor one value");
  // What the type does not speak of is no part of the attribute.
  const bool tensors = attribute.type == Tensor || attribute.type == Tensors ||
                       attribute.type == SparseTensor || attribute.type == SparseTensors;
  if (!tensors) attribute.tensors.clear();
  if (attribute.type != Graph && attribute.type != Graphs) attribute.graphs.clear();
  if (attribute.type != TypeProto && attribute.type != TypeProtos) attribute.types.clear();
  const bool needs_one = attribute.type == Tensor || attribute.type == Graph ||
                         attribute.type == SparseTensor || attribute.type == TypeProto;
  const size_t values = attribute.tensors.size() + attribute.graphs.size() + attribute.types.size();
  r.check(!needs_one || (values == 1 && seen.has(attribute.type)), "attribute \"", attribute.name,
          "\" of type ", to_string(attribute.type), " has ", values, " values");
}

// Reads the messages of one model: one function for each, as deep on the stack as the file nests
// graphs or types, which subgraph_depth bounds.
class ModelReader {
 public:
  explicit ModelReader(TensorSource source) : source_(std::move(source)) {}

  Model model(WireReader& r);

 private:
  Graph graph(WireReader& r, int64_t depth);
  Function function(WireReader& r);
  Node node(WireReader& r, int64_t depth);
  Attribute attribute(WireReader& r, int64_t depth);
  // Takes the current field if it is a tensor, a graph or a type.
  bool nested_value(WireReader& r, Attribute& a, Seen& seen, int64_t depth);
  ValueInfo value_info(WireReader& r);
  ValueType type(WireReader& r, int64_t depth);
  void tensor_type(WireReader& r, ValueType& type);
  void container_type(WireReader& r, ValueType& type, int64_t depth);
  OpsetImport opset(WireReader& r);

  TensorSource source_;
};

// Counts what one parsed structure costs in memory.
template <class T>
T& append(WireReader& r, std::vector<T>& list, T value) {
  r.budget().charge_structure(sizeof(T), "the model's structure");
  list.push_back(std::move(value));
  return list.back();
}

void append_name(WireReader& r, std::vector<std::string>& list) {
  append(r, list, r.name());
}

std::string domain_name(WireReader& r) {
  std::string name = r.name();
  return name == "ai.onnx" ? std::string() : name;
}

void check_depth(const WireReader& r, int64_t depth) {
  const int64_t most = r.budget().limits.subgraph_depth;
  if (depth > most)
    r.fail(Status::Limit,
           cat("nested deeper than subgraph_depth = ", most, raise_hint("subgraph_depth")));
}

Model ModelReader::model(WireReader& r) {
  namespace f = field::ModelProto;
  Model model;
  bool has_graph = false;
  while (r.next()) {
    switch (r.field()) {
      case f::ir_version:
        model.ir_version = r.integer();
        break;
      case f::model_version:
        model.model_version = r.integer();
        break;
      case f::producer_name:
        model.producer_name = r.name();
        break;
      case f::producer_version:
        model.producer_version = r.name();
        break;
      case f::domain:
        model.domain = r.name();
        break;
      case f::opset_import: {
        WireReader child = r.message(ProtoMessage::OperatorSetIdProto, model.opset_imports.size());
        append(r, model.opset_imports, opset(child));
        break;
      }
      case f::metadata_props: {
        WireReader child = r.message(ProtoMessage::StringStringEntryProto, model.metadata.size());
        std::pair<std::string, std::string> entry;
        while (child.next()) {
          if (child.field() == field::StringStringEntryProto::key) entry.first = child.name();
          if (child.field() == field::StringStringEntryProto::value) entry.second = child.text();
        }
        append(r, model.metadata, std::move(entry));
        break;
      }
      case f::graph: {
        r.check(!has_graph, "a second graph");
        has_graph = true;
        WireReader child = r.message(ProtoMessage::GraphProto);
        model.graph = graph(child, 1);
        break;
      }
      case f::functions: {
        WireReader child = r.message(ProtoMessage::FunctionProto, model.functions.size());
        append(r, model.functions, function(child));
        break;
      }
      default:
        break;
    }
  }
  r.check(has_graph, "the file holds no graph: it is not an ONNX model");
  if (model.ir_version > kNewestIrVersion)
    r.fail(Status::Unsupported, cat("IR version ", model.ir_version, ", newer than ",
                                    kNewestIrVersion, ", the newest this build knows"));
  return model;
}

OpsetImport ModelReader::opset(WireReader& r) {
  OpsetImport import;
  while (r.next()) {
    if (r.field() == field::OperatorSetIdProto::domain) import.domain = domain_name(r);
    if (r.field() == field::OperatorSetIdProto::version) import.version = r.integer();
  }
  return import;
}

Graph ModelReader::graph(WireReader& r, int64_t depth) {
  namespace f = field::GraphProto;
  check_depth(r, depth);
  Graph graph;
  const auto value = [&](std::vector<ValueInfo>& list) {
    WireReader child = r.message(ProtoMessage::ValueInfoProto, list.size());
    append(r, list, value_info(child));
  };
  while (r.next()) {
    switch (r.field()) {
      case f::node: {
        WireReader child = r.message(ProtoMessage::NodeProto, graph.nodes.size());
        append(r, graph.nodes, node(child, depth));
        break;
      }
      case f::name:
        graph.name = r.name();
        break;
      case f::initializer: {
        WireReader child = r.message(ProtoMessage::TensorProto, graph.initializers.size());
        append(r, graph.initializers, read_tensor(child, source_));
        break;
      }
      case f::sparse_initializer: {
        WireReader child = r.message(ProtoMessage::SparseTensorProto);
        append(r, graph.initializers, read_sparse_tensor(child, source_));
        break;
      }
      case f::input:
        value(graph.inputs);
        break;
      case f::output:
        value(graph.outputs);
        break;
      case f::value_info:
        value(graph.value_infos);
        break;
      default:
        break;
    }
  }
  return graph;
}

Function ModelReader::function(WireReader& r) {
  namespace f = field::FunctionProto;
  Function function;
  while (r.next()) {
    switch (r.field()) {
      case f::name:
        function.name = r.name();
        break;
      case f::domain:
        function.domain = domain_name(r);
        break;
      case f::overload:
        function.overload = r.name();
        break;
      case f::input:
        append_name(r, function.inputs);
        break;
      case f::output:
        append_name(r, function.outputs);
        break;
      case f::attribute:
        append_name(r, function.attributes);
        break;
      case f::attribute_proto: {
        WireReader child = r.message(ProtoMessage::AttributeProto, function.defaults.size());
        append(r, function.defaults, attribute(child, 1));
        break;
      }
      case f::node: {
        WireReader child = r.message(ProtoMessage::NodeProto, function.nodes.size());
        append(r, function.nodes, node(child, 1));
        break;
      }
      case f::opset_import: {
        WireReader child =
            r.message(ProtoMessage::OperatorSetIdProto, function.opset_imports.size());
        append(r, function.opset_imports, opset(child));
        break;
      }
      default:
        break;
    }
  }
  r.check(!function.name.empty(), "a function without a name");
  return function;
}

Node ModelReader::node(WireReader& r, int64_t depth) {
  namespace f = field::NodeProto;
  r.budget().charge_nodes(1);
  Node node;
  while (r.next()) {
    switch (r.field()) {
      case f::input:
        append_name(r, node.inputs);
        break;
      case f::output:
        append_name(r, node.outputs);
        break;
      case f::name:
        node.name = r.name();
        break;
      case f::op_type:
        node.op_type = r.name();
        break;
      case f::domain:
        node.domain = domain_name(r);
        break;
      case f::overload:
        node.overload = r.name();
        break;
      case f::attribute: {
        WireReader child = r.message(ProtoMessage::AttributeProto, node.attributes.size());
        append(r, node.attributes, attribute(child, depth));
        break;
      }
      default:
        break;
    }
  }
  r.check(!node.op_type.empty(), "a node without an op_type");
  std::vector<std::string_view> names;
  for (const Attribute& a : node.attributes) names.push_back(a.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) r.check(false, "the attribute \"", *twice, "\" stands twice");
  return node;
}

bool ModelReader::nested_value(WireReader& r, Attribute& a, Seen& seen, int64_t depth) {
  namespace f = field::AttributeProto;
  using enum AttributeType;
  const auto tensor = [&](AttributeType kind) {
    seen.add(kind);
    WireReader child = r.message(ProtoMessage::TensorProto, a.tensors.size());
    append(r, a.tensors, read_tensor(child, source_));
  };
  const auto sparse_tensor = [&](AttributeType kind) {
    seen.add(kind);
    WireReader child = r.message(ProtoMessage::SparseTensorProto, a.tensors.size());
    append(r, a.tensors, read_sparse_tensor(child, source_));
  };
  const auto subgraph = [&](AttributeType kind) {
    seen.add(kind);
    WireReader child = r.message(ProtoMessage::GraphProto, a.graphs.size());
    append(r, a.graphs, graph(child, depth + 1));
  };
  const auto value_type = [&](AttributeType kind) {
    seen.add(kind);
    WireReader child = r.message(ProtoMessage::TypeProto, a.types.size());
    append(r, a.types, type(child, 1));
  };
  switch (r.field()) {
    case f::t:
      tensor(Tensor);
      return true;
    case f::tensors:
      tensor(Tensors);
      return true;
    case f::sparse_tensor:
      sparse_tensor(SparseTensor);
      return true;
    case f::sparse_tensors:
      sparse_tensor(SparseTensors);
      return true;
    case f::g:
      subgraph(Graph);
      return true;
    case f::graphs:
      subgraph(Graphs);
      return true;
    case f::tp:
      value_type(TypeProto);
      return true;
    case f::type_protos:
      value_type(TypeProtos);
      return true;
    default:
      return false;
  }
}

Attribute ModelReader::attribute(WireReader& r, int64_t depth) {
  namespace f = field::AttributeProto;
  using enum AttributeType;
  const int64_t numbers_max = r.budget().limits.attribute_bytes / 8;
  Attribute a;
  Seen seen;
  int64_t stated = 0;
  while (r.next()) {
    switch (r.field()) {
      case f::name:
        a.name = r.name();
        break;
      case f::ref_attr_name:
        a.ref_attr_name = r.name();
        break;
      case f::type:
        stated = r.integer();
        break;
      case f::f:
        seen.add(Float);
        a.f = r.real();
        break;
      case f::i:
        seen.add(Int);
        a.i = r.integer();
        break;
      case f::s:
        seen.add(String);
        a.s = r.text();
        break;
      case f::floats:
        seen.add(Floats);
        r.append_reals(a.floats, numbers_max);
        break;
      case f::ints:
        seen.add(Ints);
        r.append_integers(a.ints, numbers_max);
        break;
      case f::strings:
        seen.add(Strings);
        append(r, a.strings, r.text());
        break;
      default:
        nested_value(r, a, seen, depth);
        break;
    }
  }
  settle_type(r, a, stated, seen);
  r.budget().charge_structure(static_cast<int64_t>(a.floats.size() * 4 + a.ints.size() * 8),
                              "the model's attributes");
  return a;
}

ValueInfo ModelReader::value_info(WireReader& r) {
  ValueInfo info;
  while (r.next()) {
    if (r.field() == field::ValueInfoProto::name) info.name = r.name();
    if (r.field() == field::ValueInfoProto::type) {
      WireReader child = r.message(ProtoMessage::TypeProto);
      info.type = type(child, 1);
    }
  }
  return info;
}

ValueType ModelReader::type(WireReader& r, int64_t depth) {
  namespace f = field::TypeProto;
  using Kind = ValueType::Kind;
  check_depth(r, depth);
  ValueType type;
  while (r.next()) {
    Kind kind = Kind::None;
    ProtoMessage message = ProtoMessage::TypeTensor;
    switch (r.field()) {
      case f::tensor_type:
        kind = Kind::Tensor;
        break;
      case f::sparse_tensor_type:
        kind = Kind::SparseTensor;
        message = ProtoMessage::TypeSparseTensor;
        break;
      case f::sequence_type:
        kind = Kind::Sequence;
        message = ProtoMessage::TypeSequence;
        break;
      case f::optional_type:
        kind = Kind::Optional;
        message = ProtoMessage::TypeOptional;
        break;
      case f::map_type:
        kind = Kind::Map;
        message = ProtoMessage::TypeMap;
        break;
      default:
        continue;
    }
    type = ValueType();  // one of them: the last
    type.kind = kind;
    WireReader child = r.message(message);
    if (kind == Kind::Tensor || kind == Kind::SparseTensor)
      tensor_type(child, type);
    else
      container_type(child, type, depth);
  }
  return type;
}

int32_t element_type(WireReader& r) {
  const int64_t number = r.integer();
  r.check(number == 0 || ::tiny::tensor_type(number) != nullptr, number, " is no element type");
  return static_cast<int32_t>(number);
}

Dim dimension(WireReader& r) {
  Dim dim;
  while (r.next()) {
    // One of them: the last.  Writers also say -1 for "not known".
    if (r.field() == field::Dimension::dim_value) dim = {r.integer(), ""};
    if (r.field() == field::Dimension::dim_param) dim = {-1, r.name()};
  }
  if (dim.value < 0) dim.value = -1;
  return dim;
}

void ModelReader::tensor_type(WireReader& r, ValueType& type) {
  static_assert(field::TypeTensor::elem_type == field::TypeSparseTensor::elem_type &&
                field::TypeTensor::shape == field::TypeSparseTensor::shape);
  while (r.next()) {
    if (r.field() == field::TypeTensor::elem_type) type.elem_type = element_type(r);
    if (r.field() != field::TypeTensor::shape) continue;
    WireReader shape = r.message(ProtoMessage::TensorShapeProto);
    type.has_rank = true;
    type.dims.clear();
    while (shape.next()) {
      if (shape.field() != field::TensorShapeProto::dim) continue;
      if (static_cast<int64_t>(type.dims.size()) >= r.budget().limits.rank)
        shape.fail(Status::Limit, cat("more dimensions than rank = ", r.budget().limits.rank));
      WireReader child = shape.message(ProtoMessage::Dimension, type.dims.size());
      append(r, type.dims, dimension(child));
    }
  }
}

void ModelReader::container_type(WireReader& r, ValueType& outer, int64_t depth) {
  static_assert(field::TypeSequence::elem_type == field::TypeOptional::elem_type);
  const bool is_map = outer.kind == ValueType::Kind::Map;
  const uint32_t inner = is_map ? field::TypeMap::value_type : field::TypeSequence::elem_type;
  while (r.next()) {
    if (is_map && r.field() == field::TypeMap::key_type) outer.elem_type = element_type(r);
    if (r.field() != inner) continue;
    WireReader child = r.message(ProtoMessage::TypeProto);
    outer.element.clear();
    append(r, outer.element, type(child, depth + 1));
  }
}

// The operator sets in force: domain and version.
using Imports = std::map<std::string_view, int64_t>;

Imports imports_of(const std::vector<OpsetImport>& stated, int64_t ir_version) {
  Imports imports;
  // Files older than the field mean the first version.
  if (stated.empty() && ir_version < 3) imports[""] = 1;
  for (const OpsetImport& import : stated) {
    const int64_t version = imports.emplace(import.domain, import.version).first->second;
    require(version == import.version, Status::InvalidModel, "operator set \"", import.domain,
            "\" is imported with versions ", version, " and ", import.version);
  }
  return imports;
}

// Gives every node the version of its operator set; as deep on the stack as graphs nest.
void set_versions(const std::set<FunctionKey>& functions, const Imports& imports,
                  std::vector<Node>& nodes) {
  for (Node& node : nodes) {
    const auto import = imports.find(node.domain);
    if (import != imports.end()) node.version = import->second;
    if (node.version <= 0 && !functions.contains(key_of(node)))
      throw Error(Status::InvalidModel,
                  cat(describe(node), ": the model imports no operator set \"",
                      node.domain.empty() ? "ai.onnx" : node.domain, "\""));
    for (Attribute& attribute : node.attributes)
      for (Graph& graph : attribute.graphs) set_versions(functions, imports, graph.nodes);
  }
}

void set_versions(Model& model) {
  std::set<FunctionKey> functions;
  for (const Function& f : model.functions) functions.insert(key_of(f));
  const Imports imports = imports_of(model.opset_imports, model.ir_version);
  set_versions(functions, imports, model.graph.nodes);
  for (Function& f : model.functions)
    set_versions(functions, imports_of(f.opset_imports, model.ir_version), f.nodes);
}

}  // namespace

Model parse_model(const SharedBytes& bytes, const std::string& folder, const Limits& limits) {
  require(bytes.size() <= limits.model_bytes, Status::Limit, "a model of ", bytes.size(),
          " bytes, more than the limit model_bytes = ", limits.model_bytes,
          raise_hint("model_bytes"));
  require(bytes.size() > 0, Status::InvalidModel, "the model file is empty");
  Budget budget{.limits = limits};
  std::optional<ExternalFiles> external;
  if (!folder.empty()) external.emplace(folder, limits);
  WireReader reader(bytes.text(), ProtoMessage::ModelProto, budget);
  ModelReader messages({bytes.owner(), external ? &*external : nullptr});
  Model model = messages.model(reader);
  set_versions(model);
  check_and_sort(model);
  return model;
}

Model read_model(const std::string& path, const Limits& limits) {
  const SharedBytes bytes = map_file(path);
  require(bytes.size() <= limits.model_bytes, Status::Limit, path, " has ", bytes.size(),
          " bytes, more than the limit model_bytes = ", limits.model_bytes,
          raise_hint("model_bytes"));
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  try {
    return parse_model(bytes, folder, limits);
  } catch (const Error& e) {
    throw e.at(path).in_file(path);
  }
}

}  // namespace tiny::onnx

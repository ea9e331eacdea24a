#include "onnx/reader.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "onnx/check.h"
#include "onnx/read/graph.h"
#include "onnx/read/opset_versions.h"
#include "onnx/read/structure.h"

namespace tiny::onnx {

namespace {

Model model_message(WireReader& r, const TensorSource& source) {
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
      case f::doc_string:
        model.doc_string = r.text();
        break;
      case f::opset_import: {
        WireReader child = r.message(ProtoMessage::OperatorSetIdProto, model.opset_imports.size());
        append(r, model.opset_imports, read_opset(child));
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
        model.graph = read_graph(child, source, 1);
        break;
      }
      case f::functions: {
        WireReader child = r.message(ProtoMessage::FunctionProto, model.functions.size());
        append(r, model.functions, read_function(child, source));
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

}  // namespace

Model parse_model(const SharedBytes& bytes, const std::string& folder, const Limits& limits,
                  const FileAccess& access) {
  require(bytes.size() <= limits.model_bytes, Status::Limit, "a model of ", bytes.size(),
          " bytes, more than the limit model_bytes = ", limits.model_bytes,
          raise_hint("model_bytes"));
  require(bytes.size() > 0, Status::InvalidModel, "the model file is empty");
  Budget budget{.limits = limits};
  std::optional<ExternalFiles> external;
  if (!folder.empty()) external.emplace(folder, limits, access);
  WireReader reader(bytes.text(), ProtoMessage::ModelProto, budget);
  Model model = model_message(reader, {bytes.owner(), external ? &*external : nullptr});
  set_versions(model);
  check_and_sort(model);
  return model;
}

Model read_model(const std::string& path, const Limits& limits, const FileAccess& access) {
  const SharedBytes bytes = open_file(path, access);
  require(bytes.size() <= limits.model_bytes, Status::Limit, path, " has ", bytes.size(),
          " bytes, more than the limit model_bytes = ", limits.model_bytes,
          raise_hint("model_bytes"));
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  try {
    return parse_model(bytes, folder, limits, access);
  } catch (const Error& e) {
    throw e.at(path).in_file(path);
  }
}

}  // namespace tiny::onnx

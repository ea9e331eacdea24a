#include "onnx/read/opset_versions.h"

#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace tiny::onnx {

namespace {

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
      throw_error(Status::InvalidModel, describe(node), ": the model imports no operator set \"",
                  node.domain.empty() ? "ai.onnx" : node.domain, "\"");
    for (Attribute& attribute : node.attributes)
      for (Graph& graph : attribute.graphs) set_versions(functions, imports, graph.nodes);
  }
}

}  // namespace

void set_versions(Model& model) {
  std::set<FunctionKey> functions;
  for (const Function& f : model.functions) functions.insert(key_of(f));
  const Imports imports = imports_of(model.opset_imports, model.ir_version);
  set_versions(functions, imports, model.graph.nodes);
  for (Function& f : model.functions)
    set_versions(functions, imports_of(f.opset_imports, model.ir_version), f.nodes);
}

}  // namespace tiny::onnx

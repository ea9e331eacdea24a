#include "onnx/operator.h"

#include <utility>

#include "base/error.h"
#include "onnx/attributes.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"

namespace tiny::onnx {

namespace {

// The operator as a node; its values are named by their places.
Node node_of(const OperatorCall& call) {
  Node node;
  node.op_type = call.op;
  node.domain = call.domain == "ai.onnx" ? "" : call.domain;
  node.version = call.opset != 0 ? call.opset : newest_version(node.domain, node.op_type);
  for (size_t i = 0; i < call.inputs.size(); ++i)
    node.inputs.push_back(call.inputs[i] ? cat("inputs[", i, "]") : std::string());
  for (size_t i = 0; i < call.outputs; ++i) node.outputs.push_back(cat("outputs[", i, "]"));
  if (!call.attributes.empty()) node.attributes = attributes_from_json(call.attributes);
  return node;
}

}  // namespace

Tensors apply_operator(const Ref<Context>& context, const OperatorCall& call) {
  require(call.opset >= 0, Status::InvalidArgument, "opset is ", call.opset);
  const std::string name = call.domain.empty() ? call.op : cat(call.domain, ".", call.op);
  try {
    const Node node = node_of(call);
    std::vector<Value> inputs;
    for (const Tensor& input : call.inputs) inputs.push_back({input, nullptr, nullptr});
    Weights constants;
    tiny::Graph& graph = context->graph();
    const OriginScope scope(graph, graph.origins().of_operator(name));
    return Importer(context, constants).apply(node, std::move(inputs));
  } catch (const FreeDimension& e) {
    throw e.at(name);
  } catch (const Error& e) {
    const bool is_callers = e.status() == Status::InvalidModel;
    throw_error(is_callers ? Status::InvalidArgument : e.status(), name, ": ", e.message());
  }
}

}  // namespace tiny::onnx

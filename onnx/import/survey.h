// What can be told of a model before it is imported: by operators, versions and declared types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/custom_op.h"
#include "onnx/model.h"

namespace tiny::onnx {

// A node that this library cannot import.
struct UnsupportedNode {
  std::string node;  // its name, or that of its first output
  std::string domain;
  std::string op_type;
  int64_t version = 0;
  std::vector<std::string> dtypes;  // of its inputs, "?" where not known
  std::string reason;
};

// What messages call a node: by its name, or that of its first output.
std::string label_of(const Node& node);
// Whether the library has the operator, or the context was given it; why not, if it has not.
bool is_known(const CustomOps& custom_ops, const Node& node);
std::string missing_row(const Node& node);

// What can be told from operators, versions and declared types alone, subgraphs included; a node of
// an operator that the context was given is supported.
std::vector<UnsupportedNode> find_unsupported(const Model& model, const CustomOps& custom_ops);
// Error{Unsupported} that lists all of them.
[[noreturn]] void throw_unsupported(const std::vector<UnsupportedNode>& nodes);

// Inputs of the graph (positions) whose elements decide shapes and so must be known to compile.
std::vector<size_t> host_input_candidates(const Model& model, const std::vector<size_t>& inputs);

}  // namespace tiny::onnx

// An ONNX graph that is being written: nodes, constants and names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/export/recognize.h"
#include "onnx/model.h"
#include "shape/shape.h"

namespace tiny::onnx {

class Emitter {
 public:
  using Names = std::vector<std::string>;

  explicit Emitter(Model& model) : model_(model), graphs_{&model.graph} {}

  // A node in the innermost graph, and the name of its output.
  std::string node(std::string op_type, Names inputs, std::vector<Attribute> attributes = {});
  // The same with several outputs, of any domain.
  Names node(const std::string& domain, std::string op_type, Names inputs,
             std::vector<Attribute> attributes, size_t outputs);
  // A name that no value has.
  std::string fresh(const std::string& stem);

  // Constants: of the whole model, each once.
  std::string memory(HostTensor tensor, const std::string& name = "");
  std::string ints(const Ints& values);            // int64, one axis
  std::string integer(int64_t value);              // int64, no axes
  std::string number(DType dtype, uint64_t bits);  // no axes
  // Sizes: an int64 without axes, and a list of them.
  std::string size(const tiny::Dim& dim);
  std::string sizes(const Shape& shape);

  // A Variable is the size of an axis of an input.
  void set_variable(const UOp& variable, const std::string& input, int64_t axis);

  // What a node of the tensor graph is called.
  bool has(const UOp& node) const { return names_.contains(node.node()); }
  const std::string& name(const UOp& node) const;
  void set_name(const UOp& node, std::string name);

  // Between these two nodes belong to another graph.
  void begin_graph(Graph& graph) { graphs_.push_back(&graph); }
  void end_graph() { graphs_.pop_back(); }

  std::string cast(const std::string& value, DType dtype);
  std::string bit_cast(const std::string& value, DType dtype);
  bool has_bit_casts() const { return has_bit_casts_; }

 private:
  std::string expression(const UOp& node);

  Model& model_;
  std::vector<Graph*> graphs_;
  std::unordered_map<const tiny::Node*, std::pair<UOp, std::string>> names_;  // the nodes live
  std::unordered_map<const tiny::Node*, std::pair<UOp, std::string>> sizes_;
  std::unordered_map<const tiny::Node*, std::pair<std::string, int64_t>> variables_;
  std::map<std::string, int64_t> taken_;
  std::map<Ints, std::string> lists_;
  std::map<std::pair<std::string, uint64_t>, std::string> numbers_;
  bool has_bit_casts_ = false;
};

// "Exp" for Exp; null for what is not one operator of the same meaning.
const char* elementwise_operator(Op op, DType operand);

// The sources of an elementary node that are needed as values, before those that ONNX's broadcast
// makes needless.
std::vector<UOp> operands_of(const UOp& node);
// Writes the node by elementary operators of these values, which have names: those that operands_of
// gives, or of a reshape any of the same elements.  Error{Unsupported} for what none do.
void emit_elementary(Emitter& emitter, const UOp& node, const std::vector<UOp>& operands);

}  // namespace tiny::onnx

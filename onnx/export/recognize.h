// Which of ONNX's larger operators makes a node of the tensor graph.
//
// A rule guesses: it looks where operands and attributes would stand if its operator had made the
// node.  The importer decides: the operator is imported on these operands, and since equal nodes of
// a graph are one node, it is the one that made this node if and only if the result is this node.
// So no rule can be wrong; one that no longer guesses well leaves elementary operators, which a
// test counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onnx/model.h"
#include "tensor/tensor.h"

namespace tiny::onnx {

struct Recognized {
  std::string op_type;
  std::vector<UOp> inputs;  // nodes; one that is left out is none
  std::vector<Attribute> attributes;
  Ints axes;          // not empty: one more input, a list of numbers
  size_t output = 0;  // of the operator: the node
};

// None if only elementary operators do.
std::optional<Recognized> recognize(const Ref<Context>& context, const UOp& node);

// Of a reshape, what operators would have made that it hides: of two reshapes in a row the graph
// keeps the last.
std::vector<UOp> hidden_results(const UOp& node);

Attribute int_attribute(std::string name, int64_t value);
Attribute ints_attribute(std::string name, Ints values);
Attribute real_attribute(std::string name, float value);

}  // namespace tiny::onnx

// Decision trees: every row walks all trees at once, a level at a time, by looking up tables of
// nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace tiny {

// How the feature of a row is compared with the number of a node.
enum class Split : uint8_t { LessEqual, Less, GreaterEqual, Greater, Equal, NotEqual };

// Nodes by their numbers; a leaf is its own successor.  All lists but `roots` are as long.
struct Forest {
  std::vector<int32_t> feature;
  std::vector<double> number;
  std::vector<Split> split;
  std::vector<uint8_t> nan_holds;  // whether a row without a number goes where the comparison holds
  std::vector<int32_t> holds, fails;  // the next node
  std::vector<int32_t> roots;         // of each tree
  // Adds a leaf, or a node whose successors are set later; its number.
  int32_t add();
};

// The leaf of each row of x [rows, features] in each tree, int64 [rows, trees].  Numbers are
// compared in x's dtype.  Error{InvalidArgument} for nodes or features that are not there and for
// nodes that lead back to themselves.
Tensor forest_leaves(const Tensor& x, const Forest& forest);
// values[leaves], of values of all nodes along axis 0.
Tensor of_leaves(const Tensor& values, const Tensor& leaves);

}  // namespace tiny

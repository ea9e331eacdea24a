// What the rules of recognize.cpp share: looking below a node, and the rules themselves.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "onnx/export/recognize.h"
#include "shape/shape.h"

namespace tiny::onnx {

using Guesses = std::vector<Recognized>;

// The node, and what it is a view or a conversion of, outermost first.  Of two reshapes in a row
// the graph keeps the last: one that adds an axis hides what it was added to, which stands behind
// it here.
std::vector<UOp> chain(UOp node);
// What the node is made of by these ops, each of one source.
UOp through(UOp node, std::initializer_list<Op> ops);
// What it repeats: without the axes and the size that broadcasting gives it.
UOp unspread(const UOp& node);
// Nodes below, itself among them, nearest first.
inline constexpr size_t kBelowMax = 24;
std::vector<UOp> below(const UOp& node, size_t most = kBelowMax);
// The nearest one of this op; of a reduction, that folds so.
std::optional<UOp> find_below(const UOp& node, Op op, std::optional<Op> fold = std::nullopt);
// The reduction that ends in the node, behind views and conversions.
std::optional<UOp> reduction(const UOp& node, Op fold);
// The float that every element is.
std::optional<float> real_constant(const UOp& node);
inline int64_t rank_of(const UOp& node) {
  return std::ssize(shape_of(node));
}

// A rule: where operands would stand if its operator had made the node.
using Guess = void (*)(const UOp& node, Guesses& out);
void guess_conv(const UOp& node, Guesses& out);
void guess_gemm(const UOp& node, Guesses& out);
void guess_matmul(const UOp& node, Guesses& out);
void guess_max_pool(const UOp& node, Guesses& out);
void guess_average_pool(const UOp& node, Guesses& out);
void guess_mean(const UOp& node, Guesses& out);
void guess_softmax(const UOp& node, Guesses& out);
void guess_layer_norm(const UOp& node, Guesses& out);
void guess_batch_norm(const UOp& node, Guesses& out);
void guess_lrn(const UOp& node, Guesses& out);
void guess_function(const UOp& node, Guesses& out);
void guess_slope(const UOp& node, Guesses& out);
void guess_hard_sigmoid(const UOp& node, Guesses& out);
void guess_gather(const UOp& node, Guesses& out);
void guess_top_k(const UOp& node, Guesses& out);

}  // namespace tiny::onnx

// Which operators are imported, and how: rows of operator and versions, one table per group.
//
// A row names the operator-set versions whose meaning its function implements; a node of any other
// version is refused by name.  The tables are constexpr data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "onnx/import/call.h"

namespace tiny::onnx {

// The newest version of ai.onnx that the rows were written against (onnx 1.22).
inline constexpr int64_t kNewestOpset = 27;
// The domain of onnxruntime's own operators, whose one version is 1.
inline constexpr const char* kContributed = "com.microsoft";

using ImportFunction = Tensors (*)(Call&);
using UnaryFunction = Tensor (*)(const Tensor&);

// Inputs whose elements decide shapes, as bits.
using HostOperands = uint32_t;
inline constexpr HostOperands kEveryOperand = ~HostOperands{0};
constexpr HostOperands operand(unsigned i) {
  return HostOperands{1} << i;
}

struct Row {
  const char* op_type;
  int64_t first;  // version
  int64_t last;
  ImportFunction import = nullptr;
  HostOperands host_operands = 0;
  UnaryFunction unary = nullptr;  // where there is no `import`: of the one input
  const char* domain = "";
};

// The row for this operator and version; null if there is none.
const Row* find_row(std::string_view domain, std::string_view op_type, int64_t version);
// Whether there is one; both spellings of the standard's domain ("" and "ai.onnx") are its.
bool is_operator(std::string_view domain, std::string_view op_type, int64_t version);
// The newest version of the operator set whose meaning of the operator is known; 0 if none is.
int64_t newest_version(std::string_view domain, std::string_view op_type);
// The versions of an operator that have rows, as text: "1-12, 14-27"; "" if there is none.
std::string supported_versions(std::string_view domain, std::string_view op_type);
// Whether a node of the graph, or of one in it, draws random numbers.
bool draws_numbers(const Graph& graph);
// Every table.
std::span<const std::span<const Row>> tables();

// One per group.
std::span<const Row> elementwise_rows();
std::span<const Row> arithmetic_rows();
std::span<const Row> activation_rows();
std::span<const Row> movement_rows();
std::span<const Row> padding_rows();
std::span<const Row> reduction_rows();
std::span<const Row> contraction_rows();
std::span<const Row> convolution_rows();
std::span<const Row> normalization_rows();
std::span<const Row> indexing_rows();
std::span<const Row> selection_rows();
std::span<const Row> suppression_rows();
std::span<const Row> constant_rows();
std::span<const Row> control_rows();
std::span<const Row> sequence_rows();
std::span<const Row> random_rows();
std::span<const Row> sampling_rows();
std::span<const Row> signal_rows();
std::span<const Row> linear_attention_rows();
std::span<const Row> training_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> scatter_rows();
std::span<const Row> attention_rows();
std::span<const Row> resize_rows();
std::span<const Row> loss_rows();
std::span<const Row> quantization_rows();
std::span<const Row> ml_tree_rows();
std::span<const Row> ml_linear_rows();
std::span<const Row> ml_feature_rows();
std::span<const Row> map_rows();
std::span<const Row> text_rows();
std::span<const Row> text_part_rows();
std::span<const Row> picture_rows();
std::span<const Row> contributed_rows();
std::span<const Row> contributed_attention_rows();
std::span<const Row> contributed_quantized_rows();
std::span<const Row> contributed_layout_rows();
std::span<const Row> contributed_expert_rows();
std::span<const Row> search_rows();

}  // namespace tiny::onnx

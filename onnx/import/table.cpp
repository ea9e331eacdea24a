#include "onnx/import/table.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

namespace tiny::onnx {

std::span<const std::span<const Row>> tables() {
  static const std::array all = {
      elementwise_rows(),
      arithmetic_rows(),
      activation_rows(),
      movement_rows(),
      padding_rows(),
      reduction_rows(),
      contraction_rows(),
      convolution_rows(),
      normalization_rows(),
      indexing_rows(),
      selection_rows(),
      suppression_rows(),
      constant_rows(),
      control_rows(),
      sequence_rows(),
      random_rows(),
      sampling_rows(),
      signal_rows(),
      linear_attention_rows(),
      training_rows(),
      recurrent_rows(),
      scatter_rows(),
      attention_rows(),
      resize_rows(),
      loss_rows(),
      quantization_rows(),
      contributed_rows(),
      ml_tree_rows(),
      ml_linear_rows(),
      ml_feature_rows(),
      map_rows(),
      text_rows(),
      text_part_rows(),
      picture_rows(),
      contributed_attention_rows(),
      contributed_quantized_rows(),
      contributed_layout_rows(),
      contributed_expert_rows(),
      search_rows(),
  };
  return all;
}

namespace {

// Every row, by operator.  Filled on first use; its memory is the library's own, so that nothing is
// left behind when that is unloaded.
struct Index {
  static constexpr size_t kRowsMax = 2048;
  std::array<const Row*, kRowsMax> rows{};
  size_t count = 0;

  Index() {
    for (std::span<const Row> table : tables())
      for (const Row& row : table) {
        invariant(count < kRowsMax, "the index has room for every row");
        rows[count++] = &row;
      }
    std::stable_sort(rows.data(), rows.data() + count, by_name);
  }
  static bool by_name(const Row* a, const Row* b) {
    return std::string_view(a->op_type) < b->op_type;
  }
  // The rows of an operator, in the order of the tables.
  std::span<const Row* const> of(std::string_view op_type) const {
    const Row* const* const last = rows.data() + count;
    const auto begin =
        std::lower_bound(rows.data(), last, op_type,
                         [](const Row* row, std::string_view name) { return row->op_type < name; });
    const auto end =
        std::upper_bound(begin, last, op_type,
                         [](std::string_view name, const Row* row) { return name < row->op_type; });
    return {begin, end};
  }
};
const Index& index() {
  static const Index built;
  return built;
}

}  // namespace

const Row* find_row(std::string_view domain, std::string_view op_type, int64_t version) {
  for (const Row* row : index().of(op_type))
    if (row->domain == domain && row->first <= version && version <= row->last) return row;
  return nullptr;
}

bool is_operator(std::string_view domain, std::string_view op_type, int64_t version) {
  return find_row(domain == "ai.onnx" ? "" : domain, op_type, version) != nullptr;
}

int64_t newest_version(std::string_view domain, std::string_view op_type) {
  int64_t newest = 0;
  for (const Row* row : index().of(op_type))
    if (row->domain == domain) newest = std::max(newest, row->last);
  return newest;
}

std::string supported_versions(std::string_view domain, std::string_view op_type) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const Row* row : index().of(op_type))
    if (row->domain == domain) ranges.emplace_back(row->first, row->last);
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::string> texts;
  for (size_t i = 0; i < ranges.size();) {
    auto [first, last] = ranges[i++];
    for (; i < ranges.size() && ranges[i].first == last + 1; ++i) last = ranges[i].second;
    texts.push_back(cat(first, "-", last));
  }
  return join(texts, ", ");
}

}  // namespace tiny::onnx

#include "onnx/import/table.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "base/text.h"

namespace tiny::onnx {

std::span<const std::span<const Row>> tables() {
  static const std::array all = {
      elementwise_rows(),   arithmetic_rows(), activation_rows(),   movement_rows(),
      padding_rows(),       reduction_rows(),  contraction_rows(),  convolution_rows(),
      normalization_rows(), indexing_rows(),   constant_rows(),     control_rows(),
      sequence_rows(),      sampling_rows(),   signal_rows(),       linear_attention_rows(),
      training_rows(),      recurrent_rows(),  scatter_rows(),      attention_rows(),
      resize_rows(),        loss_rows(),       quantization_rows(),

  };
  return all;
}

namespace {

// Built on first use and never destroyed.
using Index = std::unordered_multimap<std::string_view, const Row*>;
const Index& index() {
  static const Index* built = [] {
    auto out = std::make_unique<Index>();
    for (std::span<const Row> table : tables())
      for (const Row& row : table) out->emplace(row.op_type, &row);
    return out.release();
  }();
  return *built;
}

}  // namespace

const Row* find_row(std::string_view domain, std::string_view op_type, int64_t version) {
  const auto [begin, end] = index().equal_range(op_type);
  for (auto at = begin; at != end; ++at) {
    const Row& row = *at->second;
    if (row.domain == domain && row.first <= version && version <= row.last) return &row;
  }
  return nullptr;
}

std::string supported_versions(std::string_view domain, std::string_view op_type) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  const auto [begin, end] = index().equal_range(op_type);
  for (auto at = begin; at != end; ++at)
    if (at->second->domain == domain) ranges.emplace_back(at->second->first, at->second->last);
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

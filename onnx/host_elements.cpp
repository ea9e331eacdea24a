#include "onnx/host_elements.h"

#include <algorithm>

namespace tiny::onnx {

namespace {

// What has had more values keeps changing: each cost a program.
constexpr size_t kValuesMax = 3;

}  // namespace

void HostElements::learn(const Known& known) {
  for (size_t i = 0; i < known.size() && !is_all_told_; ++i)
    if (known[i] && seen_[i].size() <= kValuesMax) seen_[i].emplace(known[i]->bytes.text());
}

std::optional<HostElements::Known> HostElements::told(const Known& known) const {
  Known out = known;
  bool is_less = false;
  for (const auto& [input, values] : seen_) {
    const bool is_changing = values.size() > kValuesMax && out[input] && !is_all_told_;
    if (is_changing) out[input].reset();
    is_less |= is_changing;
  }
  if (!is_less) return std::nullopt;
  return out;
}

}  // namespace tiny::onnx

#include "variables.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include <c10/util/Exception.h>

namespace tiny_torch {

namespace {

// Sizes that differ from a multiple of a stand-in by at most so much are that multiple and the
// rest: what windows, paddings and slices leave of an axis.
constexpr int64_t kNeighboursMax = 64;
// What is below is a number of channels or taps, perhaps, and no part of a stand-in.
constexpr int64_t kPartsMin = 1024;

thread_local Recording* current = nullptr;

// The value of a dimension's text: "2*s0 + 3", "((s0 + -1) // 2) + 1".
class Reader {
 public:
  Reader(std::string_view text, SizesRef stand_ins) : text_(text), stand_ins_(stand_ins) {}

  int64_t sum() {
    int64_t value = takes("-") ? -product() : product();
    for (;;) {
      if (takes(" + ")) {
        value += product();
      } else if (takes(" - ")) {
        value -= product();
      } else if (takes(" // ")) {
        value = floor_div(value, product());
      } else if (takes(" % ")) {
        const int64_t divisor = product();
        value -= floor_div(value, divisor) * divisor;
      } else if (takes(" min ")) {
        value = std::min(value, product());
      } else if (takes(" max ")) {
        value = std::max(value, product());
      } else {
        return value;
      }
    }
  }
  bool is_at_end() const { return text_.empty(); }

 private:
  static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }

  bool takes(std::string_view expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }
  int64_t product() {
    int64_t value = factor();
    while (takes("*")) value *= factor();
    return value;
  }
  int64_t number() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    TORCH_CHECK(error == std::errc(), "tiny: no dimension is \"", text_, "\"");
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }
  int64_t factor() {
    if (takes("(")) {
      const int64_t value = sum();
      TORCH_CHECK(takes(")"), "tiny: no dimension ends with \"", text_, "\"");
      return value;
    }
    if (!takes("s")) return number();
    const auto index = static_cast<size_t>(number());
    TORCH_CHECK(index < stand_ins_.size(), "tiny: no variable of this program is s", index);
    return stand_ins_[index];
  }

  std::string_view text_;
  SizesRef stand_ins_;
};

using Calculation = tiny_status (*)(tiny_context*, int64_t, int64_t, int64_t*);
int64_t calculate(Calculation calculation, int64_t a, int64_t b) {
  int64_t made = 0;
  check(calculation(context(), a, b, &made));
  return made;
}

}  // namespace

Recording* recording() {
  return current;
}

Recording::Recording(SizesRef least, SizesRef greatest) : least_(least.begin(), least.end()) {
  for (size_t i = 0; i < least.size(); ++i) {
    tiny_variable* variable = nullptr;
    const std::string name = "s" + std::to_string(i);
    check(tiny_variable_create(context(), name.c_str(), least[i], greatest[i], &variable));
    variables_.push_back(variable);
    int64_t& dimension = dimensions_.emplace_back();
    check(tiny_variable_dim(variable, &dimension));
  }
}

Recording::~Recording() {
  if (current == this) end();
  for (tiny_variable* const variable : variables_) tiny_variable_release(variable);
}

void Recording::begin(SizesRef stand_ins, SizesRef sizes, SizesRef dimensions) {
  TORCH_CHECK(stand_ins.size() == variables_.size(), "tiny: a stand-in for each variable");
  stand_ins_.assign(stand_ins.begin(), stand_ins.end());
  is_first_ = answers_.empty();
  asked_ = 0;
  dimension_of_.clear();
  size_of_.clear();
  for (size_t i = 0; i < stand_ins_.size(); ++i) know(stand_ins_[i], dimensions_[i]);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (dimensions[i] < TINY_DIM_FREE) know(sizes[i], dimensions[i]);
  current = this;
}

void Recording::end() {
  current = nullptr;
}

// Powers of variables times a number, or the number itself.
int64_t Recording::product(int64_t size) {
  int64_t rest = size;
  int64_t made = 1;
  for (size_t i = 0; i < stand_ins_.size(); ++i)
    for (; rest % stand_ins_[i] == 0; rest /= stand_ins_[i])
      made = calculate(tiny_dim_mul, made, dimensions_[i]);
  return calculate(tiny_dim_mul, made, rest);
}

// A product of sizes that are known and a number; the size itself if there is none of the former.
int64_t Recording::product_of_known(int64_t size) {
  int64_t rest = size;
  int64_t made = 1;
  for (auto it = dimension_of_.rbegin(); it != dimension_of_.rend() && it->first >= kPartsMin; ++it)
    for (; rest % it->first == 0; rest /= it->first)
      made = calculate(tiny_dim_mul, made, it->second);
  const bool is_all = rest < *std::min_element(stand_ins_.begin(), stand_ins_.end());
  return rest < size && is_all ? calculate(tiny_dim_mul, made, rest) : size;
}

int64_t Recording::found(int64_t size) {
  const auto known = dimension_of_.find(size);
  if (known != dimension_of_.end()) return known->second;
  int64_t made = size < kPartsMin ? size : product_of_known(size);
  for (size_t i = 0; i < stand_ins_.size() && made == size; ++i) {
    const int64_t over = (size + kNeighboursMax) % stand_ins_[i] - kNeighboursMax;
    if (size + kNeighboursMax < stand_ins_[i] || over > kNeighboursMax) continue;
    made = calculate(tiny_dim_add, product(size - over), over);
  }
  if (made != size) know(size, made);
  return made;
}

int64_t Recording::dimension(int64_t size) {
  if (variables_.empty()) return size;
  const size_t index = asked_++;
  if (is_first_) return answers_.emplace_back(found(size));
  const bool is_same = index < answers_.size() && this->size(answers_[index]) == size;
  return is_same ? answers_[index] : found(size);
}

void Recording::know(int64_t size, int64_t dimension) {
  dimension_of_.emplace(size, dimension);
  size_of_.emplace(dimension, size);
}

int64_t Recording::size(int64_t dimension) {
  if (dimension >= TINY_DIM_FREE) return dimension;
  const auto found = size_of_.find(dimension);
  if (found != size_of_.end()) return found->second;
  tiny_report* report = nullptr;
  check(tiny_dim_text(context(), dimension, &report));
  const std::string text = tiny_report_text(report);
  tiny_report_release(report);
  Reader reader(text, stand_ins_);
  const int64_t made = reader.sum();
  TORCH_CHECK(reader.is_at_end(), "tiny: no size of PyTorch is ", text);
  know(made, dimension);
  return made;
}

Value Recording::input(size_t index, tiny_dtype dtype, SizesRef sizes) {
  Value& input = inputs_[index];
  Sizes dims;
  for (const int64_t size : sizes) dims.push_back(dimension(size));
  if (!input) {
    tiny_tensor* made = nullptr;
    check(tiny_input(context(), dtype, dims.data(), dims.size(), &made));
    input = Value(made);
  }
  return input;
}

Value Recording::elements(tiny_dtype dtype, SizesRef sizes, const void* data, size_t bytes) {
  Value& value = elements_[{dtype, Sizes(sizes.begin(), sizes.end()),
                            std::string(static_cast<const char*>(data), bytes)}];
  if (!value) {
    tiny_tensor* made = nullptr;
    check(tiny_tensor_from_data(context(), dtype, sizes.data(), sizes.size(), data, bytes, &made));
    value = Value(made);
  }
  return value;
}

}  // namespace tiny_torch

#include "schedule/rewrite/product_axes.h"

#include <algorithm>

#include "shape/movement_axis.h"

namespace tiny {

ProductAxes::ProductAxes(const UOp& reduce)
    : shape_(shape_of(reduce.src(0))), is_reduced_(shape_.size()) {
  for (const int64_t axis : reduce.reduce_arg().axes) is_reduced_[static_cast<size_t>(axis)] = true;
}

std::optional<int64_t> ProductAxes::steps() const {
  int64_t steps = 1;
  for (size_t i = 0; i < shape_.size(); ++i) {
    if (!is_reduced_[i]) continue;
    if (!shape_[i].is_const() || __builtin_mul_overflow(steps, shape_[i].value(), &steps))
      return std::nullopt;
  }
  return steps;
}

bool ProductAxes::is_same_at_steps(const UOp& value) const {
  for (size_t i = 0; i < shape_.size(); ++i)
    if (is_reduced_[i] && !is_same_along(value, i)) return false;
  return true;
}

UOp ProductAxes::at_sum(const UOp& value) const {
  return first_along(value, is_reduced_);
}

}  // namespace tiny

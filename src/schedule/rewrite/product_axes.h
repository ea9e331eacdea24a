// The axes of a sum of products, and what is the same for all of the sum's steps: shifts and scales
// that may leave it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

class ProductAxes {
 public:
  explicit ProductAxes(const UOp& reduce);

  // Of the product.
  const Shape& shape() const { return shape_; }
  bool is_reduced(size_t axis) const { return is_reduced_[axis]; }

  // The number of the sum's steps; none if it is not a constant or leaves 63 bits.
  std::optional<int64_t> steps() const;

  // Whether a value of the product's shape is the same for all steps.
  bool is_same_at_steps(const UOp& value) const;

  // Such a value in the sum's shape.
  UOp at_sum(const UOp& value) const;

 private:
  Shape shape_;
  std::vector<bool> is_reduced_;
};

}  // namespace tiny

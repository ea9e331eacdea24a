// What a loss changes by, for each element of a value: the value's adjoint, while it goes down the
// graph.
//
// An adjoint is kept as a sum of products: movement and multiplication go on in its factors, and
// the sums that an expansion calls for wait at the front.  So the adjoint of a convolution's input
// is one sum over channels and taps of two factors, a convolution itself, and not a sum per step.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

class Adjoint {
 public:
  Adjoint() = default;  // nothing reached the value
  explicit Adjoint(UOp value) : factors_{std::move(value)} {}

  explicit operator bool() const { return !factors_.empty(); }
  // The axes of the value, without those that wait to be summed.
  Shape shape() const;
  DType dtype() const { return factors_.front().dtype(); }
  // The value: all factors multiplied and summed.
  UOp total() const;

  // The adjoint of what was multiplied by `factor`, or has it as its slope; of the same shape.
  Adjoint times(const UOp& factor) const;
  // Nothing but where `chosen`, a bool of the same shape, holds: exactly 0 there, whatever it will
  // be multiplied by.
  Adjoint where(const UOp& chosen) const;
  Adjoint as(DType dtype) const;

  // Of one step of many, as a product: its factors, once along axes along which they repeat; and
  // the adjoint that the sum over all steps is, from these of all, [steps, ..].
  bool is_product() const { return chosen_.empty(); }
  std::vector<UOp> distinct_factors() const;
  Adjoint over_steps(std::span<const UOp> factors) const;

  // Movement of the value.
  Adjoint reshaped(const Shape& shape) const;
  Adjoint permuted(const Ints& axes) const;
  Adjoint flipped(const Ints& axes) const;
  Adjoint shrunk(const Shape& begin, const Shape& end) const;
  Adjoint padded(const Shape& before, const Shape& after) const;
  Adjoint expanded(const Shape& shape) const;
  // Summed along the axes, which stay with size 1.
  Adjoint summed(const Ints& axes) const;
  // Of axes of these sizes that were unfolded: the windows that an element is in are summed.
  // `padding`: how many of the first elements of each axis nobody will ask for.
  Adjoint folded(const Unfolding& windows, const Shape& sizes, const Ints& padding) const;
  // [elements, taps, ..] of what windows were skewed to (skew.h), with those that reach beyond.
  Adjoint unskewed(size_t axis, int64_t dilation) const;

 private:
  template <typename F>
  Adjoint each(F move) const;
  size_t at(size_t axis) const { return sums_ + axis; }
  bool repeats_along(size_t axis) const;
  Shape with_sums(const Shape& shape) const;    // behind the sizes of what is summed
  Shape behind_sums(const Shape& shape) const;  // behind zeros
  Adjoint with_spread_taps(size_t axis, const Unfolding::Along& w) const;
  Adjoint with_phases(size_t axis, const Unfolding::Along& w, int64_t first) const;
  Adjoint skewed(size_t axis, int64_t dilation) const;
  Adjoint with_taps_summed(size_t axis, int64_t dilation) const;
  Adjoint cut_to(const Shape& shape) const;

  std::vector<UOp> factors_;  // of one shape
  std::vector<UOp> chosen_;   // bools of the same shape: it is 0 but where all hold
  size_t sums_ = 0;           // the first axes, which are summed in the end
};

}  // namespace tiny

// Windows as what each element gets from them, tap by tap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

// Windows o of `kernel` taps k along an axis: element (j, k) of the result is what (o, k) has for
// o = j - k * dilation, where there is such a window, and zero where not.
class Skew {
 public:
  Skew(size_t axis, Dim count, int64_t kernel, int64_t dilation);

  // `ends` of a factor that is to be zero where there is no window, even if it is one value.
  // Another one may have anything there.
  UOp operator()(const UOp& factor, bool ends) const;

 private:
  UOp of_sources(const UOp& factor) const;
  Unfolding::Along along() const { return {size_, kernel_, 1, dilation_}; }

  size_t axis_;
  int64_t kernel_;
  int64_t dilation_;
  Dim reach_;
  Dim size_;
};

// What a node is the skew of, with as many elements before and after as windows reach beyond.
struct SkewedRows {
  UOp padded;
  size_t axis = 0;
  int64_t dilation = 1;
};
// If it is that of a factor that differs along windows and along their taps.  The node has an axis
// of size 1 behind that of the taps.
std::optional<SkewedRows> skewed_rows_of(const UOp& node);

}  // namespace tiny

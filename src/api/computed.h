// The elements of a tensor that are in memory, for as long as this lives; no lock is taken.
#pragma once

#include <cstddef>
#include <span>

#include "api/handle.h"
#include "engine/cell.h"
#include "shape/copy_elements.h"

namespace tiny {

class Computed {
 public:
  explicit Computed(const tiny_tensor& tensor) : reading_(*tensor.value.cell()) {
    if (tensor.is_fixed && !tensor.is_number && tensor.numel > 0 && reading_.data())
      data_ = reading_.data() + tensor.offset * tensor.dtype.bytes();
  }
  // Element (0, 0, ..), or null.
  const std::byte* data() const { return data_; }

 private:
  Cell::Reading reading_;
  const std::byte* data_ = nullptr;
};

inline std::span<const int64_t> dims_of(const tiny_tensor& tensor) {
  return {tensor.dims, tensor.rank};
}
inline std::span<const int64_t> strides_of(const tiny_tensor& tensor) {
  return {tensor.strides, tensor.rank};
}

}  // namespace tiny

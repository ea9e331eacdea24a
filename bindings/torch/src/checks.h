// What PyTorch refuses, or warns of, before something is written.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

namespace tiny_torch {

// Writes to a tensor whose places share elements, by operators that do not refuse them.
inline void warn_of_repeats(const at::Tensor& self, const char* what) {
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of ", what,
        " on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[indices] = tensor");
  }
}

// A result that the caller brought has the dtype that the operator gives, not one to convert to.
inline void check_dtype_of_out(const at::Tensor& out, at::ScalarType wanted) {
  TORCH_CHECK(!out.defined() || out.scalar_type() == wanted, "Expected out tensor to have dtype ",
              c10::scalarTypeToTypeMeta(wanted), ", but got ", out.dtype(), " instead");
}

// -1: the current one.
inline void check_index(c10::DeviceIndex index) {
  TORCH_CHECK(index == 0 || index == -1,
              "tiny: there is one device, tiny:0; got tiny:", int{index});
}

}  // namespace tiny_torch

// What PyTorch refuses, or warns of, before something is written.
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

namespace tiny_torch {

// Writes to a tensor whose places share elements, by operators that do not refuse them.
inline void warn_of_repeats(const at::Tensor& self, const char* what) {
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes)
    TORCH_WARN(
        "Use of ", what,
        " on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[indices] = tensor");
}

}  // namespace tiny_torch

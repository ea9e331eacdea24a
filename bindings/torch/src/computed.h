// What is known of a tensor without computing anything.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "value.h"

namespace tiny_torch {

// Whether nothing was written to the tensor's storage since it was computed or copied from the
// host.
bool is_computed(const at::Tensor& tensor);
// At most so many elements are looked at before an operator uses them, if they are computed
// already.
constexpr int64_t kCheckedElementsMax = 4096;
// The first index below `least` or not below `size`, of indices that may be looked at; `ignored` is
// none.
std::optional<int64_t> index_beyond(const at::Tensor& index, int64_t least, int64_t size,
                                    std::optional<int64_t> ignored = std::nullopt);
// Whether elements that may be looked at are all within these bounds.
bool may_be_within(const at::Tensor& tensor, double least, double greatest);
// `tensor` becomes elements of the host: there is nothing to compute.
void write_elements(const at::Tensor& tensor, const Value& value);

}  // namespace tiny_torch

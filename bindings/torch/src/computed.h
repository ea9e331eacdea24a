// What is known of a tensor without computing anything.
#pragma once

#include <ATen/core/Tensor.h>

#include "value.h"

namespace tiny_torch {

// Whether nothing was written to the tensor's storage since it was computed or copied from the
// host.
bool is_computed(const at::Tensor& tensor);
// `tensor` becomes elements of the host: there is nothing to compute.
void write_elements(const at::Tensor& tensor, const Value& value);

}  // namespace tiny_torch

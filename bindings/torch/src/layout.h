// Sizes, strides and offset of a tensor of PyTorch, and how the engine sees such a view of a flat
// value: by movement wherever strides nest, so that what is computed of it fuses; otherwise
// as_strided.
#pragma once

#include <ATen/core/Tensor.h>

#include "value.h"

namespace tiny_torch {

struct Layout {
  Sizes sizes, strides;
  int64_t offset = 0;
};

Layout layout_of(const at::Tensor& tensor);
Value view_of(const Value& flat, const Layout& layout);
// Whether the engine's movement makes it of `count` elements; else view_of takes as_strided.
bool is_movement(const Layout& layout, int64_t count);

// The flat value with `value`, which broadcasts, at the layout's places, of which none is another:
// what view_of that layout is `value` of.  An error that says so where strides do not nest.
Value written(const Value& flat, const Layout& layout, const Value& value);

// The layout with size 1 where a stride is 0: each element once, if only expanded axes repeat it.
Layout without_repeats(const Layout& layout);
// Of a value with the layout's sizes the elements that are written last, with the sizes of
// without_repeats.
Value last_of_repeats(const Value& value, const Layout& layout);
// Whether two places may be one element: strides that do not nest.
bool may_overlap(const Layout& layout);

}  // namespace tiny_torch

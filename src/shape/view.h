// Aliases of memory, and movement as arithmetic on indices.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shape/shape.h"

namespace tiny {

// Element (i0, i1, ..) is at offset + i0*strides[0] + .. of a buffer.  Strides have any sign, 0
// repeats.  No mask: what pads is no view.
struct View {
  Shape shape;
  Shape strides;
  Dim offset = 0;
  bool operator==(const View&) const = default;
};

View row_major(const Shape& shape);
bool is_row_major(const View& view);  // gaps and repeats forbidden; axes of size 1 do not matter

// Whether every axis steps over all that the axes of smaller strides reach: then no two elements
// are one.  Numbers only.
bool is_nested(const View& view);

// The view after one movement op with these parameters; none if it is no view (a pad; a reshape
// that would need a copy).
std::optional<View> move_view(const View& view, Op op, const Shape& parameters);

// What holds memory below a chain of movement ops, and the view that the chain makes of it: a
// Buffer, a version of one (After), or a node that `stored` (by id; may be empty) says has a buffer
// of its own: row-major, unless `layouts` says otherwise; not one of `except`, whatever it says.
// None if another op intervenes or the chain is no view: `lowest`, if given, is the node of the
// chain then from which on up to `node` none has a view.
struct StoredView {
  UOp base;
  View view;
  std::vector<UOp> before = {};  // what is stored before it is read: the sources of Aliases
};
using Layouts = std::unordered_map<const Node*, View>;
using BufferSizes = std::unordered_map<const Node*, Dim>;  // in elements
std::optional<StoredView> as_view(const UOp& node, const std::vector<uint8_t>& stored = {},
                                  const Layouts& layouts = {},
                                  std::span<const Node* const> except = {},
                                  const UOp** lowest = nullptr);

// Appends what an Alias among the movement says is stored before its value is read.
void append_read_before(const UOp& node, std::vector<UOp>& before);

// The lowest and highest element that the view touches; an empty view touches none (1 > 0 range:
// first > last).  Numbers only.
std::pair<int64_t, int64_t> extent(const View& view);

// The index into the source of a movement node, given the index into its result; conditions (bools)
// that must hold for the element to come from the source at all are appended.
std::vector<UOp> apply_movement_op(const UOp& node, const std::vector<UOp>& index,
                                   std::vector<UOp>& conditions);

}  // namespace tiny

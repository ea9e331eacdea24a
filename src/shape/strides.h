// Views taken apart: the memory that one needs, and the movement that makes it of a row of
// elements.
#pragma once

#include <cstdint>
#include <vector>

#include "shape/view.h"

namespace tiny {

// Where a view has elements along every axis; elsewhere they are zero.  Without bounds: everywhere.
struct Mask {
  Shape begin, end;
};

// The view of what is inside.  Error{Shape} unless 0 <= begin <= end <= size along each axis.
View inside_mask(const View& view, const Mask& mask);

// One more than the last element that the view reaches, 0 if it has none.  Error{Shape} if it
// reaches below 0.
Dim buffer_size(const View& view);

// The elements that the view reaches, each axis forwards, without axes that stay where they are;
// without elements [0].
View real_view(const View& view);

// Whether it shows that no element is one of both views: their extents are apart, or the remainders
// of their elements by some step are, as those of even and odd elements or of columns.  Numbers
// only.
bool are_apart(const View& a, const View& b);

// In the order of tiny_movement.
enum class Movement : uint8_t { Reshape, Permute, Expand, Pad, Shrink, Flip, Stride, AsStrided };
struct MovementStep {
  Movement movement;
  Shape numbers;  // as tiny.h says for each
};
// What makes the view of a row of elements, at least buffer_size of them: a view of that row, but
// for the Pad that a mask ends in.  Where the strides are not those of a whole array, as far as is
// known of Variables, that is one AsStrided.
std::vector<MovementStep> to_movement_steps(const View& view, const Mask& mask = {});

}  // namespace tiny

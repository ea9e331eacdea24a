// Pictures sampled at computed places.
#pragma once

#include "tensor/resize.h"

namespace tiny {

// What a place outside of the picture has.
enum class GridPadding : uint8_t {
  Zeros,
  Border,      // the element at the border
  Reflection,  // what stands where a mirror at the border shows it
};

struct GridSampleOptions {
  Interpolation mode = Interpolation::Linear;
  GridPadding padding = GridPadding::Zeros;
  // -1 and 1 are the centres of the outermost elements; otherwise their outer edges.
  bool align_corners = false;
};

// [batch, channels, out..] of x [batch, channels, spatial..]: a grid [batch, out.., axes] has for
// each point its place on every spatial axis, -1 to 1, the last axis first.  Nearest rounds half to
// even; Cubic is Keys' kernel with a = -0.75.  A place that is no number samples any element.
// Sizes are numbers.
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {});

// The grid [batch, spatial.., axes] that moves every point of a picture by theta [batch, axes, axes
// + 1]; two or three spatial axes.
Tensor affine_grid(const Tensor& theta, const Shape& spatial, bool align_corners = false);

}  // namespace tiny

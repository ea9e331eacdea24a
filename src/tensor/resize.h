// Pictures, or any axes, of another size: each axis by itself, each element of the result a
// weighted sum of elements of the input, whose places and weights are chosen while the graph is
// built, or computed with the elements where the sizes of the axis are no numbers.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace tiny {

enum class Interpolation : uint8_t { Nearest, Linear, Cubic };

// Where element i of a resized axis lies among the n elements of the input's, whose number grows by
// `scale`; n * scale is called m, and need not be whole.
enum class Coordinates : uint8_t {
  HalfPixel,           // (i + 0.5) / scale - 0.5: pixels are areas, whose outer edges coincide
  HalfPixelSymmetric,  // the same, moved so that the middles coincide where m is not whole
  PytorchHalfPixel,    // the same as HalfPixel; -0.5 for a single element
  HalfPixelNearest,    // (i + 0.5) / scale, whose element below is the nearest
  AlignCorners,        // i * (n - 1) / (m - 1): the centres of the outermost elements coincide
  Asymmetric,          // i / scale
  CropAndResize,       // as AlignCorners, but with the ends of the region of interest
};

// Which element is the nearest to a place between two.
enum class NearestMode : uint8_t { RoundPreferFloor, RoundPreferCeil, Floor, Ceil };

// What becomes of the proportions where sizes are given.
enum class AspectRatio : uint8_t {
  Stretch,     // nothing: the sizes are as given
  NotLarger,   // all axes grow by the least of their scales, rounded to the nearest size
  NotSmaller,  // by the greatest
};

struct ResizeOptions {
  Interpolation mode = Interpolation::Nearest;
  Coordinates coordinates = Coordinates::HalfPixel;
  NearestMode nearest_mode = NearestMode::RoundPreferFloor;
  double cubic_coefficient = -0.75;  // a of Keys' kernel
  // An axis that shrinks is smoothed: the kernel is as much wider.  Not for Nearest.
  bool antialias = false;
  // Elements beyond the ends weigh nothing, and the others sum up to 1; else the outermost stand
  // for them.
  bool exclude_outside = false;
  double extrapolation_value = 0;                   // of CropAndResize, outside of the input
  AspectRatio aspect_ratio = AspectRatio::Stretch;  // where sizes are given
  // The scale of axes whose sizes a run finds, float64 []; none: the quotient of the sizes.
  Tensor found_scale = {};
  // Of CropAndResize: the beginnings of all axes, then the ends, as shares of n - 1; none: 0 to 1.
  std::vector<double> region = {};
  // The same where a run finds it: numbers [2 * axes], of any float dtype.
  Tensor found_region = {};
};

// x with these axes of the given sizes.  The dtype stays; what is weighted is computed in float32
// at least and rounded once.
Tensor resize(const Tensor& x, const Ints& axes, const Shape& sizes,
              const ResizeOptions& options = {});
// The scale of these axes where they keep their proportions and a run finds sizes, float64 [1].
Tensor found_aspect_scale(const Tensor& x, const Ints& axes, const Shape& sizes, AspectRatio kind);
// x with axis axes[i] of floor(size * scales[i]) elements.
Tensor resize_by(const Tensor& x, const Ints& axes, const std::vector<double>& scales,
                 const ResizeOptions& options = {});

// One axis of floor(size * scale) elements, scale >= 1: what resize_by makes with Linear and
// Asymmetric, as a mean of two elements that are chosen apart, in x's own dtype.
Tensor stretch_linear(const Tensor& x, int64_t axis, double scale);

}  // namespace tiny

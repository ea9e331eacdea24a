// Regions of pictures [batch, channels, height, width], and elements of them at computed places.
// Sizes of pictures are numbers.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

struct RoiAlignOptions {
  Ints size = {1, 1};    // of the result's pictures
  int64_t sampling = 0;  // places along each axis of one element of the result; 0: `places`
  // Of a mean whose regions say how many places there are, about one for each pixel: as many as
  // are looked at along y and x, at least those of roi_places.
  Shape places = {};
  double spatial_scale = 1;  // of the regions' coordinates
  bool half_pixel = true;    // pixels are areas: a coordinate less 0.5 is that of the centres
  bool is_max = false;       // of the four weighted neighbours of all places; otherwise their mean
};
// How many places at the most an element of the result has in the picture along y and x, int64; and
// how many any regions could have.
struct RoiPlaces {
  Tensor y, x;
  Dim most_y, most_x;
};
RoiPlaces roi_places(const Tensor& x, const Tensor& regions, const RoiAlignOptions& options);

// [regions, channels, size..]: the mean around places of regions [regions, 4], each x1, y1, x2, y2
// of picture batch[region].
Tensor roi_align(const Tensor& x, const Tensor& regions, const Tensor& batch,
                 const RoiAlignOptions& options);

// [regions, channels, size..]: the greatest element of each part of a region [regions, 5], whose
// numbers are the picture's, x1, y1, x2, y2, rounded to pixels; 0 for a part without any.
Tensor max_roi_pool(const Tensor& x, const Tensor& regions, const Ints& size, double spatial_scale);

// [regions, channels, size..]: regions [regions, 4], y1, x1, y2, x2 from 0 to 1, of picture
// batch[region], resized so that the outermost centres stay; outside of the picture `outside`.
Tensor crop_and_resize(const Tensor& x, const Tensor& regions, const Tensor& batch,
                       const Ints& size, bool is_nearest, double outside);

struct DeformConvOptions {
  Ints strides = {1, 1};
  Ints dilations = {1, 1};
  Ints before = {0, 0}, after = {0, 0};
  int64_t groups = 1;
  int64_t offset_groups = 1;  // of channels that share their offsets
};
// A convolution whose taps are moved by offset [batch, offset_groups * taps * 2 (y, x), out..] and
// weighted by mask [batch, offset_groups * taps, out..] (may be none); bias may be none.
Tensor deform_conv(const Tensor& x, const Tensor& weight, const Tensor& offset, const Tensor& bias,
                   const Tensor& mask, const DeformConvOptions& options);

}  // namespace tiny

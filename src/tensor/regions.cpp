#include "tensor/regions.h"

#include <limits>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

constexpr int64_t kSizeMax = 65536;

// Pictures as rows of channels, one for each pixel.
struct Pixels {
  Tensor rows;  // [batch * height * width, channels]
  Dim height, width;
};

// A size as numbers like these.
Tensor size_like(const Tensor& like, const Dim& size) {
  if (size.is_const()) return number(like, static_cast<double>(size.value()));
  return cast(size_tensor(like.context_ref(), size), like.dtype());
}

Pixels pixels_of(const Tensor& x, const char* what) {
  require(x.rank() == 4, Status::Shape, what, " of shape ", x.shape(),
          "; it takes [batch, channels, height, width]");
  const Dim height = x.shape()[2], width = x.shape()[3];
  require(!height.is(0) && !width.is(0), Status::Shape, what, " of pictures without pixels");
  return {reshape(permute(x, {0, 2, 3, 1}), {-1, x.shape()[1]}), height, width};
}

// What a number of a picture takes that is put beside its pixel's others, of what one takes that is
// looked up alone: a load, a store and a turn in registers for many, a load and its place for each.
constexpr double kCopiedNumber = 0.25;

// The pixels so that `lookups` of them find their channels fastest: side by side, if that many are
// worth the copy.
Pixels for_lookups(Pixels pixels, double lookups) {
  const Shape& shape = pixels.rows.shape();
  if (lookups > kCopiedNumber * static_cast<double>(upper_bound(shape[0])))
    pixels.rows = contiguous(pixels.rows);
  return pixels;
}

void check_size(const Ints& size, const char* what) {
  require(
      size.size() == 2 && size[0] > 0 && size[1] > 0 && size[0] <= kSizeMax && size[1] <= kSizeMax,
      Status::InvalidArgument, what, ": a size of ", list_text(size),
      "; wanted two numbers from 1 to ", kSizeMax);
}

// Places along an axis of n pixels: whether they are inside, and those nearest to them that are.
Tensor is_inside(const Tensor& at, const Dim& n) {
  return bit_and(greater_equal(at, number(at, 0)), less_equal(at, size_like(at, n - 1)));
}
Tensor nearest_inside(const Tensor& at, const Dim& n) {
  return minimum(maximum(at, number(at, 0)), size_like(at, n - 1));
}

// The pixels of picture `batch` at whole-numbered places, [.., channels].
Tensor pixel(const Pixels& p, const Tensor& batch, const Tensor& y, const Tensor& x) {
  const Tensor first = batch * size_tensor(batch.context_ref(), p.height * p.width);
  const Tensor across = size_tensor(batch.context_ref(), p.width);
  const auto place = [](const Tensor& at, const Dim& n) {
    return cast(nearest_inside(at, n), kInt64);
  };
  const Tensor at = first + place(y, p.height) * across + place(x, p.width);
  return gather(p.rows, at, 0);
}

// One of the two neighbours of a place along one axis.
struct Neighbour {
  Tensor at;      // as a float
  Tensor weight;  // 0 where there is none
};
using Neighbours = std::vector<Neighbour>;

// Both; what lies outside of the picture weighs nothing.
Neighbours neighbours_inside(const Tensor& place, const Dim& n) {
  const Tensor low = floor(place);
  const Tensor high = low + number(place, 1);
  const Tensor share = place - low;
  const auto inside = [&](const Tensor& at, const Tensor& weight) {
    return where(is_inside(at, n), weight, number(weight, 0));
  };
  return {{low, inside(low, number(place, 1) - share)}, {high, inside(high, share)}};
}

// Both; a place less than a pixel outside has the outermost, one further outside none.
Neighbours neighbours_at_border(const Tensor& place, const Dim& n) {
  const auto value = [&](double v) { return number(place, v); };
  const Tensor is_near =
      bit_and(greater_equal(place, value(-1)), less_equal(place, size_like(place, n)));
  const Tensor clamped = nearest_inside(place, n);
  const Tensor low = floor(clamped);
  const Tensor share = clamped - low;
  return {{low, where(is_near, value(1) - share, value(0))},
          {low + value(1), where(is_near, share, value(0))}};
}

// The four neighbours, weighted: [.., channels] each.
std::vector<Tensor> weighted(const Pixels& p, const Tensor& batch, const Neighbours& ys,
                             const Neighbours& xs) {
  std::vector<Tensor> out;
  for (const Neighbour& y : ys)
    for (const Neighbour& x : xs) {
      const Tensor weight = y.weight * x.weight;
      out.push_back(pixel(p, batch, y.at, x.at) * unsqueeze(weight, {weight.rank()}));
    }
  return out;
}

Tensor column(const Tensor& regions, int64_t i) {
  return squeeze(slice_axis(regions, 1, i, i + 1), {1});
}

}  // namespace

namespace {

// Where regions begin along one axis and how long they are, in pixels: [regions].
struct Extent {
  Tensor begin, length;
};
Extent extent_of(const Tensor& regions, int64_t first, const RoiAlignOptions& o) {
  const Tensor scale = number(regions, o.spatial_scale);
  const Tensor shift = number(regions, o.half_pixel ? 0.5 : 0);
  const Tensor begin = column(regions, first) * scale - shift;
  Tensor length = column(regions, first + 2) * scale - shift - begin;
  if (!o.half_pixel) length = maximum(length, number(length, 1));
  return {begin, length};
}

// Places of the elements along one axis, [regions, size * places], and what share each has, if not
// all the same.
struct AxisPlaces {
  Tensor at, share;
};

AxisPlaces given_places(const Extent& of, int64_t size, int64_t places) {
  const int64_t steps = checked_mul(size, places, "the places of a region");
  const Tensor& begin = of.begin;
  const Tensor step =
      positions(begin.context_ref(), begin.dtype(), steps, 1, 2) + number(begin, 0.5);
  return {unsqueeze(begin, {1}) +
              step * unsqueeze(of.length / number(begin, static_cast<double>(steps)), {1}),
          {}};
}

// Neighbouring places are more than half a pixel apart.
Dim most_places(const Dim& pixels) {
  constexpr int64_t kOutside = 4;  // at both ends, and those that rounding adds
  return (pixels + kOutside) * 2;
}

// Elements with as many places as they have pixels, rounded up: those in the picture, or less than
// a pixel outside, are from `low` on.
struct PixelPlaces {
  Tensor begin, low;  // [regions, size]
  Tensor step, grid;  // [regions, 1]
  Tensor most;        // of all elements
};
PixelPlaces pixel_places(const Extent& of, int64_t size, const Dim& pixels) {
  const Tensor zero = number(of.begin, 0), one = number(of.begin, 1), half = number(of.begin, 0.5);
  const Tensor bin = unsqueeze(of.length / number(of.begin, static_cast<double>(size)), {1});
  PixelPlaces out;
  out.grid = maximum(ceil(bin), zero);
  out.step = where(less(zero, out.grid), bin / maximum(out.grid, one), one);
  const Tensor part = positions(bin.context_ref(), bin.dtype(), size, 1, 2);
  out.begin = unsqueeze(of.begin, {1}) + part * bin;
  const auto index_of = [&](const Tensor& place) { return (place - out.begin) / out.step - half; };
  out.low = maximum(floor(index_of(number(bin, -1))), zero);
  const Tensor high = minimum(ceil(index_of(size_like(bin, pixels))), out.grid - one);
  const Tensor count = max(high - out.low + one, {0, 1});
  // Also of what is no number there is a place.
  out.most = cast(
      where(less(one, count), minimum(count, size_like(count, most_places(pixels))), one), kInt64);
  return out;
}

AxisPlaces counted_places(const PixelPlaces& of, int64_t size, const Dim& places) {
  const Tensor number_of =
      unsqueeze(of.low, {2}) + positions(of.low.context_ref(), of.low.dtype(), places, 2, 3);
  const Tensor grid = unsqueeze(of.grid, {2});
  const Tensor at =
      unsqueeze(of.begin, {2}) + (number_of + number(number_of, 0.5)) * unsqueeze(of.step, {2});
  const Tensor share = where(less(number_of, grid), number(grid, 1) / grid, number(grid, 0));
  const Shape flat{at.shape()[0], Dim(size) * places};
  return {reshape(at, flat), reshape(share, flat)};
}

}  // namespace

RoiPlaces roi_places(const Tensor& x, const Tensor& regions, const RoiAlignOptions& o) {
  const Pixels pixels = pixels_of(x, "roi_align");
  check_size(o.size, "roi_align");
  RoiPlaces out;
  out.most_y = most_places(pixels.height);
  out.most_x = most_places(pixels.width);
  out.y = pixel_places(extent_of(regions, 1, o), o.size[0], pixels.height).most;
  out.x = pixel_places(extent_of(regions, 0, o), o.size[1], pixels.width).most;
  return out;
}

Tensor roi_align(const Tensor& x, const Tensor& regions, const Tensor& batch,
                 const RoiAlignOptions& o) {
  Pixels pixels = pixels_of(x, "roi_align");
  check_size(o.size, "roi_align");
  require(regions.rank() == 2 && regions.shape()[1].value() == 4 && batch.rank() == 1 &&
              decide_equal(batch.shape()[0], regions.shape()[0]),
          Status::Shape, "roi_align of regions ", regions.shape(), " in pictures ", batch.shape(),
          "; it takes [regions, 4] and [regions]");
  const bool is_given = o.sampling > 0 && o.sampling <= kSizeMax;
  require(is_given || (o.sampling == 0 && o.places.size() == 2 && !o.is_max), Status::Unsupported,
          "roi_align with ", o.sampling, " places for each element",
          o.is_max ? ", of which the greatest is wanted" : "");
  const Dim count = regions.shape()[0];
  const auto along = [&](int64_t first, size_t axis, const Dim& n) {
    const Extent extent = extent_of(regions, first, o);
    if (is_given) return given_places(extent, o.size[axis], o.sampling);
    return counted_places(pixel_places(extent, o.size[axis], n), o.size[axis], o.places[axis]);
  };
  const AxisPlaces rows = along(1, 0, pixels.height), columns = along(0, 1, pixels.width);
  Neighbours ys = neighbours_at_border(unsqueeze(rows.at, {2}), pixels.height);
  Neighbours xs = neighbours_at_border(unsqueeze(columns.at, {1}), pixels.width);
  if (!is_given) {
    for (Neighbour& y : ys) y.weight = y.weight * unsqueeze(rows.share, {2});
    for (Neighbour& one : xs) one.weight = one.weight * unsqueeze(columns.share, {1});
  }
  const Tensor picture = reshape(cast(batch, kInt64), {count, 1, 1});
  const Shape each = is_given ? Shape{o.sampling, o.sampling} : o.places;
  const Dim places = count * each[0] * each[1] * Dim(o.size[0]) * Dim(o.size[1]);
  const double lookups = 4 * static_cast<double>(upper_bound(places));
  const std::vector<Tensor> parts = weighted(for_lookups(pixels, lookups), picture, ys, xs);
  Tensor all = parts[0];
  for (size_t i = 1; i < parts.size(); ++i)
    all = o.is_max ? maximum(all, parts[i]) : all + parts[i];
  const Shape apart{count, o.size[0], each[0], o.size[1], each[1], x.shape()[1]};
  const Tensor grid = reshape(all, apart);
  const Tensor y = o.is_max ? max(grid, {2, 4}) : is_given ? mean(grid, {2, 4}) : sum(grid, {2, 4});
  return cast(permute(y, {0, 3, 1, 2}), x.dtype());
}

Tensor max_roi_pool(const Tensor& x, const Tensor& regions, const Ints& size,
                    double spatial_scale) {
  pixels_of(x, "max_roi_pool");
  check_size(size, "max_roi_pool");
  require(regions.rank() == 2 && regions.shape()[1].value() == 5, Status::Shape,
          "max_roi_pool of regions ", regions.shape(), "; it takes [regions, 5]");
  const Tensor low = full(x.context_ref(), x.dtype(), {}, -std::numeric_limits<double>::infinity());
  // Half away from zero, as C rounds.
  const auto rounded = [&](int64_t i) {
    return floor(column(regions, i) * number(regions, spatial_scale) + number(regions, 0.5));
  };
  // Whether pixel k is in part i of a region: [regions, parts, pixels].
  const auto is_in = [&](int64_t first, size_t axis) {
    const Dim pixels = x.shape()[axis + 2];
    const auto parts = size[axis];
    const Tensor begin = reshape(rounded(first), {-1, 1, 1});
    const Tensor end = reshape(rounded(first + 2), {-1, 1, 1});
    const Tensor one = number(begin, 1);
    const Tensor step = maximum(end - begin + one, one) / number(begin, static_cast<double>(parts));
    const Tensor part = positions(x.context_ref(), begin.dtype(), parts, 1, 3);
    const Tensor at = positions(x.context_ref(), begin.dtype(), pixels, 2, 3);
    return bit_and(greater_equal(at, floor(part * step) + begin),
                   less(at, ceil((part + one) * step) + begin));
  };
  const Tensor picture = gather(x, cast(column(regions, 0), kInt64), 0);
  const Tensor rows = unsqueeze(is_in(2, 0), {1, 4});     // [regions, 1, parts, height, 1]
  const Tensor columns = unsqueeze(is_in(1, 1), {1, 2});  // [regions, 1, 1, parts, width]
  const Tensor by_row = max(where(rows, unsqueeze(picture, {2}), low), {3});
  const Tensor y = max(where(columns, unsqueeze(by_row, {3}), low), {4});
  const Tensor is_empty = bit_and(any(rows, {3}), any(columns, {4}));
  return where(is_empty, y, number(x, 0));
}

Tensor crop_and_resize(const Tensor& x, const Tensor& regions, const Tensor& batch,
                       const Ints& size, bool is_nearest, double outside) {
  const Pixels pixels = pixels_of(x, "crop_and_resize");
  check_size(size, "crop_and_resize");
  require(regions.rank() == 2 && regions.shape()[1].value() == 4 && batch.rank() == 1,
          Status::Shape, "crop_and_resize of regions ", regions.shape(), " in pictures ",
          batch.shape(), "; it takes [regions, 4] and [regions]");
  const auto places = [&](int64_t first, int64_t count, const Dim& n) {
    const Tensor begin = unsqueeze(column(regions, first), {1});
    const Tensor end = unsqueeze(column(regions, first + 2), {1});
    const Tensor last = size_like(begin, n - 1);
    if (count == 1) return (begin + end) * number(begin, 0.5) * last;
    const Tensor step = (end - begin) * last / number(begin, static_cast<double>(count - 1));
    return begin * last + positions(x.context_ref(), regions.dtype(), count, 1, 2) * step;
  };
  const Tensor y = unsqueeze(places(0, size[0], pixels.height), {2});
  const Tensor xs = unsqueeze(places(1, size[1], pixels.width), {1});
  const Tensor picture = reshape(cast(batch, kInt64), {batch.shape()[0], 1, 1});
  Tensor all;
  if (is_nearest) {
    const auto nearest = [](const Tensor& at) { return floor(at + number(at, 0.5)); };
    all = pixel(pixels, picture, nearest(y), nearest(xs));
  } else {
    for (const Tensor& part : weighted(pixels, picture, neighbours_at_border(y, pixels.height),
                                       neighbours_at_border(xs, pixels.width)))
      all = all ? all + part : part;
  }
  const Tensor is_within = bit_and(is_inside(y, pixels.height), is_inside(xs, pixels.width));
  const Tensor chosen = where(unsqueeze(is_within, {3}), all, number(all, outside));
  return cast(permute(chosen, {0, 3, 1, 2}), x.dtype());
}

namespace {

// What the taps of a deformed convolution see: [batch, channels, taps, out..].
Tensor deformed_taps(const Tensor& x, const Tensor& offset, const Tensor& mask, const Ints& kernel,
                     const DeformConvOptions& o) {
  const int64_t parts = o.offset_groups, taps = kernel[0] * kernel[1];
  const TensorShape d = x.shape();
  const Dim batch = d[0], height = offset.shape()[2], width = offset.shape()[3];
  const Dim each(d[1].value() / parts);
  const Pixels pixels =
      pixels_of(reshape(x, {batch * Dim(parts), each, d[2], d[3]}), "deform_conv");
  const Dim pictures = batch * Dim(parts);
  const Tensor moves = reshape(offset, {pictures, taps, 2, height, width});
  const auto counted = [&](const Dim& n, int64_t axis) {
    return positions(x.context_ref(), offset.dtype(), n, axis, 4);
  };
  const Tensor tap = positions(x.context_ref(), kInt64, taps, 1, 4);
  const auto places = [&](size_t axis, const Tensor& tap_place, const Tensor& out) {
    const Tensor move = squeeze(
        slice_axis(moves, 2, static_cast<int64_t>(axis), static_cast<int64_t>(axis) + 1), {2});
    const auto n = [&](int64_t v) { return number(move, static_cast<double>(v)); };
    return out * n(o.strides[axis]) - n(o.before[axis]) +
           cast(tap_place, offset.dtype()) * n(o.dilations[axis]) + move;
  };
  const Tensor across = number_int(tap, kernel[1]);
  const Tensor y = places(0, trunc_div(tap, across), counted(height, 2));
  const Tensor xs = places(1, trunc_mod(tap, across), counted(width, 3));
  const Tensor picture = positions(x.context_ref(), kInt64, pictures, 0, 4);
  const Dim looked_up = pictures * Dim(4 * taps) * height * width;
  const auto lookups = static_cast<double>(upper_bound(looked_up));
  Tensor all;
  for (const Tensor& part :
       weighted(for_lookups(pixels, lookups), picture, neighbours_inside(y, pixels.height),
                neighbours_inside(xs, pixels.width)))
    all = all ? all + part : part;
  if (mask) all = all * reshape(mask, {pictures, taps, height, width, 1});
  return reshape(permute(all, {0, 4, 1, 2, 3}), {batch, d[1], taps, height, width});
}

}  // namespace

Tensor deform_conv(const Tensor& x, const Tensor& weight, const Tensor& offset, const Tensor& bias,
                   const Tensor& mask, const DeformConvOptions& o) {
  require(x.rank() == 4 && weight.rank() == 4 && offset.rank() == 4, Status::Shape,
          "deform_conv of shapes ", x.shape(), ", ", weight.shape(), " and ", offset.shape(),
          "; it takes pictures");
  const Ints kernel{weight.shape()[2].value(), weight.shape()[3].value()};
  const int64_t channels = x.shape()[1].value(), out = weight.shape()[0].value();
  const int64_t taps = kernel[0] * kernel[1];
  require(o.groups > 0 && o.offset_groups > 0 && channels % o.groups == 0 && out % o.groups == 0 &&
              channels % o.offset_groups == 0 && weight.shape()[1].value() == channels / o.groups &&
              offset.shape()[1].value() == 2 * taps * o.offset_groups,
          Status::Shape, "deform_conv of ", x.shape(), " with weights ", weight.shape(),
          " and offsets ", offset.shape(), " in ", o.groups, " groups and ", o.offset_groups,
          " of offsets; wanted [.., channels / groups, kernel..] and [.., groups * taps * 2, ..]");
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t reach = o.dilations[axis] * (kernel[axis] - 1) + 1;
    const Dim count = floor_div(x.shape()[axis + 2] + Dim(o.before[axis] + o.after[axis] - reach),
                                Dim(o.strides[axis])) +
                      Dim(1);
    require(decide_equal(offset.shape()[axis + 2], count), Status::Shape, "deform_conv: offsets ",
            offset.shape(), " for ", count, " windows along axis ", axis + 2);
  }
  const Tensor seen = deformed_taps(x, offset, mask, kernel, o);
  const Dim batch = x.shape()[0], height = offset.shape()[2], width = offset.shape()[3];
  const int64_t in = channels / o.groups * taps;
  const Tensor columns = reshape(seen, {batch, o.groups, in, height * width});
  const Tensor rows = reshape(weight, to_shape({1, o.groups, out / o.groups, in}));
  const Tensor y = reshape(matmul(rows, columns), {batch, out, height, width});
  return bias ? y + reshape(bias, {out, 1, 1}) : y;
}

}  // namespace tiny

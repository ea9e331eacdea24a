#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "ir/build.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/window_parts.h"

namespace tiny {

namespace {

// What is gone through along an axis: the taps of a window that lie in the input in any of them,
// and the padding that these reach.
struct Taps {
  int64_t count = 0;
  int64_t before = 0;
  Dim after;
};

struct Pool {
  Window options;  // complete
  Shape sizes;     // of the spatial axes, without padding
  Shape counts;    // of windows
  Ints taps;       // Taps of each axis
  Ints before;
  Shape after;
};

// Of `count` windows along axis `i`.  Padding decides no value: taps that meet nothing else in any
// window, of a kernel that is larger than the input whatever its size is, are left out.
Taps taps_of(const Window& o, size_t i, const Dim& size, const Dim& count, bool ceil_mode) {
  const int64_t before = o.before[i], kernel = o.kernel[i], d = o.dilations[i];
  const int64_t last_begin = (upper_bound(count) - 1) * o.strides[i];
  const int64_t to_input = std::max<int64_t>(before - last_begin, 0);
  const int64_t first = std::min({(to_input + d - 1) / d, before / d, kernel - 1});
  const int64_t last = std::clamp((before + upper_bound(size) - 1) / d, first, kernel - 1);
  Taps taps{last - first + 1, before - first * d, o.after[i]};
  const bool is_whole = taps.count == kernel;
  if (is_whole && !ceil_mode) return taps;
  const Dim reach = (count - 1) * Dim(o.strides[i]) + (d * (taps.count - 1) + 1);
  taps.after = maximum(is_whole ? o.after[i] : 0, reach - size - taps.before);
  return taps;
}

// Of the windows of an axis, the last one holds nothing if it starts behind the input, as one that
// is counted in ceil mode may.
Dim without_empty_window(const Dim& count, const Dim& size, int64_t before, int64_t stride) {
  const Dim that_begin_inside = floor_div(size + (before - 1), stride) + 1;
  return maximum(minimum(count, that_begin_inside), maximum(count - 1, 1));
}

// `x` has its channels first.
Pool plan(const Tensor& x, const Window& window) {
  const Ints& kernel = window.kernel;
  Pool p;
  p.sizes = spatial_sizes(x, kernel.size(), "pool");
  p.options = complete(window, kernel, p.sizes, "pool");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t before = p.options.before[i];
    require(before >= 0 && p.options.after[i] >= 0, Status::InvalidArgument, "pool: padding ",
            list_text(p.options.before), " before and ", list_text(p.options.after),
            " after; each at least 0");
    const Dim size = p.sizes[i] + before + p.options.after[i];
    const int64_t stride = p.options.strides[i];
    Dim count = window_count(size, kernel[i], stride, p.options.dilations[i], window.ceil_mode);
    require(!count.is(0), Status::Shape, "pool: kernel ", list_text(kernel), " does not fit into ",
            x.shape());
    if (window.ceil_mode) count = without_empty_window(count, p.sizes[i], before, stride);
    Taps taps = taps_of(p.options, i, p.sizes[i], count, window.ceil_mode);
    p.counts.push_back(count);
    p.taps.push_back(taps.count);
    p.before.push_back(taps.before);
    p.after.push_back(std::move(taps.after));
  }
  return p;
}

Tensor padded_with_zeros(const Tensor& x, const Pool& p) {
  return pad_spatial(x, p.before, p.after, 0);
}

Tensor windows_of(const Tensor& padded, const Pool& p) {
  return windows(padded, p.taps, p.options.strides, p.options.dilations, p.counts);
}

Ints last_axes(size_t n) {
  Ints axes;
  for (size_t i = 0; i < n; ++i) axes.push_back(-1 - static_cast<int64_t>(i));
  return axes;
}

// Padded with the lowest value of the dtype.
Tensor padded_with_lowest(const Tensor& x, const Pool& p) {
  const Tensor inside = x.with(broadcast_to(x.graph().boolean(true), x.shape()));
  const Tensor mask = padded_with_zeros(inside, p);
  const Tensor padded = padded_with_zeros(x, p);
  if (mask.node() == inside.node()) return padded;
  return where(mask, padded, x.with(x.graph().constant_bits(x.dtype(), lowest_bits(x.dtype()))));
}

// Of the steps, that must be saved by going through windows axis by axis, which is a pass over
// memory more: 3x3 (1.5) lost with channels last and for means, 5x5 with a stride of 2 (1.6) gained
// in all.
constexpr double kApartGain = 1.55;

// A pool's windows along one of its axes, for each result along the axes before and each element
// along those behind.
Pool along(const Pool& p, size_t axis) {
  Pool one = p;
  for (size_t i = 0; i < p.taps.size(); ++i) {
    if (i == axis) continue;
    one.options.strides[i] = one.options.dilations[i] = one.taps[i] = 1;
    one.before[i] = 0;
    one.after[i] = 0;
    one.counts[i] = i < axis ? p.counts[i] : p.sizes[i];
  }
  return one;
}

// Steps of all windows of a channel, at most.
double steps_of(const Pool& p) {
  double steps = 1;
  for (size_t i = 0; i < p.taps.size(); ++i)
    steps *= static_cast<double>(upper_bound(p.counts[i])) * static_cast<double>(p.taps[i]);
  return steps;
}

// Of what is in each window, padded.  One axis after the other where that saves much: what windows
// share along the others is reduced once.
template <typename Padded, typename Reduce>
Tensor reduce_windows(const Tensor& x, const Pool& p, Padded padded, Reduce reduce) {
  const size_t spatial = p.taps.size();
  double apart = 0;
  for (size_t i = 0; i < spatial; ++i) apart += steps_of(along(p, i));
  if (steps_of(p) < kApartGain * apart)
    return reduce(windows_of(padded(x, p), p), last_axes(spatial));
  Tensor reduced = x;
  for (size_t i = 0; i < spatial; ++i) {
    const Pool one = along(p, i);
    reduced = reduce(windows_of(padded(reduced, one), one), last_axes(spatial));
  }
  return reduced;
}

// Which elements of an axis count, from `first` to before `last`, without the padding before it.
struct Counted {
  int64_t first = 0;
  Dim last;
};

Counted counted(const Pool& p, size_t i, bool include_pad) {
  return {include_pad ? -p.options.before[i] : 0,
          p.sizes[i] + (include_pad ? p.options.after[i] : 0)};
}

// Whether every window of the axis lies in what counts, whatever its size is.
bool lies_inside(const Pool& p, size_t i, const Counted& all) {
  if (-p.options.before[i] < all.first) return false;
  // Windows that are not counted in ceil mode end in the padding at the latest.
  if (!p.options.ceil_mode && all.last == p.sizes[i] + p.options.after[i]) return true;
  const int64_t reach = p.options.dilations[i] * (p.options.kernel[i] - 1) + 1;
  const Dim last_begin = (p.counts[i] - 1) * Dim(p.options.strides[i]) - p.options.before[i];
  const Dim room = all.last - last_begin - reach;
  return lower_bound(room) >= 0;
}

// Counts of so many windows are computed once, more of them where they are used.
constexpr int64_t kStoredCounts = 4096;

// How many elements that count each window of the axis has: taps begin + k * dilation, k below the
// kernel's size, from all.first to before all.last.
Tensor counts_of_windows(const Ref<Context>& context, const Pool& p, size_t i, const Counted& all) {
  const int64_t d = p.options.dilations[i], before = p.options.before[i];
  const int64_t most =
      checked_add(checked_mul(upper_bound(p.counts[i]), p.options.strides[i], "a pool"),
                  checked_mul(p.options.kernel[i], d, "a pool"), "a pool") +
      upper_bound(p.sizes[i]) + before + p.options.after[i];
  const Tensor window = arange(context, most <= INT32_MAX ? kInt32 : kInt64, p.counts[i]);
  const auto n = [&](const Dim& value) {
    return cast(size_tensor(context, value), window.dtype());
  };
  const Tensor begin = sub(mul(window, n(p.options.strides[i])), n(before));
  const auto taps_before = [&](const Dim& end) {
    const Tensor length = sub(n(end), begin);
    const Tensor taps = d == 1 ? length : floor_div(add(length, n(d - 1)), n(d));
    return minimum(maximum(taps, n(0)), n(p.options.kernel[i]));
  };
  return sub(taps_before(all.last), taps_before(all.first));
}

// The input of a pool with its channels first.
Tensor input_of(const Tensor& given, const Window& window) {
  const size_t spatial = window.kernel.size();
  require(spatial > 0, Status::InvalidArgument, "pool: the window has no kernel");
  spatial_sizes(given, spatial, "pool");
  return from_layout(given, window, spatial);
}

Tensor result_of(const Tensor& made, const Window& window) {
  return to_layout(made, window, window.kernel.size());
}

}  // namespace

Tensor max_pool(const Tensor& given, const Window& window) {
  const Tensor x = input_of(given, window);
  const Pool p = plan(x, window);
  const auto greatest = [](const Tensor& values, const Ints& axes) { return max(values, axes); };
  const Tensor best = reduce_windows(x, p, padded_with_lowest, greatest);
  return result_of(best, window);
}

Tensor max_pool_indices(const Tensor& given, const Window& window) {
  const Tensor x = input_of(given, window);
  const Pool p = plan(x, window);
  const Ints taps = last_axes(p.counts.size());
  const Tensor values = windows_of(padded_with_lowest(x, p), p);
  const Tensor best = max(values, taps, true);
  // Positions, with one past the last for padding, so that it is never the first of equals.
  const Dim count = product(p.sizes);
  const Tensor outside = size_tensor(x.context_ref(), count);
  const Tensor position = reshape(arange(x.context_ref(), kInt64, count), p.sizes);
  const Tensor mask = padded_with_zeros(full(x.context_ref(), kBool, p.sizes, 1), p);
  const Tensor place = where(mask, padded_with_zeros(position, p), outside);
  const Tensor places = windows_of(place, p);
  const Tensor chosen = bit_or(equal(values, best), is_nan(values));
  return result_of(min(where(chosen, places, outside), taps), window);
}

Tensor max_pool_positions(const Tensor& x, const Window& window, bool column_major) {
  require(window.layout == Layout::ChannelsFirst, Status::InvalidArgument,
          "max_pool_positions: wanted a window whose channels are first");
  const Tensor local = max_pool_indices(x, window);
  const Ints dims = const_dims(x.shape());
  int64_t area = 1;
  for (size_t i = 2; i < dims.size(); ++i) area *= dims[i];
  Tensor place = local;
  if (column_major) {
    place = Tensor();
    int64_t row_stride = area;
    int64_t column_stride = 1;
    for (size_t i = 2; i < dims.size(); ++i) {
      row_stride /= dims[i];
      const Tensor along =
          floor_mod(floor_div(local, number_int(local, row_stride)), number_int(local, dims[i])) *
          number_int(local, column_stride);
      place = place ? place + along : along;
      column_stride *= dims[i];
    }
  }
  const Tensor batch = positions(x.context_ref(), kInt64, dims[0], 0, x.rank());
  const Tensor channel = positions(x.context_ref(), kInt64, dims[1], 1, x.rank());
  return place + (batch * number_int(batch, dims[1]) + channel) * number_int(batch, area);
}

Tensor avg_pool(const Tensor& given, const Window& window) {
  const Tensor x = input_of(given, window);
  const Pool p = plan(x, window);
  const size_t spatial = p.counts.size();
  const DType dtype = float_dtype(x);
  const Tensor wide = cast(x, accumulator_dtype(dtype));
  const auto total = [](const Tensor& values, const Ints& axes) { return sum(values, axes); };
  const Tensor out = reduce_windows(wide, p, padded_with_zeros, total);
  // The divisor is a product of one factor for each axis.
  double same = 1;
  Tensor divisor;
  for (size_t i = 0; i < spatial; ++i) {
    const Counted all = counted(p, i, window.count_include_pad);
    if (lies_inside(p, i, all)) {
      same *= static_cast<double>(p.options.kernel[i]);
      continue;
    }
    Shape shape(spatial, Dim(1));
    shape[i] = p.counts[i];
    const Tensor counts = cast(counts_of_windows(x.context_ref(), p, i, all), wide.dtype());
    const Tensor along =
        reshape(upper_bound(p.counts[i]) <= kStoredCounts ? contiguous(counts) : counts, shape);
    divisor = divisor ? mul(divisor, along) : along;
  }
  if (!divisor || same != 1)
    divisor = divisor ? mul(divisor, number(divisor, same)) : number(wide, same);
  return result_of(cast(div(out, divisor), dtype), window);
}

Tensor lp_pool(const Tensor& given, const Window& window, double p) {
  // For which padding adds nothing.
  require(p > 0, Status::InvalidArgument, "lp_pool: p is ", p, "; wanted more than 0");
  const Tensor x = input_of(given, window);
  const Pool pool = plan(x, window);
  const Tensor padded = padded_with_zeros(x, pool);
  const Tensor out = lp_norm(windows_of(padded, pool), p, last_axes(pool.counts.size()), false);
  return result_of(out, window);
}

}  // namespace tiny

#include "layout.h"

#include <algorithm>
#include <numeric>

#include <c10/util/Exception.h>

namespace tiny_torch {

namespace {

// Axes with more than one element and a stride, the largest stride first.
std::vector<size_t> moving_axes(const Layout& layout) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < layout.sizes.size(); ++i)
    if (layout.sizes[i] > 1 && layout.strides[i] != 0) axes.push_back(i);
  std::stable_sort(axes.begin(), axes.end(),
                   [&](size_t a, size_t b) { return layout.strides[a] > layout.strides[b]; });
  return axes;
}

// Axes that lie behind each other as one axis would: rows that follow each other are one long row.
struct Run {
  size_t axis;  // the first of them
  int64_t size, stride;
};

// The runs of the moving axes, the largest stride first.
std::vector<Run> runs_of(const Layout& layout) {
  std::vector<Run> runs;
  size_t last = 0;  // axis of the newest run
  for (const size_t axis : moving_axes(layout)) {
    const int64_t size = layout.sizes[axis];
    const int64_t stride = layout.strides[axis];
    const auto stands_still = [&](size_t i) {
      return layout.sizes[i] == 1 || layout.strides[i] == 0;
    };
    bool follows = !runs.empty() && last < axis && runs.back().stride == size * stride;
    for (size_t i = last + 1; follows && i < axis; ++i) follows = stands_still(i);
    if (follows) {
      runs.back().size *= size;
      runs.back().stride = stride;
    } else {
      runs.push_back({axis, size, stride});
    }
    last = axis;
  }
  return runs;
}

// The flat value cut into a box that has an axis for each stride: [.., s0/s1, s1/s2, .., s_last],
// the last one where it is not 1.
struct Box {
  Sizes shape, begin, end;
  int64_t needed = 0;  // elements of the flat value that the shape takes
};

// Of strides of which each is a multiple of the next, if no run is cut at an end of its box.
bool find_box(const Layout& layout, const std::vector<Run>& runs, int64_t count, Box& box) {
  int64_t rest = layout.offset;
  for (size_t k = 0; k < runs.size(); ++k) {
    const auto [axis, size, stride] = runs[k];
    const int64_t begin = rest / stride;
    rest %= stride;
    // The first has room up to the value's end, if that is whole steps: no cut more.
    const int64_t room = k                     ? runs[k - 1].stride / stride
                         : count % stride == 0 ? std::max(count / stride, begin + size)
                                               : begin + size;
    if (k && (runs[k - 1].stride % stride || begin + size > room)) return false;
    box.shape.push_back(room);
    box.begin.push_back(begin);
    box.end.push_back(begin + size);
  }
  const int64_t last = runs.back().stride;
  if (last != 1) {
    box.shape.push_back(last);
    box.begin.push_back(rest);
    box.end.push_back(rest + 1);
  }
  box.needed = std::accumulate(box.shape.begin(), box.shape.end(), int64_t{1}, std::multiplies<>());
  return box.needed <= count;
}

Value cut_box(const Value& flat, const Box& box) {
  Value source = flat;
  if (box.needed < flat.numel()) source = slice_axis(source, 0, 0, box.needed);
  if (box.shape.size() > 1) source = reshape(source, box.shape);
  const bool is_whole = box.end == box.shape && std::all_of(box.begin.begin(), box.begin.end(),
                                                            [](int64_t at) { return at == 0; });
  return is_whole ? source : slice(source, box.begin, box.end, {});
}

}  // namespace

Layout layout_of(const at::Tensor& tensor) {
  return {Sizes(tensor.sizes().begin(), tensor.sizes().end()),
          Sizes(tensor.strides().begin(), tensor.strides().end()), tensor.storage_offset()};
}

bool is_movement(const Layout& layout, int64_t count) {
  const std::vector<Run> runs = runs_of(layout);
  Box box;
  return runs.empty() || find_box(layout, runs, count, box);
}

Value view_of(const Value& flat, const Layout& layout) {
  const std::vector<Run> runs = runs_of(layout);
  Box box;
  if (runs.empty()) {
    const Value one = slice_axis(flat, 0, layout.offset, layout.offset + 1);
    return expand(reshape(one, Sizes(layout.sizes.size(), 1)), layout.sizes);
  }
  if (!find_box(layout, runs, flat.numel(), box))
    return as_strided(flat, layout.sizes, layout.strides, layout.offset);
  // The box has its axes by stride, and perhaps one of size 1 behind them: back to the tensor's
  // order.
  Sizes order(runs.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return runs[static_cast<size_t>(a)].axis < runs[static_cast<size_t>(b)].axis;
  });
  const bool is_sorted = std::is_sorted(order.begin(), order.end());
  if (box.shape.size() > runs.size()) order.push_back(static_cast<int64_t>(runs.size()));
  Sizes ordered = layout.sizes;
  for (size_t i = 0; i < ordered.size(); ++i)
    if (layout.strides[i] == 0) ordered[i] = 1;
  Value view = cut_box(flat, box);
  if (!is_sorted) view = permute(view, order);
  if (view.shape() != ordered) view = reshape(view, ordered);
  return ordered == layout.sizes ? view : expand(view, layout.sizes);
}

Value written(const Value& flat, const Layout& layout, const Value& value) {
  const std::vector<size_t> axes = moving_axes(layout);
  Box box;
  if (axes.empty()) {
    box = {{flat.numel()}, {layout.offset}, {layout.offset + 1}, flat.numel()};
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(find_box(layout, runs_of(layout), flat.numel(), box),
                                "tiny: a write to places that no movement makes");
  }
  // The box's axes are those with a stride, by it.
  Sizes order(axes.begin(), axes.end());
  for (size_t axis = 0; axis < layout.sizes.size(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      order.push_back(static_cast<int64_t>(axis));
  Sizes sizes, before, after;
  for (size_t k = 0; k < box.shape.size(); ++k) {
    sizes.push_back(box.end[k] - box.begin[k]);
    before.push_back(box.begin[k]);
    after.push_back(box.shape[k] - box.end[k]);
  }
  const int64_t none = 0;
  const int64_t rest = flat.numel() - box.needed;
  const auto laid_out = [&](const Value& part) {
    const Value padded = pad(reshape(permute(part, order), sizes), before, after, 0);
    const Value whole = reshape(padded, {&box.needed, 1});
    return rest ? pad(whole, {&none, 1}, {&rest, 1}, 0) : whole;
  };
  const Value part = expand(value, layout.sizes);
  return where(laid_out(full(TINY_BOOL, layout.sizes, 1)), laid_out(part), flat);
}

Layout without_repeats(const Layout& layout) {
  Layout single = layout;
  for (size_t i = 0; i < single.sizes.size(); ++i)
    if (single.strides[i] == 0) single.sizes[i] = 1;
  return single;
}

Value last_of_repeats(const Value& value, const Layout& layout) {
  Sizes begin(layout.sizes.size(), 0);
  for (size_t i = 0; i < begin.size(); ++i)
    if (layout.strides[i] == 0) begin[i] = layout.sizes[i] - 1;
  return slice(value, begin, layout.sizes, {});
}

bool may_overlap(const Layout& layout) {
  const std::vector<size_t> axes = moving_axes(layout);
  int64_t reach = 0;
  for (size_t k = axes.size(); k-- > 0;) {
    if (layout.strides[axes[k]] <= reach) return true;
    reach += layout.strides[axes[k]] * (layout.sizes[axes[k]] - 1);
  }
  return false;
}

}  // namespace tiny_torch

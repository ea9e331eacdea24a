#include "shape/strides.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "ir/bounds.h"

namespace tiny {

namespace {

bool is_empty(const Shape& shape) {
  return std::ranges::any_of(shape, [](const Dim& d) { return d.is(0); });
}

struct Reach {
  Dim lowest, highest;
};

// None if there is no element.
std::optional<Reach> reach_of(const View& view) {
  require(view.shape.size() == view.strides.size(), Status::Shape, view.shape.size(),
          " dimensions and ", view.strides.size(), " strides; wanted a stride for each");
  for (const Dim& size : view.shape)
    require(decide_less_equal(0, size), Status::Shape, "a negative dimension in ", view.shape,
            "; each at least 0");
  if (is_empty(view.shape)) return std::nullopt;
  Reach reach{view.offset, view.offset};
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const Dim& stride = view.strides[i];
    if (view.shape[i].is(1) || stride.is(0)) continue;
    decide_less_equal(1, view.shape[i]);  // what may have no element reaches nobody knows how far
    Dim& end = decide_less_equal(0, stride) ? reach.highest : reach.lowest;
    end = end + (view.shape[i] - 1) * stride;
  }
  require(decide_less_equal(0, reach.lowest), Status::Shape, "shape ", view.shape, " with strides ",
          view.strides, " from element ", view.offset, " on reaches element ", reach.lowest,
          "; the memory's first is 0");
  return reach;
}

// Whether a <= b for all values of the Variables.
bool is_at_most(const Dim& a, const Dim& b) {
  const Dim room = b - a;
  return room.is_const() ? room.value() >= 0 : prove_nonnegative(room.expression());
}

// The axes that step from element to element, those of longer steps first.
struct Steps {
  std::vector<size_t> axes;  // of the view
  Shape sizes, strides;      // forwards
  std::vector<bool> backwards;
};

Steps steps_of(const View& view) {
  Steps found;
  const auto is_backward = [&](size_t i) { return !decide_less_equal(0, view.strides[i]); };
  const auto forwards = [&](size_t i) {
    return is_backward(i) ? view.strides[i] * -1 : view.strides[i];
  };
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i].is(1) || view.strides[i].is(0)) continue;
    const Dim step = forwards(i);
    const auto shorter = [&](size_t axis) { return !is_at_most(step, forwards(axis)); };
    found.axes.insert(std::ranges::find_if(found.axes, shorter), i);
  }
  for (const size_t i : found.axes) {
    found.sizes.push_back(view.shape[i]);
    found.strides.push_back(forwards(i));
    found.backwards.push_back(is_backward(i));
  }
  return found;
}

// The row of elements as an array: rows that lie one behind the other, the innermost stepped over.
// False if they do not.
bool add_array(const Steps& found, const Reach& reach, std::vector<MovementStep>& steps) {
  Dim span = reach.highest - reach.lowest + 1;
  steps.push_back({Movement::Shrink, {reach.lowest, reach.highest + 1}});
  const size_t count = found.axes.size();
  if (count == 0) return true;
  Shape array;
  for (size_t k = 0; k + 1 < count; ++k) {
    if (!(span == found.sizes[k] * found.strides[k])) return false;
    array.push_back(found.sizes[k]);
    span = found.strides[k];
  }
  if (!(span == (found.sizes.back() - 1) * found.strides.back() + 1)) return false;
  array.push_back(span);
  if (count > 1) steps.push_back({Movement::Reshape, array});
  if (found.strides.back().is(1)) return true;
  if (!found.strides.back().is_const()) return false;
  Shape each(count, Dim(1));
  each.back() = found.strides.back();
  steps.push_back({Movement::Stride, std::move(each)});
  return true;
}

// The axes of the array in the view's order and direction, and beside them those that stay.
void add_axes(const Steps& found, const View& view, std::vector<MovementStep>& steps) {
  Shape order, turned, kept;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const auto at = std::ranges::find(found.axes, i) - found.axes.begin();
    if (at == std::ssize(found.axes)) continue;
    if (found.backwards[static_cast<size_t>(at)]) turned.emplace_back(std::ssize(order));
    order.emplace_back(at);
    kept.push_back(view.shape[i]);
  }
  if (!std::ranges::is_sorted(found.axes)) steps.push_back({Movement::Permute, std::move(order)});
  if (!turned.empty()) steps.push_back({Movement::Flip, std::move(turned)});
  Shape with_ones(view.shape.size(), Dim(1));
  for (const size_t i : found.axes) with_ones[i] = view.shape[i];
  // A single element is a row of one.
  if (!(with_ones == (found.axes.empty() ? Shape{1} : kept)))
    steps.push_back({Movement::Reshape, with_ones});
  if (!(with_ones == view.shape)) steps.push_back({Movement::Expand, view.shape});
}

// Whether signs, that there is an element, and of two steps one that is no shorter are known.
bool is_decided(const View& view) {
  if (is_empty(view.shape)) return true;
  Shape steps;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const Dim& stride = view.strides[i];
    if (!is_at_most(1, view.shape[i]) || (!is_at_most(0, stride) && !is_at_most(stride, 0)))
      return false;
    if (!view.shape[i].is(1) && !stride.is(0))
      steps.push_back(is_at_most(0, stride) ? stride : stride * -1);
  }
  for (size_t i = 0; i < steps.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (!is_at_most(steps[i], steps[k]) && !is_at_most(steps[k], steps[i])) return false;
  return true;
}

// None where the strides are not those of an array, or that depends on Variables.
std::optional<std::vector<MovementStep>> array_steps(const View& view) {
  if (!is_decided(view)) return std::nullopt;
  std::vector<MovementStep> steps;
  const auto reach = reach_of(view);
  if (!reach) {
    steps.push_back({Movement::Shrink, {0, 0}});
    if (!(view.shape == Shape{0})) steps.push_back({Movement::Reshape, view.shape});
    return steps;
  }
  const Steps found = steps_of(view);
  if (!add_array(found, *reach, steps)) return std::nullopt;
  add_axes(found, view, steps);
  return steps;
}

// The remainders by `step` are those from that of `first` on, `length` more.
struct Remainders {
  int64_t first = 0;
  int64_t length = 0;
};

Remainders remainders_of(const View& view, int64_t step) {
  Remainders found{view.offset.value(), 0};
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const int64_t stride = view.strides[i].value();
    if (stride % step == 0) continue;
    const int64_t span =
        checked_mul(view.shape[i].value() - 1, stride, "the elements that a view reaches");
    found.first += std::min(span, int64_t{0});
    found.length += std::abs(span);
  }
  return found;
}

bool are_apart_by(int64_t step, const View& a, const View& b) {
  const Remainders of_a = remainders_of(a, step);
  const Remainders of_b = remainders_of(b, step);
  const int64_t between = ((of_b.first - of_a.first) % step + step) % step;
  return between > of_a.length && of_b.length < step - between;
}

}  // namespace

View inside_mask(const View& view, const Mask& mask) {
  if (mask.begin.empty() && mask.end.empty()) return view;
  const size_t rank = view.shape.size();
  require(mask.begin.size() == rank && mask.end.size() == rank, Status::Shape, "a mask from ",
          mask.begin, " to ", mask.end, " for shape ", view.shape,
          "; wanted a begin and an end for each axis");
  View inside = view;
  for (size_t i = 0; i < rank; ++i) {
    const Dim& begin = mask.begin[i];
    const Dim& end = mask.end[i];
    require(decide_less_equal(0, begin) && decide_less_equal(begin, end) &&
                decide_less_equal(end, view.shape[i]),
            Status::Shape, "a mask from ", mask.begin, " to ", mask.end, " for shape ", view.shape,
            "; wanted 0 <= begin <= end <= size along each axis");
    inside.offset = inside.offset + begin * view.strides[i];
    inside.shape[i] = end - begin;
  }
  return inside;
}

Dim buffer_size(const View& view) {
  const auto reach = reach_of(view);
  return reach ? reach->highest + 1 : Dim(0);
}

View real_view(const View& view) {
  const auto reach = reach_of(view);
  if (!reach) return {{0}, {1}, 0};
  View real{{}, {}, reach->lowest};
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i].is(1) || view.strides[i].is(0)) continue;
    real.shape.push_back(view.shape[i]);
    real.strides.push_back(decide_less_equal(0, view.strides[i]) ? view.strides[i]
                                                                 : view.strides[i] * -1);
  }
  return real;
}

bool are_apart(const View& a, const View& b) {
  const auto [first_a, last_a] = extent(a);
  const auto [first_b, last_b] = extent(b);
  if (first_a > last_a || first_b > last_b || last_a < first_b || last_b < first_a) return true;
  int64_t common = 0;
  std::vector<int64_t> steps;
  for (const View* view : {&a, &b})
    for (size_t i = 0; i < view->shape.size(); ++i) {
      const int64_t step = std::abs(view->strides[i].value());
      if (view->shape[i].is(1) || step == 0) continue;
      common = std::gcd(common, step);
      steps.push_back(step);
    }
  steps.push_back(common);
  return std::ranges::any_of(steps,
                             [&](int64_t step) { return step > 1 && are_apart_by(step, a, b); });
}

std::vector<MovementStep> to_movement_steps(const View& view, const Mask& mask) {
  const View inside = inside_mask(view, mask);
  std::vector<MovementStep> steps;
  if (auto array = array_steps(inside)) {
    steps = std::move(*array);
  } else {
    Shape numbers = inside.shape;
    numbers.insert(numbers.end(), inside.strides.begin(), inside.strides.end());
    numbers.push_back(inside.offset);
    steps.push_back({Movement::AsStrided, std::move(numbers)});
  }
  if (!(inside.shape == view.shape)) {
    Shape around = mask.begin;
    for (size_t i = 0; i < view.shape.size(); ++i) around.push_back(view.shape[i] - mask.end[i]);
    steps.push_back({Movement::Pad, std::move(around)});
  }
  return steps;
}

}  // namespace tiny

#include "autograd/adjoint.h"

#include <algorithm>
#include <utility>

#include "autograd/factor_sums.h"
#include "autograd/one_axis.h"
#include "autograd/skew.h"
#include "base/checked.h"
#include "ir/build.h"
#include "shape/movement_axis.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"

namespace tiny {

namespace {

// Whether an axis of `to` is made of several of `from`.
bool joins_axes(const Shape& from, const Shape& to) {
  size_t next = 0;
  for (const Dim& size : from) {
    if (size.is(1)) continue;
    Dim made = 1;
    while (!(made == size)) {
      if (next == to.size() || !divide_exactly(size, made)) return true;
      made = made * to[next++];
    }
  }
  return false;
}

}  // namespace

template <typename F>
Adjoint Adjoint::each(F move) const {
  Adjoint out = *this;
  for (UOp& factor : out.factors_) factor = move(factor);
  for (UOp& chosen : out.chosen_) chosen = move(chosen);
  return out;
}

Shape Adjoint::shape() const {
  const Shape& all = shape_of(factors_.front());
  return {all.begin() + static_cast<ptrdiff_t>(sums_), all.end()};
}

UOp Adjoint::total() const {
  const DType wide = sums_ > 0 ? accumulator_dtype(dtype()) : dtype();
  UOp product = cast(factors_.front(), wide);
  for (size_t i = 1; i < factors_.size(); ++i) product = mul(product, cast(factors_[i], wide));
  if (!chosen_.empty()) {
    const UOp zero = broadcast_to(product.graph().constant(wide, 0), shape_of(product));
    product = tiny::where(all_of(product.graph(), chosen_), product, zero);
  }
  if (sums_ == 0) return product;
  Ints axes(sums_);
  for (size_t i = 0; i < sums_; ++i) axes[i] = static_cast<int64_t>(i);
  const UOp sum = with_factors_summed(make_reduce(product, Op::Add, axes));
  return cast(make_reshape(sum, shape()), dtype());
}

Adjoint Adjoint::times(const UOp& factor) const {
  // What is summed is summed once, not once for each element of the factor.
  Adjoint out = sums_ > 0 ? Adjoint(total()) : *this;
  out.factors_.push_back(factor);
  return out;
}

Adjoint Adjoint::where(const UOp& chosen) const {
  Adjoint out = sums_ > 0 ? Adjoint(total()) : *this;
  out.chosen_.push_back(chosen);
  return out;
}

Adjoint Adjoint::as(DType dtype) const {
  Adjoint out(cast(total(), dtype));
  if (sums_ == 0) out.chosen_ = chosen_;
  return out;
}

std::vector<UOp> Adjoint::distinct_factors() const {
  std::vector<UOp> out;
  for (const UOp& f : factors_) {
    std::vector<bool> same;
    for (size_t i = 0; i < shape_of(f).size(); ++i) same.push_back(repeats(f, i));
    out.push_back(first_along(f, same));
  }
  return out;
}

Adjoint Adjoint::over_steps(std::span<const UOp> factors) const {
  Adjoint out;
  for (size_t i = 0; i < factors_.size(); ++i) {
    Shape shape = shape_of(factors_[i]);
    shape.insert(shape.begin(), shape_of(factors[i]).front());
    out.factors_.push_back(make_expand(factors[i], shape));
  }
  out.sums_ = sums_ + 1;
  return out;
}

Shape Adjoint::with_sums(const Shape& shape) const {
  const Shape& all = shape_of(factors_.front());
  Shape out(all.begin(), all.begin() + static_cast<ptrdiff_t>(sums_));
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

Shape Adjoint::behind_sums(const Shape& shape) const {
  Shape out(sums_, Dim(0));
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

Adjoint Adjoint::reshaped(const Shape& shape) const {
  // An axis of several would hide them from the sum's kernel.
  if (sums_ > 0 && joins_axes(this->shape(), shape)) return Adjoint(make_reshape(total(), shape));
  const Shape to = with_sums(shape);
  return each([&](const UOp& f) { return make_reshape(f, to); });
}

Adjoint Adjoint::permuted(const Ints& axes) const {
  Ints order;
  for (size_t i = 0; i < sums_; ++i) order.push_back(static_cast<int64_t>(i));
  for (int64_t a : axes) order.push_back(static_cast<int64_t>(at(static_cast<size_t>(a))));
  return each([&](const UOp& f) { return make_permute(f, order); });
}

Adjoint Adjoint::flipped(const Ints& axes) const {
  Ints moved;
  for (int64_t a : axes) moved.push_back(static_cast<int64_t>(at(static_cast<size_t>(a))));
  return each([&](const UOp& f) { return make_flip(f, moved); });
}

Adjoint Adjoint::shrunk(const Shape& begin, const Shape& end) const {
  const Shape from = behind_sums(begin), to = with_sums(end);
  return each([&](const UOp& f) { return make_shrink(f, from, to); });
}

Adjoint Adjoint::padded(const Shape& before, const Shape& after) const {
  Adjoint out = *this;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].is(0) && after[i].is(0)) continue;
    const size_t axis = sums_ + i;
    const bool all_repeat = out.repeats_along(i);
    bool is_first = true;
    out = out.each([&](const UOp& f) {
      const bool ends = std::exchange(is_first, false) && all_repeat;
      if (!ends && repeats(f, axis))
        return widened(f, axis, shape_of(f)[axis] + before[i] + after[i]);
      return moved_once(
          f, axis, [&](const UOp& once) { return padded_axis(once, axis, before[i], after[i]); });
    });
  }
  return out;
}

Adjoint Adjoint::expanded(const Shape& shape) const {
  // What it is made of is computed once, not once for each that it goes to.
  return Adjoint(make_expand(total(), shape));
}

Adjoint Adjoint::summed(const Ints& axes) const {
  Adjoint out = *this;
  for (int64_t a : axes) {
    const size_t axis = out.at(static_cast<size_t>(a));
    Ints order;
    const auto rank = shape_of(out.factors_.front()).size();
    for (size_t i = 0; i < rank; ++i)
      if (i != axis) order.push_back(static_cast<int64_t>(i));
    order.insert(order.begin() + static_cast<ptrdiff_t>(out.sums_), static_cast<int64_t>(axis));
    out = out.each([&](const UOp& f) {
      const UOp moved = make_permute(f, order);
      Shape shape = shape_of(moved);
      shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis) + 1, Dim(1));
      return make_reshape(moved, shape);
    });
    ++out.sums_;
  }
  return out;
}

// Whether all factors are one value, repeated, along the axis.
bool Adjoint::repeats_along(size_t axis) const {
  return std::ranges::all_of(factors_, [&](const UOp& f) { return repeats(f, at(axis)); });
}

// Taps further apart are taps beside each other with zeros between them.
Adjoint Adjoint::with_spread_taps(size_t axis, const Unfolding::Along& w) const {
  Shape apart = shape(), joined = apart;
  apart.insert(apart.begin() + static_cast<ptrdiff_t>(axis) + 1, Dim(1));
  Shape zeros(apart.size(), Dim(0));
  zeros[axis + 1] = w.dilation - 1;
  joined[axis] = w.kernel * w.dilation;
  const Adjoint spread =
      reshaped(apart).padded(Shape(apart.size(), Dim(0)), zeros).reshaped(joined);
  joined[axis] = (w.kernel - 1) * w.dilation + 1;
  return spread.cut_to(joined);
}

// Places a stride apart have the same taps, every stride-th one.  The taps, [taps, 1, ..], become
// [taps of a phase, phases, ..]; `first` taps stand before them.
Adjoint Adjoint::with_phases(size_t axis, const Unfolding::Along& w, int64_t first) const {
  const int64_t taps = (first + w.kernel + w.stride - 1) / w.stride;
  Shape before(shape().size(), Dim(0)), after = before;
  before[axis] = first;
  after[axis] = taps * w.stride - first - w.kernel;
  const Adjoint all = padded(before, after);
  return all.each([&](const UOp& f) {
    const size_t from = at(axis);
    const auto with_turns = [&](const UOp& once) {
      Shape split = shape_of(once);
      split[from] = taps;
      split[from + 1] = w.stride;
      return split;
    };
    if (repeats(f, from)) return make_expand(once_of(f, from), with_turns(f));
    return moved_once(f, from,
                      [&](const UOp& once) { return make_reshape(once, with_turns(once)); });
  });
}

// [windows, taps, ..] to [elements, taps, ..]: what each gets from the window that has it there.
Adjoint Adjoint::skewed(size_t axis, int64_t dilation) const {
  const Skew skew(at(axis), shape()[axis], shape()[axis + 1].value(), dilation);
  const bool all_repeat = repeats_along(axis);
  bool is_first = true;
  return each([&](const UOp& f) { return skew(f, std::exchange(is_first, false) && all_repeat); });
}

// [windows, taps, ..] to [elements, ..]: a tap adds the windows that lie so far before.
Adjoint Adjoint::with_taps_summed(size_t axis, int64_t dilation) const {
  const bool has_taps = shape()[axis + 1].value() > 1;
  const Adjoint out =
      has_taps ? skewed(axis, dilation).summed({static_cast<int64_t>(axis) + 1}) : *this;
  return out.each([&](const UOp& f) { return without_axis(f, out.at(axis + 1)); });
}

// A skew's adjoint is that of mirrored taps.
Adjoint Adjoint::unskewed(size_t axis, int64_t dilation) const {
  const Ints taps{static_cast<int64_t>(axis) + 1};
  return flipped(taps).skewed(axis, dilation).flipped(taps);
}

// Longer axes lose their ends, shorter ones get zeros there.
Adjoint Adjoint::cut_to(const Shape& to) const {
  Shape end = shape(), more;
  for (size_t i = 0; i < end.size(); ++i) {
    end[i] = minimum(end[i], to[i]);
    more.push_back(to[i] - end[i]);
  }
  const Shape none(end.size(), Dim(0));
  return shrunk(none, end).padded(none, more);
}

Adjoint Adjoint::folded(const Unfolding& windows, const Shape& sizes, const Ints& padding) const {
  const auto first = static_cast<size_t>(windows.axis);
  const size_t n = windows.along.size();
  // [.., windows.., taps.., ..] to [.., (windows, taps, phases).., ..].
  Shape apart = shape();
  apart.insert(apart.begin() + static_cast<ptrdiff_t>(first + 2 * n), n, Dim(1));
  Ints order = every_axis(std::ssize(apart));
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < 3; ++k)
      order[first + 3 * i + k] = static_cast<int64_t>(first + k * n + i);
  Adjoint out = reshaped(apart).permuted(order);
  bool has_phases = false;
  Ints firsts(n);
  for (size_t i = n; i-- > 0;) {
    Unfolding::Along w = windows.along[i];
    const size_t place = first + 3 * i;
    if (w.stride > 1 && w.dilation > 1) {
      out = out.with_spread_taps(place + 1, w);
      w = {w.count, (w.kernel - 1) * w.dilation + 1, w.stride, 1};
    }
    if (w.stride > 1) {
      // The first element that is asked for is of the first phase.
      firsts[i] = tiny::floor_mod(-padding[i], w.stride);
      out = out.with_phases(place + 1, w, firsts[i]);
    }
    has_phases |= w.stride > 1;
    out = out.with_taps_summed(place, w.dilation);
  }
  // (elements, phases).. to elements..: phases take turns, of what is summed by then.
  Shape joined = out.shape(), whole = joined;
  for (size_t i = 0; i < n; ++i) {
    const auto place = static_cast<ptrdiff_t>(first + i);
    joined[first + i] = joined[first + i] * joined[first + i + 1];
    joined.erase(joined.begin() + place + 1);
    whole = joined;
  }
  std::copy(sizes.begin(), sizes.end(), whole.begin() + windows.axis);
  if (has_phases) out = Adjoint(out.total());
  Shape begin(joined.size(), Dim(0));
  for (size_t i = 0; i < n; ++i) begin[first + i] = firsts[i];
  return out.reshaped(joined).shrunk(begin, joined).cut_to(whole);
}

}  // namespace tiny

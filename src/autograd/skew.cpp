#include "autograd/skew.h"

#include <utility>
#include <vector>

#include "autograd/one_axis.h"
#include "ir/build.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"

namespace tiny {

namespace {

// [size, kernel, ..]: for each place the windows that it may be in, the last tap's first.
UOp windows(const UOp& padded, size_t axis, const Unfolding::Along& along) {
  return flipped_axis(make_unfold(padded, {static_cast<int64_t>(axis), {along}}), axis + 1);
}

// [size, kernel, 1, ..]: of these the elements (i, i), window and tap.
UOp skewed_rows(const UOp& padded, size_t axis, const Unfolding::Along& along) {
  const UOp square = windows(padded, axis, along);
  const int64_t n = along.kernel;
  Shape flat = with_axis(square, axis + 1, n * n);
  flat.erase(flat.begin() + static_cast<ptrdiff_t>(axis) + 2);
  const UOp row = padded_axis(make_reshape(square, flat), axis + 1, 0, n);
  return first_of(split_axis(row, axis + 1, n, n + 1), axis + 2);
}

}  // namespace

Skew::Skew(size_t axis, Dim count, int64_t kernel, int64_t dilation)
    : axis_(axis), kernel_(kernel), dilation_(dilation), reach_((kernel - 1) * dilation) {
  size_ = count + reach_;
}

UOp Skew::operator()(const UOp& factor, bool ends) const {
  if (!ends && has(factor.op(), kElementwise) && !has_memory(factor)) return of_sources(factor);
  const bool varies = ends || !repeats(factor, axis_);
  const bool varies_in_window = !repeats(factor, axis_ + 1);
  if (!varies) return widened(factor, axis_, size_);
  const UOp padded = padded_axis(factor, axis_, reach_, reach_);
  if (varies_in_window) return without_axis(skewed_rows(padded, axis_, along()), axis_ + 2);
  return without_axis(windows(once_of(padded, axis_ + 1), axis_, along()), axis_ + 2);
}

// Of its sources each may be one value along windows or along their taps.
UOp Skew::of_sources(const UOp& factor) const {
  std::vector<UOp> sources;
  for (const UOp& s : factor.src()) sources.push_back((*this)(s, false));
  return factor.with_src(sources);
}

std::optional<SkewedRows> skewed_rows_of(const UOp& node) {
  if (node.op() != Op::Shrink) return std::nullopt;
  UOp below = UOp(node.src(0));
  while (below.op() == Op::Reshape || below.op() == Op::Pad || below.op() == Op::Flip)
    below = UOp(below.src(0));
  if (below.op() != Op::Unfold) return std::nullopt;
  const Unfolding unfolded = unfolding(below);
  const auto axis = static_cast<size_t>(unfolded.axis);
  const Unfolding::Along& along = unfolded.along.front();
  const bool may_be = unfolded.along.size() == 1 && along.stride == 1 && along.kernel > 1 &&
                      axis + 1 < shape_of(below.src(0)).size() &&
                      shape_of(below.src(0))[axis + 1].is(along.kernel);
  if (!may_be || !(skewed_rows(below.src(0), axis, along) == node)) return std::nullopt;
  return SkewedRows{UOp(below.src(0)), axis, along.dilation};
}

}  // namespace tiny

#include "schedule/window_rows.h"

#include <algorithm>

#include "ir/picked_lanes.h"
#include "schedule/kernel_axes.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// Cycles, as cost/estimate.cpp has them.
constexpr double kPicked = 2;    // a register more that lanes are picked out of: loaded, permuted
constexpr double kInserted = 2;  // a lane that is loaded by itself
constexpr double kExtracted = 1.5;  // a lane of a result that is stored by itself

// The node of a movement chain that takes windows; null if there is none.
const UOp* unfold_of(const UOp& top) {
  const UOp* node = &top;
  while (has(node->op(), kMovement) && node->op() != Op::Unfold) node = &node->src(0);
  return node->op() == Op::Unfold ? node : nullptr;
}

double lanes_of(const WindowRows& rows, const Target& target) {
  return static_cast<double>(target.vector_bytes) /
         static_cast<double>(rows.source().dtype().bytes());
}

}  // namespace

std::optional<WindowRows> window_rows(const UOp& reduce) {
  const UOp& value = reduce.src(0);
  const UOp* top = &value;
  if (value.op() == Op::Mul) top = &value.src(unfold_of(value.src(0)) ? 0 : 1);
  const UOp* unfold = unfold_of(*top);
  if (!unfold || !unfold->dtype().is_float()) return std::nullopt;
  const Unfolding windows = unfolding(*unfold);
  const size_t last = static_cast<size_t>(windows.axis) + windows.along.size() - 1;
  if (last + 1 != shape_of(unfold->src(0)).size()) return std::nullopt;
  WindowRows rows{*unfold, 0, windows.along.back().stride, 1};
  for (const Unfolding::Along& along : windows.along)
    rows.taps *= static_cast<double>(along.kernel);
  const Ints& reduced = reduce.reduce_arg().axes;
  bool found = false;
  for (size_t axis = 0; axis < shape_of(*top).size(); ++axis) {
    if (shape_of(*top)[axis].is(1)) continue;
    if (repeats(*top, axis)) return std::nullopt;
    if (std::ranges::binary_search(reduced, static_cast<int64_t>(axis))) continue;
    std::optional<size_t> at = axis;
    for (const UOp* node = top; at && node != unfold; node = &node->src(0))
      at = axis_below(*node, *at);
    if (at != last) continue;
    rows.axis = axis;
    found = true;
  }
  return found ? std::optional(rows) : std::nullopt;
}

double apart_cost(const WindowRows& rows, const Target& target) {
  if (rows.stride == 1) return 0;
  const double lanes = lanes_of(rows, target);
  const int64_t bytes = rows.source().dtype().bytes();
  const bool are_near = are_picked(target, rows.stride, static_cast<int64_t>(lanes), bytes);
  return rows.taps *
         (are_near ? kPicked * static_cast<double>(rows.stride - 1) : kInserted * lanes);
}

double turned_cost(const WindowRows& rows, const Target& target) {
  return kExtracted * lanes_of(rows, target);
}

std::optional<size_t> channels_of(const WindowRows& rows) {
  const auto windowed = static_cast<size_t>(unfolding(rows.unfold).axis);
  std::optional<size_t> longest;
  for (size_t axis = 0; axis < windowed; ++axis)
    if (extent(rows.source(), axis) >= KernelAxes::kExtentMin &&
        (!longest || extent(rows.source(), axis) > extent(rows.source(), *longest)))
      longest = axis;
  return longest;
}

}  // namespace tiny

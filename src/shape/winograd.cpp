#include "shape/winograd.h"

#include <span>

#include "base/error.h"
#include "ir/build.h"

namespace tiny {

namespace {

constexpr size_t kNumbersResults = SIZE_MAX;

// By axes of the node: those of its source.
constexpr std::array<size_t, 6> kBelowInput{kNumbersResults, kNumbersResults, 0, 1, 3, 5};
constexpr std::array<size_t, 4> kBelowFilter{kNumbersResults, kNumbersResults, 2, 3};
constexpr std::array<size_t, 6> kBelowOutput{2, 3, kNumbersResults, 4, kNumbersResults, 5};

std::span<const size_t> axes_below(WinogradPart part) {
  switch (part) {
    case WinogradPart::Filter:
    case WinogradPart::FilterSlopes:
      return kBelowFilter;
    case WinogradPart::Output:
      return kBelowOutput;
    default:
      return kBelowInput;
  }
}

}  // namespace

int64_t WinogradTransform::operands() const {
  if (part == WinogradPart::Filter) return tile.taps;
  return part == WinogradPart::Slopes ? tile.outputs : tile.points();
}

int64_t WinogradTransform::results() const {
  if (part == WinogradPart::FilterSlopes) return tile.taps;
  return part == WinogradPart::Output ? tile.outputs : tile.points();
}

std::array<size_t, 2> WinogradTransform::result_axes() const {
  if (part == WinogradPart::Output) return {2, 4};
  return {0, 1};
}

std::vector<UOp> WinogradTransform::operand_index(const std::vector<UOp>& index, int64_t row,
                                                  int64_t column) const {
  Graph& graph = index.front().graph();
  const int64_t m = tile.outputs;
  switch (part) {
    case WinogradPart::Input:
    case WinogradPart::Slopes:  // which stay within their tile
      return {index[2],
              add(index[3], row / m),
              graph.integer(row % m),
              add(index[4], column / m),
              graph.integer(column % m),
              index[5]};
    case WinogradPart::Filter:
    case WinogradPart::FilterSlopes:
      return {graph.integer(row), graph.integer(column), index[2], index[3]};
    case WinogradPart::Output:
      return {graph.integer(row), graph.integer(column), index[0], index[1], index[3], index[5]};
  }
  return {};
}

std::optional<size_t> WinogradTransform::axis_below(size_t axis) const {
  const size_t below = axes_below(part)[axis];
  return below == kNumbersResults ? std::nullopt : std::optional(below);
}

UOp make_winograd(const UOp& x, WinogradPart part, WinogradTile tile) {
  const Shape& shape = shape_of(x);
  const auto is_size = [&](size_t axis, int64_t n) { return shape[axis].is(n); };
  const bool is_filter = part == WinogradPart::Filter || part == WinogradPart::FilterSlopes;
  invariant(shape.size() == (is_filter ? 4 : 6), "a transform has its axes");
  const WinogradTransform transform{part, tile};
  if (part == WinogradPart::Input || part == WinogradPart::Slopes)
    invariant(is_size(2, tile.outputs) && is_size(4, tile.outputs), "the input comes in tiles");
  else
    for (const size_t axis : {size_t{0}, size_t{1}})
      invariant(is_size(axis, transform.operands()), "the outermost axes number taps, or points");
  return x.graph().make(Op::Winograd, {x},
                        Ints{static_cast<int64_t>(part), tile.outputs, tile.taps});
}

WinogradTransform winograd_transform(const UOp& node) {
  const Ints& arg = node.ints();
  return {static_cast<WinogradPart>(arg[0]), {arg[1], arg[2]}};
}

Shape winograd_shape(const UOp& node) {
  const WinogradTransform transform = winograd_transform(node);
  const Shape& x = shape_of(node.src(0));
  const Dim n = transform.results();
  switch (transform.part) {
    case WinogradPart::Input:
      return {n, n, x[0], x[1] - 1, x[3] - 1, x[5]};
    case WinogradPart::Slopes:
      return {n, n, x[0], x[1], x[3], x[5]};
    case WinogradPart::Filter:
    case WinogradPart::FilterSlopes:
      return {n, n, x[2], x[3]};
    case WinogradPart::Output:
      return {x[2], x[3], n, x[4], n, x[5]};
  }
  return {};
}

}  // namespace tiny

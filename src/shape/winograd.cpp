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
    case WinogradPart::InputSlopes:
      return kBelowOutput;
    default:
      return kBelowInput;
  }
}

}  // namespace

int64_t WinogradTransform::operands() const {
  if (part == WinogradPart::Filter) return tile.taps;
  if (part == WinogradPart::InputSlopes) return 2 * tile.points();  // the tile before comes first
  return part == WinogradPart::Slopes ? tile.outputs : tile.points();
}

int64_t WinogradTransform::results() const {
  if (part == WinogradPart::FilterSlopes) return tile.taps;
  return is_of_places() ? tile.outputs : tile.points();
}

bool WinogradTransform::reads_two_tiles() const {
  return part == WinogradPart::Input || part == WinogradPart::InputSlopes;
}

bool WinogradTransform::is_of_places() const {
  return part == WinogradPart::Output || part == WinogradPart::InputSlopes;
}

std::array<size_t, 2> WinogradTransform::result_axes() const {
  if (is_of_places()) return {2, 4};
  return {0, 1};
}

std::vector<UOp> WinogradTransform::operand_index(const std::vector<UOp>& index, int64_t row,
                                                  int64_t column) const {
  Graph& graph = index.front().graph();
  const int64_t m = tile.outputs, p = tile.points();
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
    case WinogradPart::InputSlopes:
      return {graph.integer(row % p), graph.integer(column % p), index[0],
              add(index[1], row / p), add(index[3], column / p), index[5]};
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
  if (part == WinogradPart::Input || part == WinogradPart::Slopes)
    invariant(is_size(2, tile.outputs) && is_size(4, tile.outputs), "the input comes in tiles");
  else
    for (const size_t axis : {size_t{0}, size_t{1}})
      invariant(is_size(axis, part == WinogradPart::Filter ? tile.taps : tile.points()),
                "the outermost axes number taps, or points");
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
  const auto whole = [&](size_t axis) {
    return transform.reads_two_tiles() ? x[axis] - 1 : x[axis];
  };
  switch (transform.part) {
    case WinogradPart::Input:
    case WinogradPart::Slopes:
      return {n, n, x[0], whole(1), whole(3), x[5]};
    case WinogradPart::Filter:
    case WinogradPart::FilterSlopes:
      return {n, n, x[2], x[3]};
    case WinogradPart::Output:
    case WinogradPart::InputSlopes:
      return {x[2], whole(3), n, whole(4), n, x[5]};
  }
  return {};
}

}  // namespace tiny

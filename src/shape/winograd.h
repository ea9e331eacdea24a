// The transforms of a convolution that is computed in tiles (Winograd), a node each.
//
// A tile has m x m results of a filter with r x r taps and p x p points, p = m + r - 1.  With B, G
// and A the matrices of F(m, r):
//
//   Input   d [n, rows + 1, m, columns + 1, m, c]  ->  [p, p, n, rows, columns, c]     B^T d B
//   Filter  g [r, r, out, in]                      ->  [p, p, out, in]                 G g G^T
//   Output  M [p, p, n, rows, columns, c]          ->  [n, rows, m, columns, m, c]     A^T M A
//
// and for the sums of the same products over all tiles, a filter's gradient:
//
//   Slopes        y [n, rows, m, columns, m, c]    ->  [p, p, n, rows, columns, c]     A y A^T
//   FilterSlopes  U [p, p, out, in]                ->  [r, r, out, in]                 G^T U G
//
// and where what reached a tile's results goes back to its points, which tiles share:
//
//   InputSlopes   D [p, p, n, rows + 1, columns + 1, c]  ->  [n, rows, m, columns, m, c]   B D B^T
//                 of a tile, and of those before it what reaches into it
//
// The input's tiles overlap: each goes on into what lies behind and below it, so that r - 1 <= m.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

// Points of a tile along one axis: with so many taps they make so many results.
struct WinogradTile {
  int64_t outputs = 4;
  int64_t taps = 3;
  int64_t points() const { return outputs + taps - 1; }
  bool operator==(const WinogradTile&) const = default;
};
// Those that there are transforms of: F(2, 3), F(4, 3) and F(4, 5).
inline constexpr WinogradTile kWinogradTiles[] = {{2, 3}, {4, 3}, {4, 5}};

enum class WinogradPart : uint8_t { Input, Filter, Output, Slopes, FilterSlopes, InputSlopes };

struct WinogradTransform {
  WinogradPart part = WinogradPart::Input;
  WinogradTile tile;

  int64_t operands() const;  // along one axis
  int64_t results() const;
  bool reads_two_tiles() const;  // side by side along each axis: the source has one more
  bool is_of_places() const;     // results lie side by side in rows and columns
  // The axes of the node along which the results of a tile lie.
  std::array<size_t, 2> result_axes() const;
  // Where the operand in this row and column of the tile is, of an element of the node.
  std::vector<UOp> operand_index(const std::vector<UOp>& index, int64_t row, int64_t column) const;
  // The axis of the source that one of the node is; none if it numbers results.
  std::optional<size_t> axis_below(size_t axis) const;
};

UOp make_winograd(const UOp& x, WinogradPart part, WinogradTile tile);
WinogradTransform winograd_transform(const UOp& node);  // of a Winograd node
Shape winograd_shape(const UOp& node);

}  // namespace tiny

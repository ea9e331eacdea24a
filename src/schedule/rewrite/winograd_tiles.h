// The three steps of a Winograd convolution as tensor graphs (schedule/rewrite/winograd.h).
//
// Each transform is a sum of views written out: its results are chosen among by position, so that a
// kernel in which those positions are unrolled loads each operand once.
#pragma once

#include <cstdint>

#include "ir/uop.h"

namespace tiny {

// Points of a tile along one axis: `outputs` of them make as many results of a filter with 3 taps.
struct WinogradTile {
  int64_t outputs = 4;  // 2 or 4
  int64_t points() const { return outputs + 2; }
};

// x [n, rows, columns, c] with rows = outputs * (tiles + 1), the same for columns
//   ->  [points, points, n, tiles of rows, tiles of columns, c]
UOp winograd_input(const UOp& x, WinogradTile tile);

// w [3, 3, out, in]  ->  [points, points, out, in]; factors come last
UOp winograd_filter(const UOp& w, WinogradTile tile);

// The two, multiplied and summed over the channels  ->  [points, points, n, .., .., out]
UOp winograd_product(const UOp& v, const UOp& u);

// That  ->  [n, outputs * tiles of rows, outputs * tiles of columns, out]
UOp winograd_output(const UOp& m, WinogradTile tile);

}  // namespace tiny

// The three steps of a Winograd convolution as tensor graphs (schedule/rewrite/winograd.h).
#pragma once

#include "ir/uop.h"
#include "shape/winograd.h"

namespace tiny {

// x [n, rows, columns, c] with rows = outputs * (tiles + 1), the same for columns
//   ->  [points, points, n, tiles of rows, tiles of columns, c]
UOp winograd_input(const UOp& x, WinogradTile tile);

// w [taps, taps, out, in]  ->  [points, points, out, in]; factors come last
UOp winograd_filter(const UOp& w, WinogradTile tile);

// The two, multiplied and summed over the channels  ->  [points, points, n, .., .., out]
UOp winograd_product(const UOp& v, const UOp& u);

// That  ->  [n, outputs * tiles of rows, outputs * tiles of columns, out]
UOp winograd_output(const UOp& m, WinogradTile tile);

// Of a filter's gradient.  What reached the output, [n, outputs * tiles of rows, .., out]
//   ->  [points, points, n, tiles of rows, tiles of columns, out]
UOp winograd_slopes(const UOp& y, WinogradTile tile);
// That and the transformed input, multiplied and summed over all tiles -> [points, points, out, in]
UOp winograd_slope_product(const UOp& s, const UOp& v);
// That  ->  [taps, taps, out, in]
UOp winograd_filter_slopes(const UOp& sums, WinogradTile tile);

// Of an input. What reached the points, [points, points, n, tiles of rows, tiles of columns, in]
//   ->  [n, outputs * (tiles of rows + 1), outputs * (tiles of columns + 1), in]
UOp winograd_input_slopes(const UOp& d, WinogradTile tile);

}  // namespace tiny

// Windows that move over their input with the output, channel by channel (a depthwise convolution,
// a pool): outputs next to each other along a window's axis share what they load, so that a tile
// of them is computed at once, the window's steps side by side.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/choose/editor.h"

namespace tiny {

struct WindowTile {
  int64_t range = -1;  // the number of the range of the outputs
  int64_t rows = 1;
  int64_t taps = -1;  // the window's range along the same axis
  bool unrolls_all = false;
  double loads = 0;  // for each step of an output's sum
};

// A tile of outputs among the ranges of `among`, with lanes along the range numbered `lane`, as
// the kernel is now; `walked`: elements along the lanes before the next tile.  Along the outermost
// of the ranges that has one: what neighbours along it read again has left the first level of cache
// when they come later.  Where lanes are stored apart, along what is stored side by side: the tile
// is turned in registers.
std::optional<WindowTile> window_tile(const Editor& edit, const UOp& reduce, int64_t lane,
                                      RangeSet among, double walked);

// Of a load with lanes along `lane`, in those of whole lines: vectors that a step of the reduction
// moves by less than a vector begin anywhere, and cross a line the more often the longer they are.
double load_price(const Editor& edit, const AccessInfo& load, const ClosureInfo& reduction,
                  size_t lane);

// The number of the range that the tile's outputs are.
int64_t window_tile_range(Editor& edit, const WindowTile& window);
void unroll_taps(Editor& edit, const WindowTile& window, const UOp& reduce);

// Whether all that one vector of lanes is made of and stores stays in the first level, so that the
// windows of a small picture may be walked for one vector after the other.  Lanes that follow each
// other instead have loads wait for stores a page or so away, which they are taken for.
bool stays_near_by_lanes(const Editor& edit, size_t lane);

}  // namespace tiny

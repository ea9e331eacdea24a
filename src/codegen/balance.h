// Balanced tiles: a range of run-time size that is cut into tiles of unrolled steps is cut anew
// when its size is known, into as few tiles of nearly equal size.  The range that numbers the tiles
// becomes one of the first elements of tiles; how many steps a tile has is for its loop to say
// (balance.cpp of the lineariser's loops), which has a body for each number that occurs.
//
// This is possible where the tile's place and its steps stand together in every index, so that
// tiles may begin anywhere; ranges of other kernels stay as they are.
#pragma once

#include <optional>
#include <vector>

#include "codegen/split_reduce.h"
#include "ir/kernel.h"

namespace tiny {

struct BalancedTile {
  UOp size;               // elements of the whole range
  int64_t unit = 1;       // elements of a step: lanes
  int64_t steps = 1;      // of a whole tile
  RangeSet steps_in = 0;  // the ranges that count the steps of a tile
  UOp count;              // of tiles
};

struct BalancedKernel {
  Kernel kernel;
  UOp outer;                                       // of SplitReduction
  std::vector<std::optional<BalancedTile>> tiles;  // by position
};

BalancedKernel balance_tiles(const SplitReduction& split);

// How many steps tiles can have, for sizes that the bounds of `tile.size` allow.
std::vector<int64_t> tile_steps(const BalancedTile& tile);

}  // namespace tiny

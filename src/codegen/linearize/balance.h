// Balanced tiles: a range of run-time size that is cut into tiles of unrolled steps is cut anew
// when its size is known.  The range that numbers the tiles becomes one of the first elements of
// tiles, and the loop over it has a body for each number of steps that a tile can have: rows come
// in as few tiles as they must, of nearly equal size; vectors in whole tiles and one with what is
// left.
//
// This is possible where the tile's place and its steps stand together in every index, so that
// tiles may begin anywhere; other ranges stay as they are.
#pragma once

#include <optional>
#include <vector>

#include "codegen/linearize/split_reduce.h"
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
  UOp outer, added;                                // of SplitReduction
  std::vector<std::optional<BalancedTile>> tiles;  // by position
};

BalancedKernel balance_tiles(const SplitReduction& split);

// How many steps tiles of rows can have, for the sizes that the bounds of `tile.size` allow.
std::vector<int64_t> tile_steps(const BalancedTile& tile);

}  // namespace tiny

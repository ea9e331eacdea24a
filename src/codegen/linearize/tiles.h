// The loops over balanced tiles (balance.h): one for each number of steps that a tile can have.
//
// reads: the sizes of tiles, as values; opens no loops.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/linearize/balance.h"
#include "codegen/linearize/values.h"

namespace tiny {

// Tiles of so many steps: which of them, and what is known inside.  Tile i begins at element
// first + i * apart.
struct Tiles {
  int64_t steps = 0;
  int64_t apart = 0;  // elements from one to the next
  LinearId begin = 0;
  LinearId end = 0;
  LinearId first = 0;  // the element at which tile 0 would begin
  UOp fact;
};

class TileCuts {
 public:
  TileCuts(Emitter& emit, Values& values) : emit_(emit), values_(values) {}

  // Of the range that is the first element of a tile.
  std::vector<Tiles> tiles_of(const BalancedTile& tile, const UOp& start);

 private:
  std::vector<Tiles> balanced(const BalancedTile& tile, const UOp& start);
  std::vector<Tiles> of_lanes(const BalancedTile& tile, const UOp& start);
  LinearId choose(LinearId condition, LinearId a, LinearId b) {
    return emit_.elementwise(Op::Where, kInt64, {condition, a, b});
  }

  Emitter& emit_;
  Values& values_;
};

}  // namespace tiny

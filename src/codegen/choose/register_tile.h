// Register tiles: rows and vectors of outputs whose sums stay in registers.
#pragma once

#include <cstdint>

#include "codegen/choose/editor.h"

namespace tiny {

struct RegisterTile {
  int64_t rows = 1;
  int64_t vectors = 1;
  double score = 0;
};

struct TileCost {
  double vector_load = 1;  // in loads from the first level of cache
  int64_t vectors_max = 4;
};

// Rows and vectors that keep the most accumulators busy for the fewest loads; `m` rows and `n`
// columns are to be computed.
RegisterTile register_tile(const Editor& edit, double m, double n, const TileCost& cost);

}  // namespace tiny

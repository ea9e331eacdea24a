// Register tiles: rows and vectors of outputs whose sums stay in registers.
#pragma once

#include <cstdint>
#include <limits>

#include "codegen/choose/editor.h"

namespace tiny {

struct RegisterTile {
  int64_t rows = 1;
  int64_t vectors = 1;
  double score = 0;
};

struct TileCost {
  int64_t vectors_max = 4;
  double vector_bytes = 0;  // of all steps of a vector of columns, which each tile of rows reads
  double cut_rows = 0;      // the share of a tile's time that rows take more in several tiles
  double vector_loads = 1;  // that a vector of columns is made of
};

// Of panels, which are taken to come from the second level of cache whatever their size.
constexpr double kPanelBytes = std::numeric_limits<double>::infinity();

// Rows and vectors that keep the most accumulators busy for the fewest loads; `m` rows and `n`
// columns are to be computed.
RegisterTile register_tile(const Editor& edit, double m, double n, const TileCost& cost);

}  // namespace tiny

// Columns of a product that are walked for every tile of rows, and that the second level of cache
// does not hold.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codegen/choose/editor.h"

namespace tiny {

struct ColumnsOfTile {
  const ClosureInfo& reduction;
  RangeSet outputs = 0;
  size_t lane = 0;
  size_t row = 0;
  int64_t products = 0;  // of a tile, in each step
  double bytes = 0;      // that all steps of its columns read
};

// Such columns are walked once, where that level holds all rows and the columns of a tile; those
// of the next tile are fetched meanwhile.
void walk_far_columns_once(Editor& edit, const ColumnsOfTile& tile);

}  // namespace tiny

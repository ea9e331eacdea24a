// Loops of a linear program that add the products of words (ir/dot.h) to a grid of sums, rows by
// vectors: what a processor's matrix unit multiplies tile by tile (Intel AMX: Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 1, "Programming with Intel AMX").
//
// A tile is up to 16 rows of up to 64 bytes.  Of one product the first factor has a row for each
// row of the sums and in it the words of some steps; the second has a row for each step and in it
// the words of 16 columns, a vector; the sums have a row of 16 int32.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/dot.h"
#include "ir/linear.h"

namespace tiny {

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileLanes = 16;  // of 32 bits
inline constexpr int64_t kTileSteps = 16;
inline constexpr int64_t kTileCount = 8;  // of a core: sums, first and second factors together
// The most vectors of sums, and rows beside them, so that both factors have tiles too.
inline constexpr int64_t kTileVectorsMax = 3;
constexpr int64_t tile_rows_max(int64_t vectors) {
  return 3 * vectors + 2 <= kTileCount ? 2 * kTileRows : kTileRows;
}
// Steps of a tile at the least: with fewer a product takes as long as by vectors.
inline constexpr int64_t kTileStepsMin = 4;

// One of the loops, over steps from 0 on or a part of them.  All rows that are loaded have one
// address, and displacements; so have all vectors.
struct TileLoop {
  static constexpr int64_t kLoaded = -1;

  LinearId loop = 0;
  LinearId end = 0;
  LinearId row = 0;          // the load of a word of the first row that is loaded,
  int64_t first_row = 0;     // which is this one
  LinearId vector = 0;       // the load of words of vector 0
  int64_t row_bytes = 0;     // from one row to the next
  int64_t vector_bytes = 0;  // from one vector to the next
  int64_t step_bytes = 0;    // from the words of a vector in one step to those in the next
  // Of each row its word in all steps, where that is a constant (beyond a picture's border), else
  // kLoaded; empty: all are loaded.
  std::vector<int64_t> words;
};

struct TileProduct {
  int64_t rows = 0;
  int64_t vectors = 0;
  int64_t steps = 0;  // of a tile; each loop has a multiple of it
  bool has_signed_rows = false;
  bool has_signed_vectors = false;
  std::vector<LinearId> sums;  // accumulators, row by row
  std::vector<TileLoop> loops;
  LinearId end = 0;  // the last of the block in which sums are added to; they are read behind it

  // Rows are in one tile, or in two of about as many.
  int64_t row_tiles() const { return rows > kTileRows ? 2 : 1; }
  int64_t rows_of(int64_t tile) const {
    return tile == 0 ? (rows + row_tiles() - 1) / row_tiles() : rows / 2;
  }
};

// Those whose sums the loops alone add to, from zero on, and nothing reads before the end.  Kinds
// that are not in `kinds` are left out.  In the order of the program; none lies in another.
std::vector<TileProduct> find_tile_products(const LinearProgram& program, DotSet kinds);

// Whether all products of words that the program has are in such loops, and it has some.
bool multiplies_tiles_alone(const LinearProgram& program, DotSet kinds);

}  // namespace tiny

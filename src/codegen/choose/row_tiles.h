// Kernels whose reductions all lie inside of rows, some of them contractions: a product, what is
// reduced of its rows, a product of that (attention).  A tile of rows goes through all of it at
// once; what is wanted more than once of the tile is kept in scratch, its columns side by side.
// Rows that are too long for that run along blocks, their reductions rescaled as they go (an online
// softmax).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/choose/editor.h"
#include "codegen/choose/register_tile.h"

namespace tiny {

class RowTiles {
 public:
  explicit RowTiles(Editor& edit);
  bool applies() const;
  void run();

 private:
  // The numbers of the ranges that columns are cut into; -1 where there is none.
  struct Columns {
    int64_t tiles = -1;
    int64_t vectors = -1;
    int64_t lane = -1;
  };

  // row_tiles.cpp: the tile, and what is kept of it.
  std::optional<size_t> rows_of_matrix() const;
  bool weighs_columns() const;
  void order_rows();
  RegisterTile tile_of_rows() const;
  double columns_of_stores() const;
  double widest_row() const;
  void cut_rows();
  const ClosureInfo* product_of_computed() const;
  int64_t rows_beside(size_t range, size_t steps);
  void cut_rows_beside(int64_t range);
  int64_t place_outside(size_t at) const;
  size_t begin_of_tile() const;
  void stage_shared_values();
  void prefetch_operands();

  // row_products.cpp: the products of a tile.
  int64_t lanes_along(size_t position) const;
  Columns cut_columns(int64_t range, int64_t vectors);
  void give_lanes(const Columns& columns);
  void fill_rows(const UOp& stage);
  bool fill_window(const UOp& stage, const UOp& reduce);
  std::vector<int64_t> panels_of(const UOp& reduce, int64_t column, int64_t row) const;
  void product(const UOp& reduce, int64_t column, int64_t row);
  void stage_panel(const std::vector<int64_t>& steps, const Columns& columns);
  int64_t column_of_product(const AccessTable& table) const;
  int64_t column_of_store(const AccessTable& table) const;
  void finish_rows();
  void product_of_stores(const UOp& reduce, int64_t column);
  void lanes_along_rows();
  int64_t row_of(RangeSet ranges) const;
  void repeat_rows(int64_t row, int64_t vectors);

  // few_rows.cpp: where a tile has few rows.
  static bool is_few(int64_t rows);
  RegisterTile tile_of_few_rows(int64_t rows, double columns) const;
  void prefetch_streams();
  bool lies_along_steps(const UOp& reduce, int64_t column, int64_t row) const;
  void product_along_steps(int64_t steps, int64_t column, int64_t row);
  int64_t steps_beside(int64_t steps, int64_t row);

  // stream.cpp: where rows are long.
  double bytes_passed_again() const;
  std::optional<int64_t> block_of_stream(int64_t streamed) const;
  bool stream_rows();

  Editor& edit_;
  std::optional<size_t> row_;  // the position of the rows that a product's matrix is the same for
  RangeSet common_;            // what everything lies inside of
  int64_t rows_ = 1;           // of a tile
  int64_t vectors_ = 1;        // of the columns of a product
  int64_t place_ = -1;         // the number of the range outside of a tile of rows
  int64_t inner_ = -1;         // of the rows of a tile
  int64_t rows_max_ = 1;       // that registers hold
  int64_t beside_ = -1;        // the number of the range of more rows of the tile
  bool are_beside_in_registers_ = false;
};

}  // namespace tiny

// Kernels with one reduction (a product of matrices, a convolution, a pool, sums along an axis):
// the range with the lanes, the range whose steps are rows of a register tile, and the forms that
// sums of them take.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/choose/editor.h"
#include "codegen/choose/register_tile.h"
#include "codegen/choose/sliding_rows.h"
#include "codegen/choose/window.h"
#include "codegen/choose/words.h"

namespace tiny {

class Contraction {
 public:
  // `reduction` is one of the kernel's.  The editor and the words must outlive it.  `lanes`: the
  // position of the range that has them; the cheapest has where none is given.
  Contraction(Editor& edit, Words& words, const ClosureInfo& reduction,
              std::optional<size_t> lanes = std::nullopt);

  // Each form, in the order in which they are preferred: false, and nothing is done, where it does
  // not fit.
  bool has_lanes_of_outputs(int64_t count) const;
  std::optional<size_t> folded_row(std::optional<size_t> other) const;
  bool fold_lanes();   // lanes along the reduction, folded at the end
  bool slide();        // a sliding window: outputs side by side that share what they load
  bool walk_rows();    // rows of a large matrix in memory, each walked to its end
  bool pack_panels();  // a register tile whose operand is copied to panels, or lies so
  bool tile();         // a register tile of what lies as it is read
  bool pack_tiles();   // as pack_panels, for a matrix unit
  // The first that fits; false where none does.
  bool run();

  // The outputs whose full lanes cost least after those that were chosen, if there are any, and
  // whether that is about as much.
  std::optional<size_t> next_lanes() const { return next_lanes_; }
  bool is_next_close() const { return is_next_close_; }

 private:
  void choose_lane();
  double ops_of_sums() const;
  bool is_stored_along(size_t row) const;
  int64_t panel_vectors_max() const;
  void choose_row();
  double loads_of_columns() const;
  double bytes_in_pages(double uses) const;
  int64_t whole_row_vectors(int64_t height) const;
  std::optional<size_t> whole_rows() const;
  void walk_whole_rows(size_t rows);
  std::optional<size_t> rows_at_once() const;
  double bytes_of_vector() const;
  double loads_of_vector() const;
  int64_t vectors_max() const;
  void unroll_window(int64_t vectors);
  bool are_lanes_asked(size_t taps) const;
  void unroll_taps_of_tile(int64_t sums);
  std::optional<SlidingRows> sliding_rows_of(const RegisterTile& tile) const;
  std::optional<size_t> row() const;

  Editor& edit_;
  Words& words_;
  ClosureInfo reduction_;
  RangeSet outputs_ = 0;
  double steps_ = 1;  // of each sum
  size_t lane_;       // positions; the number of ranges where there is none
  size_t row_;
  std::optional<size_t> next_lanes_;
  bool is_next_close_ = false;
};

}  // namespace tiny

// A register tile of a contraction whose operand with the lanes is a packed panel: in scratch where
// it is read often and does not lie as it is read, or in place; how tiles of rows pass over the
// panels, and what is fetched meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/choose/editor.h"
#include "codegen/choose/next_tile.h"
#include "codegen/choose/register_tile.h"
#include "codegen/choose/sliding_rows.h"
#include "codegen/choose/words.h"

namespace tiny {

// What a contraction chose before its operand's panels, by positions.
struct ContractionTile {
  size_t lane = 0;
  size_t row = 0;
  RangeSet space = 0;  // the ranges that it runs over
  RegisterTile tile;
};

class PackedPanel {
 public:
  PackedPanel(Editor& edit, Words& words, const ClosureInfo& reduction,
              const ContractionTile& chosen);
  // False, and nothing is done, where no operand wants panels.
  bool run();

 private:
  // The operand with lanes, memoised as a panel: which it is, and how its ranges are cut.
  struct Panel {
    const AccessInfo* load = nullptr;
    int64_t columns = 0;      // of all panels that are filled together; 0: one tile's
    int64_t steps_range = 0;  // the position of the reduced range that is cut
    int64_t steps = 0;        // of it in a panel; 0: all
    bool in_place = false;    // it lies as panels already: columns of one tile side by side
    size_t column_range = 0;  // whose steps are panels (in_place), or columns
    double passes = 0;        // over it, by tiles of rows
    bool is_copied = true;    // if it does not lie as panels
  };
  // Of a range, by its position, so many steps.
  struct Part {
    size_t range = 0;
    int64_t size = 0;
  };
  // The numbers of the ranges that the tile's are cut into; outer and inner may be one.
  struct Cuts {
    int64_t blocks = -1;  // of steps,
    int64_t steps = -1;   // and those of one block
    int64_t column_blocks = -1;
    int64_t panels = -1;
    int64_t vectors = -1;
    int64_t lane = -1;
    int64_t parts = -1;  // of a range that the rows alone step with, one for a core at a time,
    int64_t in_part = -1;
    int64_t outer_row = -1;
    int64_t inner_row = -1;
  };
  // The loops in their order, and where panels are filled in them.
  struct Nest {
    std::vector<int64_t> order;
    std::vector<int64_t> layout;  // of a panel
    std::vector<int64_t> steps;
    int64_t outside = -1;  // the loop around all panels of the same columns
    int64_t place = -1;    // the loop that a panel is filled in
    bool has_panels_inside = false;
  };

  const AccessInfo* operand() const;
  const AccessInfo* rows_operand() const { return tiny::rows_operand(edit_, lane_, row_); }
  void slide_rows();
  Panel choose_panel() const;
  void cut_panel(Panel& panel, int64_t steps, double rows) const;
  std::optional<Part> rows_of_cores(const Panel& panel) const;
  bool are_rows_first() const;
  bool are_rows_shared() const;
  bool are_rows_in_memory() const;
  bool is_result_streamed() const;
  const AccessInfo* colliding_rows(size_t* along) const;
  void stage_rows();
  void stage_all_rows();
  const AccessInfo* scattered_rows() const;
  const AccessInfo* apart_rows() const;
  const AccessInfo* strided_rows() const;
  bool are_rows_far() const;
  bool holds_panels(const Panel& panel) const;
  bool is_walked_again(const AccessInfo& load, double passes) const;
  std::optional<size_t> range_read_again() const;
  int64_t steps_apart(size_t range) const;
  void stage_far_rows();
  void prefetch_panel();
  void prefetch_rows();
  bool is_far(const AccessInfo& a) const;
  bool are_panels_colliding() const;
  void prefetch_tiles(int64_t inside);
  void cut_ranges();
  bool counts_panels() const { return panel_.in_place && panel_.column_range != lane_; }
  std::vector<size_t> reduced_along(const AccessInfo* walked) const;
  std::vector<size_t> reduced_ranges() const;
  void order_loops();
  void order_steps();
  void fill_panel();
  void copy_rows();
  void unroll_steps();

  Editor& edit_;
  Words& words_;
  const ClosureInfo reduction_;
  const size_t lane_;
  const size_t row_;
  const RangeSet space_;
  RegisterTile tile_;
  std::optional<SlidingRows> sliding_;
  Panel panel_;
  Cuts cuts_;
  Nest nest_;
};

}  // namespace tiny

// A register tile of a contraction whose operand with the lanes is a packed panel: in scratch where
// it is read often and does not lie as it is read, or in place; how tiles of rows pass over the
// panels, and what is fetched meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/choose/editor.h"
#include "codegen/choose/panel_choice.h"
#include "codegen/choose/panel_rows.h"
#include "codegen/choose/sliding_rows.h"
#include "codegen/choose/words.h"

namespace tiny {

class PackedPanel {
 public:
  PackedPanel(Editor& edit, Words& words, const ClosureInfo& reduction,
              const ContractionTile& chosen);
  // False, and nothing is done, where no operand wants panels.
  bool run();

 private:
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

  void slide_rows();
  void cut_ranges();
  std::vector<size_t> reduced_along(const AccessInfo* walked) const;
  std::vector<size_t> reduced_ranges() const;
  void order_loops();
  void order_steps();
  void fill_panel();
  bool are_panels_colliding() const;
  void copy_rows();
  void stage_rows();
  void stage_all_rows();
  void stage_far_rows();
  void unroll_steps();
  void prefetch_panel();
  void prefetch_rows();
  void prefetch_tiles(int64_t inside);
  bool is_far(const AccessInfo& a) const;

  Editor& edit_;
  Words& words_;
  const ClosureInfo reduction_;
  ContractionTile at_;
  const PanelRows rows_;
  const PanelChoice choice_;
  std::optional<SlidingRows> sliding_;
  Panel panel_;
  Cuts cuts_;
  Nest nest_;
};

}  // namespace tiny

// Which operand of a contraction becomes a packed panel, in scratch or where it lies, and how much
// of it: all steps or blocks that stay in a near cache, for how many columns together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "codegen/choose/editor.h"
#include "codegen/choose/panel_rows.h"
#include "codegen/choose/register_tile.h"
#include "codegen/choose/words.h"

namespace tiny {

constexpr double kReadAgainMin = 4;   // before a panel that lies well enough is copied
constexpr double kPassesFew = 8;      // over a panel, by tiles of rows
constexpr double kPartOfFirst = 0.5;  // of the first level of cache, for panels that are read again

// What a contraction chose before its operand's panels, by positions.
struct ContractionTile {
  size_t lane = 0;
  size_t row = 0;
  RangeSet space = 0;  // the ranges that it runs over
  RegisterTile tile;
  bool is_of_tiles = false;  // a matrix unit's (ir/tile_products.h)
};

// The operand with lanes, memoised as a panel: which it is, and how its ranges are cut.
struct Panel {
  // Whether a range's steps are panels.
  bool are_counted(size_t lane) const { return in_place && column_range != lane; }

  const AccessInfo* load = nullptr;  // null: no panel
  int64_t columns = 0;               // of all panels that are filled together; 0: one tile's
  int64_t steps_range = 0;           // the position of the reduced range that is cut
  int64_t steps = 0;                 // of it in a panel; 0: all
  bool in_place = false;             // it lies as panels already: columns of one tile side by side
  size_t column_range = 0;           // whose steps are panels (in_place), or columns
  double passes = 0;                 // over it, by tiles of rows
  bool is_copied = true;             // if it does not lie as panels
};

// Of a range, by its position, so many steps.
struct PanelPart {
  size_t range = 0;
  int64_t size = 0;
};

// All that is passed must outlive it.
class PanelChoice {
 public:
  PanelChoice(const Editor& edit, const Words& words, const ClosureInfo& reduction,
              const ContractionTile& at, const PanelRows& rows)
      : edit_(edit), words_(words), reduction_(reduction), at_(at), rows_(rows) {}

  Panel choose() const;
  // What cores take of a range that the rows alone step with; none: they share the columns.
  std::optional<PanelPart> rows_of_cores(const Panel& panel) const;
  bool holds_panels(const Panel& panel) const;

 private:
  const AccessInfo* panels_operand() const;
  bool is_walked_again(const AccessInfo& load, double passes) const;
  void cut_panel(Panel& panel, int64_t steps, double rows) const;

  const Editor& edit_;
  const Words& words_;
  const ClosureInfo& reduction_;
  const ContractionTile& at_;
  const PanelRows& rows_;
};

}  // namespace tiny

// Whether each tile of rows meets all packed panels before the next tile, or each panel all tiles:
// what is read again from a near cache, and what cores share.
#pragma once

#include "codegen/choose/panel_choice.h"

namespace tiny {

// All that is passed must outlive it.
class PanelOrder {
 public:
  PanelOrder(const Editor& edit, const ClosureInfo& reduction, const ContractionTile& at,
             const PanelRows& rows, const PanelChoice& choice, const Panel& panel)
      : edit_(edit), reduction_(reduction), at_(at), rows_(rows), choice_(choice), panel_(panel) {}

  bool are_panels_inside() const {
    return panel_.steps != 0 || are_rows_first() || are_rows_shared() || are_rows_in_memory() ||
           is_result_streamed() || are_rows_far();
  }

 private:
  bool are_rows_first() const;
  bool are_rows_shared() const;
  bool are_rows_in_memory() const;
  bool is_result_streamed() const;
  bool are_rows_far() const;

  const Editor& edit_;
  const ClosureInfo& reduction_;
  const ContractionTile& at_;
  const PanelRows& rows_;
  const PanelChoice& choice_;
  const Panel& panel_;
};

}  // namespace tiny

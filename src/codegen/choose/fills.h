// How copies and values that a kernel keeps in scratch are filled.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/choose/editor.h"

namespace tiny {

inline constexpr int64_t kFillVectors = 4;  // of a value, computed side by side

// Whether a value has the range at this position and another one that has lanes: it can have those
// of one range alone.
bool lanes_would_meet(const Editor& edit, size_t range);

// Lanes for the fill of a stage, along the innermost of its ranges that are no steps of a word.
void fill_with_lanes(Editor& edit, const UOp& stage);

// A stage whose fill has lanes along the range that steps through its buffer one by one, and as
// many of them side by side, so that a square of elements turns in registers.
void fill_along(Editor& edit, const Option& stage);

// A factor that is computed for each row and step of one reduced range, but is the same for all
// columns.
struct Factor {
  UOp value;
  int64_t walked = 0;  // the number of its reduced range
};
std::optional<Factor> computed_factor(const UOp& reduce, const std::vector<int64_t>& columns,
                                      const std::vector<int64_t>& steps, int64_t row);

// Such a factor is computed once per row tile: the stage that keeps it; null if there is none.
UOp stage_factor(Editor& edit, const UOp& reduce, const std::vector<int64_t>& columns,
                 const std::vector<int64_t>& steps, int64_t outer_row, int64_t inner_row);

// The factor with the lanes, if it is computed of what is read, for all rows alike: a panel of what
// is read would have it computed anew for each tile of rows.
UOp computed_lanes(const Editor& edit, int64_t lane, const std::vector<int64_t>& rows);

}  // namespace tiny

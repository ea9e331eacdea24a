// Rows of a register tile that lie along a window: neighbours read what the window's next step
// reads, so that all its steps side by side load each element once for all rows, and know without
// asking which of them lie beyond the border.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/choose/editor.h"
#include "codegen/choose/register_tile.h"

namespace tiny {

struct SlidingRows {
  int64_t taps = -1;  // the number of the window's range, whose steps are to be unrolled
  int64_t rows = 1;   // of a tile, so that registers hold what they load
};

// Of a tile whose innermost reduced range is at `taps`; none where rows along `row` share nothing
// over its steps, or where sharing gains nothing.
std::optional<SlidingRows> sliding_rows(const Editor& edit, size_t lane, size_t row, size_t taps,
                                        const RegisterTile& tile);

// Whether neighbours along `row` read the same elements at different steps of the range at `taps`.
bool are_loads_shared(const Editor& edit, size_t lane, size_t row, size_t taps);

// The share of a range's outputs whose window reaches beyond the border of what it reads: each of
// their loads asks whether there is anything.
double share_at_borders(const Editor& edit, size_t lane, size_t row);

}  // namespace tiny

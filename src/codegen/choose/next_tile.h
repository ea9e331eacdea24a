// What the next register tile of a product reads and stores, fetched while this one is summed: a
// tile's rows are too many streams, those of a window and of an epilogue too short, for a processor
// to guess them all.  Nothing is where the second level of cache holds all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codegen/choose/editor.h"

namespace tiny {

// The load of a reduction that all lanes share, and that rows have of their own; null: there is
// none.
const AccessInfo* rows_operand(const Editor& edit, size_t lane, size_t row);

// The rows of the next tile; `loop`: over tiles of rows, if there are several.
void prefetch_next_rows(Editor& edit, size_t lane, size_t row, int64_t loop);

// What a tile's sums are combined with (a residual, the input of a derivative), and the places that
// sums are stored to, unless these pass the caches; `stores`: whether sums are stored once.
void prefetch_epilogue(Editor& edit, size_t lane, size_t row, bool stores);

}  // namespace tiny

#include "codegen/choose/sliding_rows.h"

#include <algorithm>
#include <cstdlib>

#include "base/checked.h"
#include "cost/borders.h"
#include "cost/estimate.h"
#include "ir/affine.h"

namespace tiny {

namespace {

constexpr int64_t kTapsMax = 16;    // steps that are unrolled
constexpr int64_t kSumsMin = 10;    // of a tile: fewer wait for their additions
constexpr int64_t kLoadsAgain = 3;  // registers that are wanted beyond those there are
// Of a tile whose few taps, side by side, take 0.73 to 1.12 of a loop that is left again at once,
// mostly 0.77 to 0.94; of 18 sums and more 0.70 to 1.47.  Models of the census on an Emerald
// Rapids, 2026-11-30.
constexpr int64_t kSumsFew = 12;

// The operand that has rows and is the same for all lanes, if there is one.
const AccessInfo* only_rows_operand(const Editor& edit, size_t lane, size_t row) {
  const AccessInfo* found = nullptr;
  for (const AccessInfo& a : edit.table().accesses) {
    if (a.store || !a.inside_reduction || a.strides[lane] != 0 || a.strides[row] == 0) continue;
    if (found || a.strides[row] == kOpaqueStride) return nullptr;
    found = &a;
  }
  return found;
}

// The steps of the range at `taps` from one row to the next; 0 where rows share nothing over them.
int64_t steps_of_row(const Editor& edit, size_t lane, size_t row, size_t taps) {
  const AccessInfo* load = only_rows_operand(edit, lane, row);
  if (!load) return 0;
  const int64_t step = load->strides[taps];
  if (step == 0 || step == kOpaqueStride || load->strides[row] % step != 0) return 0;
  const int64_t steps = load->strides[row] / step;
  return steps > 0 && steps < edit.const_extent(taps) ? steps : 0;
}

// Where rows reach beyond what is read: by how much, and the index by which they do.
struct RowsBeyond {
  Reach reach;
  std::optional<Affine> index;
};

RowsBeyond rows_beyond(const Editor& edit, size_t lane, size_t row) {
  const AccessInfo* load = only_rows_operand(edit, lane, row);
  if (!load || load->node.op() != Op::Load) return {};
  const ViewArg& view = load->node.view_arg();
  const UOp& range = edit.kernel().ranges[row].range;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const UOp& index = load->node.src(i + 1);
    if (reaches(index, range) && view.shape[i] != kSymbolicDim)
      return {reach_beyond(index, view.shape[i], {}), affine(index)};
  }
  return {};
}

// Whether a loop over the taps asks for each row if it is beyond the border: where more of its
// turns are there than are written apart.
bool asks_for_rows(const Editor& edit, size_t lane, size_t row, size_t taps) {
  const RowsBeyond beyond = rows_beyond(edit, lane, row);
  return turns_beyond(beyond.reach, beyond.index, edit.kernel().ranges[taps].range) > kPeeledMax;
}

}  // namespace

bool are_loads_shared(const Editor& edit, size_t lane, size_t row, size_t taps) {
  return steps_of_row(edit, lane, row, taps) > 0;
}

std::optional<SlidingRows> sliding_rows(const Editor& edit, size_t lane, size_t row, size_t taps,
                                        const RegisterTile& tile) {
  const int64_t steps = steps_of_row(edit, lane, row, taps);
  const int64_t count = edit.const_extent(taps), all = edit.const_extent(row);
  if (count > kTapsMax || all == 0) return std::nullopt;
  const int64_t registers = edit.machine().vector_registers + kLoadsAgain;
  const auto fits = [&](int64_t rows) {
    const int64_t loads = (rows - 1) * steps + count;
    return rows * tile.vectors + loads + tile.vectors <= registers;
  };
  // Of rows that are whole in a tile it is known which taps are beyond the border.  A loop over
  // them asks for each row unless it is cut where that changes, which costs more than loads that no
  // register keeps.
  const bool pays =
      steps == 0 ? count >= kTapsMany && asks_for_rows(edit, lane, row, taps) : fits(all);
  if (tile.rows >= all && pays && share_at_borders(edit, lane, row) > 0)
    return SlidingRows{edit.number(taps), all};
  if (steps == 0) return std::nullopt;
  // Where registers do not hold all that rows load, they hold what the next taps load again.
  const auto fits_meanwhile = [&](int64_t rows) {
    return rows * tile.vectors + (rows - 1) * steps + 1 + tile.vectors <= registers;
  };
  const int64_t most = std::min(tile.rows, all);
  const bool is_loop_enough = count < kTapsMany && (tile.vectors > 1 || steps > 1);
  if (is_loop_enough && most * tile.vectors > kSumsFew) return std::nullopt;
  const int64_t least = std::min(kSumsMin, all * tile.vectors);
  int64_t rows = most;
  while (rows > 0 && !fits(rows)) --rows;
  if (rows * tile.vectors < least) rows = most;
  while (rows > 0 && !fits_meanwhile(rows)) --rows;
  if (rows * tile.vectors < least) return std::nullopt;
  // Tiles of nearly equal size.
  return SlidingRows{edit.number(taps), ceil_div(all, ceil_div(all, rows))};
}

double share_at_borders(const Editor& edit, size_t lane, size_t row) {
  const RowsBeyond beyond = rows_beyond(edit, lane, row);
  return std::min(1.0, (beyond.reach.before + beyond.reach.behind) / edit.extent(row));
}

}  // namespace tiny

#include "codegen/choose/far_columns.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "codegen/options/prefetch.h"

namespace tiny {

namespace {

constexpr double kPartOfSecond = 0.75;  // level of cache, for rows that all columns meet
// Of that level: more columns come from beyond it, beside all that is touched between two kernels
// (a recurrence's weights).
constexpr double kColumnsHeld = 0.25;
constexpr int64_t kPassesMost = 32;  // over a tile's columns: in more, the first does not matter
constexpr int64_t kStepsOfTurn = 2;  // side by side, where that leaves many turns
constexpr int64_t kTurnsMin = 32;
constexpr int64_t kProductsOfTurn = 64;  // in registers

// What is read of all columns, of rows, and the outputs inside of the rows that columns lie along.
struct Walk {
  double columns = 0;  // bytes
  double rows = 0;     // the same
  RangeSet along = 0;
  const AccessInfo* only = nullptr;  // that reads columns
};

Walk walk_of(const Editor& edit, const ColumnsOfTile& tile) {
  Walk walk;
  size_t loads = 0;
  for (const AccessInfo& a : edit.table().accesses) {
    if (a.store || !a.inside_reduction) continue;
    const auto bytes = static_cast<double>(a.node.dtype().bytes());
    if (a.strides[tile.lane] == 0) {
      walk.rows += a.elements * bytes;
      continue;
    }
    double walked = 1, span = 1;
    for (size_t i = tile.row + 1; i < a.strides.size(); ++i) {
      if (a.strides[i] == 0) continue;
      walked *= edit.extent(i);
      span += a.strides[i] == kOpaqueStride
                  ? a.elements
                  : (edit.extent(i) - 1) * static_cast<double>(std::abs(a.strides[i]));
      walk.along |= RangeSet{1} << i & tile.outputs;
    }
    walk.columns += std::min(walked, span) * bytes;  // windows overlap
    walk.only = ++loads == 1 ? &a : nullptr;
  }
  return walk;
}

// What a turn of the loop over steps costs beside its products is missed where another thread
// shares the core, as in a packed panel.
void unroll_steps(Editor& edit, const ColumnsOfTile& tile) {
  if (!std::has_single_bit(tile.reduction.own) || kStepsOfTurn * tile.products > kProductsOfTurn)
    return;
  const auto steps = static_cast<size_t>(std::countr_zero(tile.reduction.own));
  const int64_t count = edit.const_extent(steps), number = edit.number(steps);
  if (count % kStepsOfTurn == 0 && count >= kStepsOfTurn * kTurnsMin && edit.is_loop(number))
    edit.kind(OptionKind::Unroll, edit.tile(number, kStepsOfTurn));
}

// The columns of the next tile, while few tiles of rows pass over those of this one.
void fetch_next(Editor& edit, const AccessInfo& columns, int64_t rows) {
  const KernelRange& passes = edit.range_now(rows);
  if (!passes.range.src(0).is_const() || passes.range.src(0).const_int() > kPassesMost) return;
  const Option option{OptionKind::Prefetch, rows, columns.node.src(0).int_arg(), {}, 0, false};
  if (can_prefetch(edit.now(), option)) edit.apply(option);
}

}  // namespace

void walk_far_columns_once(Editor& edit, const ColumnsOfTile& tile) {
  const int64_t rows = edit.number(tile.row);
  if (!edit.is_loop(rows)) return;
  const Walk walk = walk_of(edit, tile);
  const auto l2 = static_cast<double>(edit.machine().l2_bytes);
  if (walk.along == 0 || walk.columns <= l2 * kColumnsHeld ||
      walk.rows + tile.bytes > l2 * kPartOfSecond)
    return;
  std::vector<int64_t> first, order;  // without what lanes and registers have whole
  for (RangeSet set = walk.along; set; set &= set - 1) {
    const int64_t at = edit.number(static_cast<size_t>(std::countr_zero(set)));
    if (edit.is_loop(at)) first.push_back(at);
  }
  if (first.empty()) return;
  for (const KernelRange& r : edit.now().ranges) {
    const int64_t at = r.range.int_arg();
    if (at == rows) order.insert(order.end(), first.begin(), first.end());
    if (std::ranges::count(first, at) == 0) order.push_back(at);
  }
  edit.apply({OptionKind::Order, -1, 0, order, 0, false});
  unroll_steps(edit, tile);
  if (walk.only) fetch_next(edit, *walk.only, rows);
}

}  // namespace tiny

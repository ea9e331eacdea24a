// Rows that are too long for a tile of them to stay in the cache: their reductions run along
// blocks, each for many tiles of rows.
#include <algorithm>
#include <bit>

#include "codegen/chooser.h"
#include "codegen/stream_option.h"
#include "ir/bounds.h"
#include "ir/shared_value.h"

namespace tiny {

namespace {

// Of a block of rows, which share what is read of a block of steps.
constexpr int64_t kTilesOfRows = 8;

}  // namespace

// `row` and `common` are then the rows of a block, and what lies outside of what is done with them.
bool Chooser::stream_rows(std::optional<size_t>& row, uint64_t& common) {
  if (lanes_ < 2) return false;
  const int64_t streamed = streamed_range(kernel_);
  if (streamed < 0) return false;
  const int64_t tile_rows = tile_of_rows(row, common).rows;
  const double step_bytes =
      kStagesOfRows * static_cast<double>(tile_rows) * static_cast<double>(table_.widest_bytes);
  const double steps = extent(kernel_.find_range(streamed));
  // A tile of half the rows is as good as one along blocks.
  if (steps * step_bytes / 2 <= static_cast<double>(target_.l2_bytes) / 2) return false;
  // A tile's part of a block is read again before it has left the second level of cache.
  const auto fit = static_cast<uint64_t>(2 * static_cast<double>(target_.l1_bytes) / step_bytes);
  const auto block = std::max(static_cast<int64_t>(std::bit_floor(fit)), lanes_);
  if (steps <= static_cast<double>(block)) return false;
  const int64_t rows = kTilesOfRows * tile_rows;
  const int64_t blocks = current_.next_range_number();
  std::vector<int64_t> order;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if ((common & bit(i)) && i != row) order.push_back(number(i));
  apply({OptionKind::Stream, streamed, block, {}, 0, false});
  const int64_t outer = row ? number(*row) : -1;
  const bool is_cut = row && most(*row) > rows;
  const int64_t inner = is_cut ? tile(outer, rows) : outer;
  if (is_cut) order.push_back(outer);
  order.push_back(blocks);
  if (row) order.push_back(inner);
  for (const KernelRange& r : current_.ranges)
    if (std::ranges::count(order, r.range.int_arg()) == 0) order.push_back(r.range.int_arg());
  apply({OptionKind::Order, -1, 0, order, 0, false});
  kernel_ = current_;
  table_ = access_table(kernel_);
  if (row) row = kernel_.find_range(inner);
  common = bit(kernel_.find_range(row ? inner : blocks) + 1) - 1;
  row_tile_.place = blocks;
  return true;
}

}  // namespace tiny

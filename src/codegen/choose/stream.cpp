// Rows that are too long for a tile of them to stay in the cache: their reductions run along
// blocks, each for many tiles of rows.
#include <algorithm>
#include <bit>

#include "codegen/choose/chooser.h"
#include "codegen/options/stream.h"
#include "ir/bounds.h"
#include "ir/shared_value.h"

namespace tiny {

namespace {

// Of a block of rows, which share what is read of a block of steps.
constexpr int64_t kTilesOfRows = 8;
// Steps of a block where rows need the first of them only.
constexpr double kBoundedBlock = 256;
// The part of the second level of cache that a block of a matrix takes.
constexpr double kPartOfBlock = 8;

}  // namespace

// Of a step: what few rows read of the columns' matrix, if there are more columns than registers
// for them, so that it is passed over several times.
double Chooser::bytes_passed_again(std::optional<size_t> row, uint64_t common) const {
  const RegisterTile tile = tile_of_rows(row, common);
  if (row && most(*row) > tile.rows) return 0;
  const double columns = columns_of_stores(common);
  return columns > static_cast<double>(tile.vectors * lanes_)
             ? columns * static_cast<double>(table_.widest_bytes)
             : 0;
}

// `row` and `common` are then the rows of a block, and what lies outside of what is done with them.
bool Chooser::stream_rows(std::optional<size_t>& row, uint64_t& common) {
  if (lanes_ < 2) return false;
  const int64_t streamed = streamed_range(kernel_);
  if (streamed < 0) return false;
  const int64_t tile_rows = tile_of_rows(row, common).rows;
  const double step_bytes =
      kStagesOfRows * static_cast<double>(tile_rows) * static_cast<double>(table_.widest_bytes);
  const double steps = extent(kernel_.find_range(streamed));
  const auto l2 = static_cast<double>(target_.l2_bytes);
  // A tile's part of a block is read again before it has left the second level of cache.
  double fit = 2 * static_cast<double>(target_.l1_bytes) / step_bytes;
  // A tile of half the rows is as good as one along blocks.
  bool is_needed = steps * step_bytes / 2 > l2 / 2;
  const double again_bytes = bytes_passed_again(row, common);
  if (steps * again_bytes > l2 / 2) {
    fit = std::min(fit, l2 / kPartOfBlock / again_bytes);
    is_needed = true;
  }
  if (row && is_bounded_stream(kernel_, streamed)) fit = std::min(fit, kBoundedBlock);
  const auto block =
      std::max(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(fit))), lanes_);
  if (!is_needed || steps <= static_cast<double>(block)) return false;
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

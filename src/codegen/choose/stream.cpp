// Rows that are too long for a tile of them to stay in the cache: their reductions run along
// blocks, each for many tiles of rows.
#include <algorithm>
#include <bit>

#include "codegen/choose/row_tiles.h"
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
double RowTiles::bytes_passed_again() const {
  const RegisterTile tile = tile_of_rows();
  if (row_ && edit_.most(*row_) > tile.rows) return 0;
  const double columns = columns_of_stores();
  return columns > static_cast<double>(tile.vectors * edit_.lanes())
             ? columns * static_cast<double>(edit_.table().widest_bytes)
             : 0;
}

// The steps of a block that rows run along; none where a tile of rows stays near without.
std::optional<int64_t> RowTiles::block_of_stream(int64_t streamed) const {
  const int64_t tile_rows = tile_of_rows().rows;
  const double step_bytes = kStagesOfRows * static_cast<double>(tile_rows) *
                            static_cast<double>(edit_.table().widest_bytes);
  const double steps = edit_.extent(edit_.kernel().find_range(streamed));
  const auto l2 = static_cast<double>(edit_.machine().l2_bytes);
  // A tile's part of a block is read again before it has left the second level of cache.
  double fit = 2 * static_cast<double>(edit_.machine().l1_bytes) / step_bytes;
  // A tile of half the rows is as good as one along blocks.
  bool is_needed = steps * step_bytes / 2 > l2 / 2;
  const double again_bytes = bytes_passed_again();
  if (steps * again_bytes > l2 / 2) {
    fit = std::min(fit, l2 / kPartOfBlock / again_bytes);
    is_needed = true;
  }
  if (row_ && is_bounded_stream(edit_.kernel(), streamed)) fit = std::min(fit, kBoundedBlock);
  const auto block =
      std::max(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(fit))), edit_.lanes());
  if (!is_needed || steps <= static_cast<double>(block)) return std::nullopt;
  return block;
}

// The rows of the tiles are then those of a block, inside of what lies around them.
bool RowTiles::stream_rows() {
  if (edit_.lanes() < 2) return false;
  const int64_t streamed = streamed_range(edit_.kernel());
  if (streamed < 0) return false;
  const std::optional<int64_t> block = block_of_stream(streamed);
  if (!block) return false;
  const int64_t rows = kTilesOfRows * tile_of_rows().rows;
  const int64_t blocks = edit_.now().next_range_number();
  std::vector<int64_t> order;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if ((common_ & bit(i)) && i != row_) order.push_back(edit_.number(i));
  edit_.apply({OptionKind::Stream, streamed, *block, {}, 0, false});
  const int64_t outer = row_ ? edit_.number(*row_) : -1;
  const bool is_cut = row_ && edit_.most(*row_) > rows;
  const int64_t inner = is_cut ? edit_.tile(outer, rows) : outer;
  if (is_cut) order.push_back(outer);
  order.push_back(blocks);
  if (row_) order.push_back(inner);
  for (const KernelRange& r : edit_.now().ranges)
    if (std::ranges::count(order, r.range.int_arg()) == 0) order.push_back(r.range.int_arg());
  edit_.apply({OptionKind::Order, -1, 0, order, 0, false});
  edit_.restart();
  if (row_) row_ = edit_.kernel().find_range(inner);
  common_ = bit(edit_.kernel().find_range(row_ ? inner : blocks) + 1) - 1;
  place_ = blocks;
  return true;
}

}  // namespace tiny

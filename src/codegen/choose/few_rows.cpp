// Products of tiles of few rows: what all rows read is used a few times before the next is wanted,
// so that they take as long as reading it.  Lanes go the way it lies, and sums stand side by side
// so that none waits for itself.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/checked.h"
#include "codegen/choose/row_tiles.h"
#include "codegen/options/prefetch.h"
#include "ir/bounds.h"

namespace tiny {

namespace {

// So many rows are folded sooner than what they read is laid across.
constexpr int64_t kFoldedRows = 4;
// Sums at once: each waits four cycles for itself, and two are begun in one.
constexpr int64_t kSumsBeside = 8;
// Vectors of steps in a turn of a loop.
constexpr int64_t kFoldedVectors = 4;

}  // namespace

bool RowTiles::is_few(int64_t rows) {
  return rows <= kFoldedRows;
}

// All columns at once if registers hold the sums, so that a matrix is walked as it lies; else in as
// few passes as there must be.
RegisterTile RowTiles::tile_of_few_rows(int64_t rows, double columns) const {
  const auto needed =
      static_cast<int64_t>(std::ceil(std::max(columns, 1.0) / static_cast<double>(edit_.lanes())));
  const int64_t fit = (edit_.machine().vector_registers - 3) / (rows + 1);
  const int64_t passes = ceil_div(needed, fit);
  return {rows, ceil_div(needed, passes), 0};
}

// What is read once, along a loop, is fetched some steps before.
void RowTiles::prefetch_streams() {
  const AccessTable table = access_table(edit_.now());
  const size_t begin = place_ < 0 ? 0 : edit_.now().find_range(place_) + 1;
  for (const AccessInfo& a : table.accesses) {
    if (a.store || a.node.op() != Op::Load) continue;
    const int64_t param = a.node.src(0).int_arg();
    auto bytes = static_cast<double>(a.node.dtype().bytes());
    for (size_t i = 0; i < edit_.now().ranges.size(); ++i)
      if (a.strides[i] != 0) bytes *= table.extents[i];
    if (bytes < static_cast<double>(edit_.machine().l2_bytes)) continue;
    // The innermost loop that walks it.
    for (size_t i = edit_.now().ranges.size(); i-- > begin;) {
      const KernelRange& r = edit_.now().ranges[i];
      if (a.strides[i] == 0 || r.kind != RangeKind::Loop) continue;
      const Option option{OptionKind::Prefetch, r.range.int_arg(), param, {}, 0, false};
      if (!can_prefetch(edit_.now(), option)) continue;
      edit_.apply(option);
      break;
    }
  }
}

// Whether the operand of the columns lies along the steps, of which there is a vector, and is read
// for few rows.
bool RowTiles::lies_along_steps(const UOp& reduce, int64_t column, int64_t row) const {
  if (edit_.lanes() < 2 || reduce.src().size() != 2) return false;
  const int64_t rows = row < 0 || row == column ? 1 : edit_.most_of(row);
  const UOp& steps = reduce.src(1);
  if (!is_few(rows) || !steps.src(0).is_const() || steps.src(0).const_int() < edit_.lanes())
    return false;
  const size_t along = edit_.now().position(steps);
  const size_t across = edit_.now().find_range(column);
  bool is_along = false;
  for (const AccessInfo& a : access_table(edit_.now()).accesses) {
    if (a.store || a.strides[along] == 0) continue;
    if (a.strides[along] != 1) return false;
    is_along = is_along || (a.strides[across] != 0 && a.node.op() == Op::Load);
  }
  return is_along;
}

// Lanes along the steps, folded for each column; columns side by side.
void RowTiles::product_along_steps(int64_t steps, int64_t column, int64_t row) {
  const bool has_rows = row >= 0 && row != column;
  const int64_t rows = has_rows ? edit_.most_of(row) : 1;
  const int64_t columns = std::max<int64_t>(kSumsBeside / rows, kFoldedRows);
  const int64_t beside = edit_.most_of(column) > columns ? edit_.tile(column, columns) : column;
  const int64_t size = edit_.most_of(steps);
  const int64_t vectors = std::min(kFoldedVectors, size / edit_.lanes());
  const int64_t turn =
      size == vectors * edit_.lanes() ? steps : edit_.tile(steps, vectors * edit_.lanes());
  const int64_t lane = vectors > 1 ? edit_.tile(turn, edit_.lanes()) : turn;
  std::vector<int64_t> order;
  if (beside != column) order.push_back(column);
  if (turn != steps) order.push_back(steps);
  if (vectors > 1) order.push_back(turn);
  order.push_back(beside);
  if (has_rows) order.push_back(row);
  order.push_back(lane);
  edit_.apply({OptionKind::Order, -1, 0, order, 0, false});
  edit_.kind(OptionKind::Vec, lane);
  if (vectors > 1) edit_.kind(OptionKind::Unroll, turn);
  if (has_rows) edit_.kind(OptionKind::Upcast, row);
  if (edit_.most_of(beside) <= columns) edit_.kind(OptionKind::Upcast, beside);
}

// Of a product of few rows some steps get sums of their own: the number of their range, -1 if there
// are sums enough.
int64_t RowTiles::steps_beside(int64_t steps, int64_t row) {
  const int64_t rows = row < 0 ? 1 : edit_.most_of(row);
  const int64_t sums = kSumsBeside / (rows * vectors_);
  if (sums < 2 || edit_.range_now(steps).kind != RangeKind::Loop || edit_.most_of(steps) <= sums)
    return -1;
  return edit_.tile(steps, sums);
}

}  // namespace tiny

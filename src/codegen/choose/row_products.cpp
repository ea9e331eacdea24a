// The products of a tile of rows: columns with lanes, rows beside each other, steps outside; what
// their operands are copied to, and the lanes of what is reduced along rows.
#include <algorithm>
#include <bit>
#include <map>

#include "base/checked.h"
#include "codegen/choose/fills.h"
#include "codegen/choose/lanes.h"
#include "codegen/choose/row_tiles.h"
#include "codegen/choose/window.h"
#include "ir/bounds.h"

namespace tiny {

namespace {

constexpr int64_t kTapsBeside = 12;  // registers for what is not a tile's values
// Lanes that a row's reduction has: of so many times its elements at most.
constexpr int64_t kLanesOfRowMin = 4;
constexpr double kPartOfLastCache = 4;  // that a panel of the columns takes at most

std::vector<int64_t> closed_by(const UOp& closer) {
  std::vector<int64_t> numbers;
  for (const UOp& r : closer.src().subspan(1)) numbers.push_back(r.int_arg());
  return numbers;
}

}  // namespace

// The lanes that a vector along the range has: one where something is read along it in steps that
// are no number; fewer than others have where what is checked, or gathered, is an index of 64 bits.
int64_t RowTiles::lanes_along(size_t position) const {
  const AccessTable table = access_table(edit_.now());
  const bool is_opaque = std::ranges::any_of(table.accesses, [&](const AccessInfo& a) {
    return !a.store && a.node.op() != Op::Index && a.strides[position] == kOpaqueStride;
  });
  if (is_opaque) return 1;
  return std::min(edit_.lanes(), table.lanes_along(position, edit_.machine().vector_bytes));
}

// Splits columns into tiles of vectors.
RowTiles::Columns RowTiles::cut_columns(int64_t range, int64_t vectors) {
  Columns out;
  if (edit_.lanes() < 2) return out;
  const size_t at = edit_.now().find_range(range);
  int64_t lanes = lanes_along(at);
  const UOp size = edit_.now().ranges[at].range.src(0);
  const int64_t n = size.is_const() ? size.const_int() : 0;
  if (n > 0 && n < lanes) lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  if (n > 0) vectors = std::clamp<int64_t>(vectors, 1, (n + lanes - 1) / lanes);
  if (lanes < 2) return out;
  int64_t inner = range;
  if (n != vectors * lanes) inner = edit_.tile(range, vectors * lanes);
  if (inner != range && edit_.has_range(range)) out.tiles = range;
  out.lane = vectors > 1 ? edit_.tile(inner, lanes) : inner;
  if (vectors > 1) out.vectors = inner;
  return out;
}

void RowTiles::give_lanes(const Columns& columns) {
  if (columns.lane >= 0) edit_.kind(OptionKind::Vec, columns.lane);
  if (columns.vectors >= 0) edit_.kind(OptionKind::Upcast, columns.vectors);
}

void RowTiles::fill_rows(const UOp& stage) {
  const UOp column = stage.src(stage.src().size() - 1);
  if (!edit_.is_loop(column.int_arg())) return;  // another value of the same columns has lanes
  if (lanes_would_meet(edit_, edit_.now().position(column))) return;
  FreeRanges free;
  add_free_ranges(edit_.now(), {&stage.src(0), 1}, free);
  const RangeSet columns = bit(edit_.now().position(column));
  for (const UOp& u : topological({&stage.src(0), 1}, is_stage))
    if (u.op() == Op::Reduce && (free.at(u.node()) & columns)) {
      const UOp& row = stage.src(std::max<size_t>(stage.src().size() - 2, 1));
      if (!fill_window(stage, u)) product(u, column.int_arg(), row.int_arg());
      return;
    }
  give_lanes(cut_columns(column.int_arg(), std::min(vectors_, kVectorsMax)));
}

// Sums of windows in a stage that holds them for a tile of rows.
bool RowTiles::fill_window(const UOp& stage, const UOp& reduce) {
  if (stage.src().size() < 3) return false;
  const int64_t column = stage.src(stage.src().size() - 1).int_arg();
  const UOp& row = stage.src(stage.src().size() - 2);
  const auto window = window_tile(edit_, reduce, column, bit(edit_.now().position(row)),
                                  static_cast<double>(edit_.lanes()));
  if (!window) return false;
  const Columns columns = cut_columns(column, 1);
  if (columns.lane < 0) return false;
  const int64_t inner = window_tile_range(edit_, *window);
  // Columns before other rows of the stage, whose windows lie on the same elements.
  std::vector<int64_t> order;
  if (inner != window->range) order.push_back(window->range);
  if (columns.tiles >= 0) order.push_back(columns.tiles);
  for (const UOp& r : stage.src().subspan(1, stage.src().size() - 3)) order.push_back(r.int_arg());
  for (const UOp& r : reduce.src().subspan(1))
    if (r.int_arg() != window->taps) order.push_back(r.int_arg());
  order.insert(order.end(), {window->taps, inner, columns.lane});
  edit_.apply({OptionKind::Order, -1, 0, order, 0, false});
  give_lanes(columns);
  edit_.kind(OptionKind::Upcast, inner);
  unroll_taps(edit_, *window, reduce);
  // Other rows too, if their values and a row of taps stay in registers.
  int64_t values = window->rows;
  for (const UOp& r : stage.src().subspan(1, stage.src().size() - 3)) {
    const KernelRange& other = edit_.now().ranges[edit_.now().find_range(r.int_arg())];
    const int64_t size = r.src(0).is_const() ? r.src(0).const_int() : 0;
    if (!window->unrolls_all || size < 2 || other.kind != RangeKind::Loop) continue;
    if (values * size + kTapsBeside > edit_.machine().vector_registers) continue;
    edit_.kind(OptionKind::Upcast, r.int_arg());
    values *= size;
  }
  return true;
}

// Outer columns that a product has beside those with lanes: panels that lie in place.
std::vector<int64_t> RowTiles::panels_of(const UOp& reduce, int64_t column, int64_t row) const {
  FreeRanges free;
  add_free_ranges(edit_.now(), {&reduce, 1}, free);
  std::vector<int64_t> out;
  for (size_t i = begin_of_tile(); i < edit_.now().ranges.size(); ++i) {
    const int64_t r = edit_.now().ranges[i].range.int_arg();
    const bool is_loop = edit_.now().ranges[i].kind == RangeKind::Loop;
    const bool is_column = r != column && r != row && r != inner_;
    if (is_loop && is_column && (free.at(reduce.node()) & bit(i))) out.push_back(r);
  }
  return out;
}

// The register tile of a product: columns with lanes, rows beside each other, steps outside.
void RowTiles::product(const UOp& reduce, int64_t column, int64_t row) {
  const std::vector<int64_t> steps = closed_by(reduce);
  if (lies_along_steps(reduce, column, row)) return product_along_steps(steps[0], column, row);
  const std::vector<int64_t> panels = panels_of(reduce, column, row);
  const Columns columns = cut_columns(column, vectors_);
  if (columns.lane < 0) return;
  std::vector<int64_t> order = panels;
  const auto add = [&](int64_t r) {
    if (r >= 0) order.push_back(r);
  };
  add(columns.tiles);
  const bool has_rows = row >= 0 && row != column;
  const bool is_tile = has_rows && row == inner_;
  if (is_tile && !are_beside_in_registers_) add(beside_);
  order.insert(order.end(), steps.begin(), steps.end());
  if (is_tile && are_beside_in_registers_) add(beside_);
  const int64_t beside = steps_beside(steps.back(), has_rows ? row : -1);
  add(beside);
  if (has_rows) add(row);
  add(columns.vectors);
  add(columns.lane);
  edit_.apply({OptionKind::Order, -1, 0, order, 0, false});
  stage_panel(steps, columns);
  give_lanes(columns);
  if (beside >= 0) edit_.kind(OptionKind::Upcast, beside);
  // A stage of a few rows has them side by side already.
  if (has_rows && edit_.now().ranges[edit_.now().find_range(row)].kind == RangeKind::Loop)
    edit_.kind(OptionKind::Upcast, row);
}

// The operand that has the columns, if they lie apart: one panel for all tiles of rows.
void RowTiles::stage_panel(const std::vector<int64_t>& steps, const Columns& columns) {
  const AccessTable table = access_table(edit_.now());
  const size_t lane = edit_.now().find_range(columns.lane);
  for (const AccessInfo& a : table.accesses) {
    if (a.node.op() != Op::Load || a.strides[lane] == 0 || a.strides[lane] == 1) continue;
    const auto is_walked = [&](int64_t step) {
      return a.strides[edit_.now().find_range(step)] != 0;
    };
    if (!std::ranges::all_of(steps, is_walked)) continue;
    const int64_t slot = a.node.src(0).int_arg();
    const auto same = std::ranges::count_if(table.accesses, [&](const AccessInfo& other) {
      return !other.store && other.node.op() == Op::Load && other.node.src(0).int_arg() == slot;
    });
    if (same != 1) continue;
    std::vector<int64_t> layout;
    if (columns.tiles >= 0) layout.push_back(columns.tiles);
    layout.insert(layout.end(), steps.begin(), steps.end());
    if (columns.vectors >= 0) layout.push_back(columns.vectors);
    layout.push_back(columns.lane);
    int64_t place = -1;
    double bytes = a.elements * static_cast<double>(a.node.dtype().bytes());
    size_t inside = 0;  // the first position inside the place
    for (size_t i = 0; i < edit_.now().ranges.size(); ++i) {
      const int64_t r = edit_.now().ranges[i].range.int_arg();
      const bool is_walked_inside = std::ranges::count(layout, r) > 0;
      if (r == inner_ || is_walked_inside) break;
      if (a.strides[i] != 0) {
        place = r;
        bytes /= table.extents[i];
        inside = i + 1;
      }
      if (r == place_) break;
    }
    if (std::find(a.strides.begin() + static_cast<int64_t>(inside), a.strides.end(),
                  kOpaqueStride) != a.strides.end())
      continue;
    if (bytes > static_cast<double>(edit_.machine().l3_bytes) / kPartOfLastCache) continue;
    fill_along(edit_, {OptionKind::Stage, place, slot, layout, 0, false});
    return;
  }
}

// The output range along which an operand lies side by side, where none does in what is stored.
int64_t RowTiles::column_of_product(const AccessTable& table) const {
  uint64_t outputs = 0;
  for (const ClosureInfo& c : table.closures)
    if (c.store) outputs |= c.own;
  for (size_t i = begin_of_tile(); i < edit_.now().ranges.size(); ++i) {
    const KernelRange& r = edit_.now().ranges[i];
    if (!(outputs & bit(i)) || r.kind != RangeKind::Loop || r.range.int_arg() == inner_) continue;
    for (const AccessInfo& a : table.accesses)
      if (!a.store && a.strides[i] == 1) return r.range.int_arg();
  }
  return -1;
}

// The column of what is stored that lies side by side in memory.
int64_t RowTiles::column_of_store(const AccessTable& table) const {
  int64_t column = -1;
  for (const AccessInfo& a : table.accesses)
    for (size_t i = 0; a.store && i < edit_.now().ranges.size(); ++i) {
      const KernelRange& r = edit_.now().ranges[i];
      const bool outside = r.range.int_arg() == inner_ || r.range.int_arg() == place_;
      if (a.strides[i] == 1 && !outside && r.kind == RangeKind::Loop) column = r.range.int_arg();
    }
  return column;
}

// What the tiles of rows end in, and the lanes of reductions along rows.
void RowTiles::finish_rows() {
  FreeRanges free;
  add_free_ranges(edit_.now(), edit_.now().roots, free);
  const AccessTable table = access_table(edit_.now());
  int64_t column = column_of_store(table);
  if (column < 0) column = column_of_product(table);
  // A sum over what fills a stage, with lanes, may be one of these columns'.
  if (column >= 0 && !lanes_would_meet(edit_, edit_.now().find_range(column))) {
    const size_t at = edit_.now().find_range(column);
    UOp reduce;
    for (const UOp& u : topological(edit_.now().roots, is_stage))
      if (u.op() == Op::Reduce && (free.at(u.node()) & bit(at))) reduce = u;
    if (reduce)
      product_of_stores(reduce, column);
    else
      give_lanes(cut_columns(column, vectors_));
  }
  lanes_along_rows();
}

void RowTiles::product_of_stores(const UOp& reduce, int64_t column) {
  const std::vector<int64_t> steps = closed_by(reduce);
  product(reduce, column, inner_);
  // Columns that are one padded vector have another number since they were cut.
  std::vector<int64_t> columns{column};
  for (const KernelRange& r : edit_.now().ranges) {
    const int64_t number = r.range.int_arg();
    if (r.kind == RangeKind::Vec && std::ranges::count(steps, number) == 0)
      columns.push_back(number);
  }
  for (const UOp& u : topological(edit_.now().roots, is_stage)) {
    if (u.op() != Op::Reduce || closed_by(u) != steps) continue;
    if (const UOp stage = stage_factor(edit_, u, columns, steps, place_, inner_)) {
      if (inner_ < 0)
        fill_with_lanes(edit_, stage);
      else
        fill_rows(stage);
    }
    break;
  }
  // Later than the stage, which has loops for its rows so.
  if (are_beside_in_registers_) edit_.kind(OptionKind::Upcast, beside_);
}

// Reductions of what lies in scratch have lanes along it.
void RowTiles::lanes_along_rows() {
  if (edit_.lanes() < 2) return;
  std::vector<int64_t> ranges;
  std::map<int64_t, int64_t> rows;  // by number: elements of the longest reduction
  const AccessTable table = access_table(edit_.now());
  for (const ClosureInfo& c : table.closures) {
    if (c.store || std::popcount(c.own) != 1) continue;
    const auto at = static_cast<size_t>(std::countr_zero(c.own));
    const KernelRange& r = edit_.now().ranges[at];
    const int64_t most = bounds(r.range.src(0)).hi;
    if (r.kind != RangeKind::Loop || kLanesOfRowMin * most < edit_.lanes()) continue;
    bool contiguous = true;
    for (const AccessInfo& a : table.accesses)
      contiguous =
          contiguous && (a.node.op() == Op::Index || a.strides[at] == 0 || a.strides[at] == 1);
    if (!contiguous || lanes_would_meet(edit_, at) ||
        std::ranges::count(ranges, r.range.int_arg()) != 0)
      continue;
    ranges.push_back(r.range.int_arg());
    int64_t& longest = rows[row_of(c.below & ~c.own)];
    longest = std::max(longest, most);
  }
  const int64_t most = std::min(vectors_, kVectorsMax);
  for (int64_t r : ranges) give_lanes(cut_columns(r, most));
  for (const auto& [row, elements] : rows)
    repeat_rows(row, std::min(most, ceil_div(elements, edit_.lanes())));
}

// The number of the innermost loop among these ranges; -1 if there is none.
int64_t RowTiles::row_of(RangeSet ranges) const {
  int64_t row = -1;
  for (size_t i = 0; i < edit_.now().ranges.size(); ++i) {
    const KernelRange& r = edit_.now().ranges[i];
    if ((ranges & bit(i)) && r.kind == RangeKind::Loop && !r.reduced) row = r.range.int_arg();
  }
  return row;
}

// Rows of the tile side by side, in turns of one size, with as many of their vectors as half of the
// registers hold: what one folds does not wait for the other.
void RowTiles::repeat_rows(int64_t row, int64_t vectors) {
  if (row < 0) return;
  const bool has_place = place_ >= 0;
  if (has_place && edit_.now().find_range(row) <= edit_.now().find_range(place_)) return;
  const int64_t rows = edit_.most_of(row);
  const int64_t most = std::max<int64_t>(edit_.machine().vector_registers / (2 * vectors), 1);
  const int64_t beside = ceil_div(rows, ceil_div(rows, most));
  if (beside < 2) return;
  const bool is_whole = edit_.range_now(row).range.src(0).is_const_int(beside);
  edit_.kind(OptionKind::Upcast, is_whole ? row : edit_.tile(row, beside));
}

}  // namespace tiny

// The options of kernels whose reductions all lie inside of rows, some of them contractions: a
// product, what is reduced of its rows, a product of that.  A tile of rows goes through all of it
// at once; what is wanted more than once of the tile is kept in scratch, its columns side by side.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "codegen/choose/chooser.h"
#include "codegen/options/prefetch.h"
#include "codegen/options/stage.h"
#include "ir/bounds.h"
#include "ir/shared_value.h"

namespace tiny {

namespace {

constexpr int64_t kScalarRows = 8;   // of a tile, where there are no lanes
constexpr int64_t kRowPadding = 16;  // elements: rows of a power of two would share sets of a cache
constexpr int64_t kRowsBeside = 2;   // rows of another range in a tile
constexpr int64_t kRowsBesideOddMin = 13;  // of an odd number
constexpr int64_t kPassesOfStreams = 2;    // over what tiles of rows read, for which it streams
constexpr double kPartOfBlock = 8;         // of the second level of cache, for what comes next

std::vector<int64_t> closed_by(const UOp& closer) {
  std::vector<int64_t> numbers;
  for (const UOp& r : closer.src().subspan(1)) numbers.push_back(r.int_arg());
  return numbers;
}

}  // namespace

bool Chooser::row_tiles() {
  const size_t count = common_outer_ranges(kernel_);
  uint64_t common = bit(count) - 1;
  const auto has_columns = [&](const ClosureInfo& closure) {
    return !closure.store && (closure.below & ~closure.own & ~common) != 0;
  };
  if (std::ranges::none_of(table_.closures, has_columns)) return false;
  std::optional<size_t> row = rows_of_matrix(count);
  if (!row && !weighs_columns(common)) return false;
  const bool is_streamed = stream_rows(row, common);
  if (!is_streamed) order_rows(row, count);
  const int64_t outside = row_tile_.place;
  cut_rows(row, common);
  if (!is_streamed && row && outside >= 0) cut_rows_beside(outside, *row);
  stage_shared_values();
  finish_rows();
  if (!is_streamed) prefetch_operands();
  if (!row || most(*row) <= kPassesOfStreams * row_tile_.rows) prefetch_streams();
  return true;
}

// The position of the rows that a product's matrix is the same for.
std::optional<size_t> Chooser::rows_of_matrix(size_t count) const {
  std::optional<size_t> row;
  for (const AccessInfo& a : table_.accesses) {
    const auto walked = std::count_if(a.strides.begin() + static_cast<int64_t>(count),
                                      a.strides.end(), [](int64_t s) { return s != 0; });
    if (!a.inside_reduction || walked < 2) continue;
    for (size_t i = 0; i < count; ++i)
      if (a.strides[i] == 0 && most(i) > 1) row = std::max(i, row.value_or(0));
  }
  return row;
}

// Whether a product of columns is made of another reduction of the same length.
bool Chooser::weighs_columns(uint64_t common) const {
  return std::ranges::any_of(table_.closures, [&](const ClosureInfo& product) {
    if (product.store || !(product.below & ~product.own & ~common)) return false;
    return std::ranges::any_of(table_.closures, [&](const ClosureInfo& inner) {
      return !inner.store && !(inner.node == product.node) && reaches(product.node, inner.node) &&
             inner.node.src(1).src(0) == product.node.src(1).src(0);
    });
  });
}

// The rows innermost among what everything lies inside of.
void Chooser::order_rows(std::optional<size_t> row, size_t count) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < count; ++i)
    if (i != row) order.push_back(number(i));
  if (!order.empty()) row_tile_.place = order.back();
  if (!row) return;
  order.push_back(number(*row));
  if (*row + 1 != count) apply({OptionKind::Order, -1, 0, order, 0, false});
}

// What the next tile reads is fetched while this one is multiplied: a window's rows are short runs
// that end before a processor sees them coming.  What all tiles of a loop outside read again (the
// keys of a head) is fetched for the next step of that loop, where all that the kernel reads and
// writes does not stay in the second level of cache.
void Chooser::prefetch_operands() {
  const auto tiles =
      row_tile_.place < 0 ? current_.ranges.size() : current_.find_range(row_tile_.place);
  if (tiles == current_.ranges.size()) return;
  const auto l2 = static_cast<double>(target_.l2_bytes);
  const AccessTable table = access_table(current_);
  std::map<int64_t, double> sizes;  // by parameter
  for (const AccessInfo& a : table.accesses) {
    if (!a.store && a.node.op() != Op::Load) continue;
    const DType element = a.store ? a.node.src(1).dtype() : a.node.dtype();
    sizes[a.node.src(0).int_arg()] = a.elements * static_cast<double>(element.bytes());
  }
  double all = 0;
  for (const auto& [param, bytes] : sizes) all += bytes;
  std::set<int64_t> done;
  for (const AccessInfo& a : table.accesses) {
    if (a.store || a.node.op() != Op::Load) continue;
    const int64_t param = a.node.src(0).int_arg();
    size_t at = tiles;
    while (at > 0 && a.strides[at] == 0) --at;
    if (a.strides[at] == 0) continue;
    double blocks = 1;
    for (size_t i = 0; i <= at; ++i)
      if (a.strides[i] != 0) blocks *= table.extents[i];
    const bool is_far = at == tiles && sizes[param] >= l2 / 2 && sizes[param] / blocks <= l2 / 2;
    const bool is_small = all >= l2 && sizes[param] / blocks <= l2 / kPartOfBlock;
    const Option option{
        OptionKind::Prefetch, current_.ranges[at].range.int_arg(), param, {}, 0, false};
    if ((is_far || is_small) && done.insert(param).second && can_prefetch(current_, option))
      apply(option);
  }
}

// The register tile of the products of these rows.
Chooser::RegisterTile Chooser::tile_of_rows(std::optional<size_t> row, uint64_t common) const {
  if (lanes_ < 2) return {kScalarRows, 1, 0};
  const int64_t rows = row ? most(*row) : 1;
  const double columns = columns_of_stores(common);
  if (is_few(rows)) return tile_of_few_rows(rows, columns);
  return register_tile(static_cast<double>(rows), columns, {4, kVectorsMax});
}

// The longest range of what is stored.
double Chooser::columns_of_stores(uint64_t common) const {
  double columns = 1;
  for (const ClosureInfo& c : table_.closures)
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (c.store && (c.own & ~common & bit(i))) columns = std::max(columns, extent(i));
  return columns;
}

void Chooser::cut_rows(std::optional<size_t> row, uint64_t common) {
  const RegisterTile best = tile_of_rows(row, common);
  row_tile_.vectors = best.vectors;
  if (!row) return;
  double widest = 1;
  for (const ClosureInfo& c : table_.closures) {
    double wide = 1;
    bool is_of_run = false;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (c.store || !(c.below & ~c.own & ~common & bit(i))) continue;
      wide *= extent(i);
      is_of_run = is_of_run || const_extent(i) == 0;
    }
    // The greatest that a run may have is seldom what it has; that has room in all of the cache, or
    // rows run along blocks.
    widest = std::max(widest, is_of_run ? wide / 2 : wide);
  }
  const double row_bytes = kStagesOfRows * widest * static_cast<double>(table_.widest_bytes);
  const auto fit = static_cast<int64_t>(static_cast<double>(target_.l2_bytes) / 2 / row_bytes);
  row_tile_.rows = std::min({best.rows, most(*row), std::max<int64_t>(fit, 1)});
  row_tile_.rows_max = (target_.vector_registers - 2 - best.vectors) / best.vectors;
  row_tile_.inner = number(*row);
  if (row_tile_.rows == const_extent(*row)) return;
  row_tile_.place = number(*row);
  row_tile_.inner = tile(number(*row), row_tile_.rows);
}

// Rows of another range in the same tile, where the operand that all rows share is the same for
// them and what is computed for the tile is the product's other operand: beside each other in
// registers if the row is short, else one after the other with the same panel.
void Chooser::cut_rows_beside(int64_t range, size_t row) {
  const ClosureInfo* product = nullptr;
  double reductions = 0;
  for (const ClosureInfo& c : table_.closures)
    if (!c.store) product = &c, ++reductions;
  const size_t at = current_.find_range(range);
  size_t beside = 0;
  while (number(beside) != range) ++beside;
  if (reductions != 2 || std::popcount(product->own) != 1 || const_extent(beside) < 2) return;
  const auto steps = static_cast<size_t>(std::countr_zero(product->own));
  bool is_computed = false;
  for (const UOp& factor : product->node.src(0).src())
    is_computed |= std::ranges::any_of(topological({&factor, 1}),
                                       [](const UOp& u) { return u.op() == Op::Reduce; });
  const bool is_shared = std::ranges::none_of(table_.accesses, [&](const AccessInfo& a) {
    return a.inside_reduction && a.strides[row] == 0 && a.strides[beside] != 0;
  });
  if (!is_computed || !is_shared) return;
  // The last tile of an odd number of rows is half empty.
  const int64_t size = const_extent(beside);
  if (size % kRowsBeside != 0 && size < kRowsBesideOddMin) return;
  int64_t count = kRowsBeside;
  const bool in_registers = row_tile_.rows * count <= row_tile_.rows_max;
  const double row_bytes = static_cast<double>(row_tile_.rows) * extent(steps) *
                           static_cast<double>(table_.widest_bytes);
  const auto cache = static_cast<double>(target_.l1_bytes);
  if (!in_registers && static_cast<double>(count) * row_bytes > cache) return;
  // Windows of neighbouring rows lie on the same elements.
  if (!in_registers && size % (2 * count) == 0 &&
      static_cast<double>(2 * count) * row_bytes <= cache / 2)
    count *= 2;
  row_tile_.are_beside_in_registers = in_registers;
  row_tile_.beside = size == count ? range : tile(range, count);
  const bool is_cut = row_tile_.inner != number(row);
  std::vector<int64_t> order;
  if (row_tile_.beside != range) order.push_back(range);
  if (is_cut) order.push_back(number(row));
  row_tile_.place = order.empty() ? place_outside(at) : order.back();
  order.insert(order.end(), {row_tile_.beside, row_tile_.inner});
  apply({OptionKind::Order, -1, 0, order, 0, false});
}

// The number of the range right outside of a position; -1 if there is none.
int64_t Chooser::place_outside(size_t at) const {
  return at == 0 ? -1 : current_.ranges[at - 1].range.int_arg();
}

// The position of the first range inside the place where a tile's values are kept.
size_t Chooser::begin_of_tile() const {
  if (row_tile_.inner >= 0) return current_.find_range(row_tile_.inner);
  return row_tile_.place < 0 ? 0 : current_.find_range(row_tile_.place) + 1;
}

// What is wanted again of a tile of rows; largest savings first, so that products come before what
// is made of them.
void Chooser::stage_shared_values() {
  for (int count = 0; count < 4; ++count) {
    const auto shared = find_shared_value(current_, begin_of_tile(), kWorkWorthKeeping);
    if (!shared) return;
    fill_rows(
        new_stage({OptionKind::Stage, row_tile_.place, shared->number, {}, kRowPadding, true}));
  }
}

// Whether something is read along the range in steps that are no number.
bool Chooser::is_opaque(size_t position) const {
  const AccessTable table = access_table(current_);
  return std::ranges::any_of(table.accesses, [&](const AccessInfo& a) {
    return !a.store && a.node.op() != Op::Index && a.strides[position] == kOpaqueStride;
  });
}

// Splits columns into tiles of vectors.
Chooser::Columns Chooser::cut_columns(int64_t range, int64_t vectors) {
  Columns out;
  if (lanes_ < 2) return out;
  const size_t at = current_.find_range(range);
  if (is_opaque(at)) return out;
  const UOp size = current_.ranges[at].range.src(0);
  const int64_t n = size.is_const() ? size.const_int() : 0;
  int64_t lanes = lanes_;
  if (n > 0 && n < lanes) lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  if (n > 0) vectors = std::clamp<int64_t>(vectors, 1, (n + lanes - 1) / lanes);
  if (lanes < 2) return out;
  int64_t inner = range;
  if (n != vectors * lanes) inner = tile(range, vectors * lanes);
  if (inner != range && has_range(range)) out.tiles = range;
  out.lane = vectors > 1 ? tile(inner, lanes) : inner;
  if (vectors > 1) out.vectors = inner;
  return out;
}

void Chooser::give_lanes(const Columns& columns) {
  if (columns.lane >= 0) kind(OptionKind::Vec, columns.lane);
  if (columns.vectors >= 0) kind(OptionKind::Upcast, columns.vectors);
}

void Chooser::fill_rows(const UOp& stage) {
  const UOp column = stage.src(stage.src().size() - 1);
  FreeRanges free;
  add_free_ranges(current_, {&stage.src(0), 1}, free);
  const RangeSet columns = bit(current_.position(column));
  for (const UOp& u : topological({&stage.src(0), 1}, is_stage))
    if (u.op() == Op::Reduce && (free.at(u.node()) & columns)) {
      const UOp& row = stage.src(std::max<size_t>(stage.src().size() - 2, 1));
      if (!fill_window(stage, u)) product(u, column.int_arg(), row.int_arg());
      return;
    }
  give_lanes(cut_columns(column.int_arg(), std::min(row_tile_.vectors, kVectorsMax)));
}

// Outer columns that a product has beside those with lanes: panels that lie in place.
std::vector<int64_t> Chooser::panels_of(const UOp& reduce, int64_t column, int64_t row) const {
  FreeRanges free;
  add_free_ranges(current_, {&reduce, 1}, free);
  std::vector<int64_t> out;
  for (size_t i = begin_of_tile(); i < current_.ranges.size(); ++i) {
    const int64_t r = current_.ranges[i].range.int_arg();
    const bool is_loop = current_.ranges[i].kind == RangeKind::Loop;
    const bool is_column = r != column && r != row && r != row_tile_.inner;
    if (is_loop && is_column && (free.at(reduce.node()) & bit(i))) out.push_back(r);
  }
  return out;
}

// The register tile of a product: columns with lanes, rows beside each other, steps outside.
void Chooser::product(const UOp& reduce, int64_t column, int64_t row) {
  const std::vector<int64_t> steps = closed_by(reduce);
  if (lies_along_steps(reduce, column, row)) return product_along_steps(steps[0], column, row);
  const std::vector<int64_t> panels = panels_of(reduce, column, row);
  const Columns columns = cut_columns(column, row_tile_.vectors);
  if (columns.lane < 0) return;
  std::vector<int64_t> order = panels;
  const auto add = [&](int64_t r) {
    if (r >= 0) order.push_back(r);
  };
  add(columns.tiles);
  const bool has_rows = row >= 0 && row != column;
  const bool is_tile = has_rows && row == row_tile_.inner;
  if (is_tile && !row_tile_.are_beside_in_registers) add(row_tile_.beside);
  order.insert(order.end(), steps.begin(), steps.end());
  if (is_tile && row_tile_.are_beside_in_registers) add(row_tile_.beside);
  const int64_t beside = steps_beside(steps.back(), has_rows ? row : -1);
  add(beside);
  if (has_rows) add(row);
  add(columns.vectors);
  add(columns.lane);
  apply({OptionKind::Order, -1, 0, order, 0, false});
  stage_panel(steps, columns);
  give_lanes(columns);
  if (beside >= 0) kind(OptionKind::Upcast, beside);
  // A stage of a few rows has them side by side already.
  if (has_rows && current_.ranges[current_.find_range(row)].kind == RangeKind::Loop)
    kind(OptionKind::Upcast, row);
}

// The operand that has the columns, if they lie apart: one panel for all tiles of rows.
void Chooser::stage_panel(const std::vector<int64_t>& steps, const Columns& columns) {
  const AccessTable table = access_table(current_);
  const size_t lane = current_.find_range(columns.lane);
  for (const AccessInfo& a : table.accesses) {
    if (a.node.op() != Op::Load || a.strides[lane] == 0 || a.strides[lane] == 1) continue;
    const auto is_walked = [&](int64_t step) { return a.strides[current_.find_range(step)] != 0; };
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
    for (size_t i = 0; i < current_.ranges.size(); ++i) {
      const int64_t r = current_.ranges[i].range.int_arg();
      const bool is_walked_inside = std::ranges::count(layout, r) > 0;
      if (r == row_tile_.inner || is_walked_inside) break;
      if (a.strides[i] != 0) {
        place = r;
        bytes /= table.extents[i];
        inside = i + 1;
      }
      if (r == row_tile_.place) break;
    }
    if (std::find(a.strides.begin() + static_cast<int64_t>(inside), a.strides.end(),
                  kOpaqueStride) != a.strides.end())
      continue;
    if (bytes > static_cast<double>(target_.l3_bytes) / 4) continue;
    fill_along({OptionKind::Stage, place, slot, layout, 0, false});
    return;
  }
}

// The output range along which an operand lies side by side, where none does in what is stored.
int64_t Chooser::column_of_product(const AccessTable& table) const {
  uint64_t outputs = 0;
  for (const ClosureInfo& c : table.closures)
    if (c.store) outputs |= c.own;
  for (size_t i = begin_of_tile(); i < current_.ranges.size(); ++i) {
    const KernelRange& r = current_.ranges[i];
    if (!(outputs & bit(i)) || r.kind != RangeKind::Loop || r.range.int_arg() == row_tile_.inner)
      continue;
    for (const AccessInfo& a : table.accesses)
      if (!a.store && a.strides[i] == 1) return r.range.int_arg();
  }
  return -1;
}

// What the tiles of rows end in, and the lanes of reductions along rows.
void Chooser::finish_rows() {
  const UOp store = current_.roots.front();
  FreeRanges free;
  add_free_ranges(current_, current_.roots, free);
  // The column that lies side by side in memory.
  const AccessTable table = access_table(current_);
  int64_t column = -1;
  for (const AccessInfo& a : table.accesses)
    for (size_t i = 0; a.store && i < current_.ranges.size(); ++i) {
      const KernelRange& r = current_.ranges[i];
      const bool outside =
          r.range.int_arg() == row_tile_.inner || r.range.int_arg() == row_tile_.place;
      if (a.strides[i] == 1 && !outside && r.kind == RangeKind::Loop) column = r.range.int_arg();
    }
  if (column < 0) column = column_of_product(table);
  if (column >= 0) {
    const size_t at = current_.find_range(column);
    UOp reduce;
    for (const UOp& u : topological(current_.roots, is_stage))
      if (u.op() == Op::Reduce && (free.at(u.node()) & bit(at))) reduce = u;
    if (reduce) {
      const std::vector<int64_t> steps = closed_by(reduce);
      product(reduce, column, row_tile_.inner);
      FreeRanges now;
      add_free_ranges(current_, current_.roots, now);
      for (const UOp& u : topological(current_.roots, is_stage))
        if (u.op() == Op::Reduce && closed_by(u) == steps) {
          stage_factor(u, {column}, steps, row_tile_.place, row_tile_.inner);
          break;
        }
      // Later than the stage, which has loops for its rows so.
      if (row_tile_.are_beside_in_registers) kind(OptionKind::Upcast, row_tile_.beside);
    } else {
      give_lanes(cut_columns(column, row_tile_.vectors));
    }
  }
  lanes_along_rows();
}

// Reductions of what lies in scratch have lanes along it.
void Chooser::lanes_along_rows() {
  if (lanes_ < 2) return;
  std::vector<int64_t> ranges;
  std::vector<int64_t> rows;
  const AccessTable table = access_table(current_);
  for (const ClosureInfo& c : table.closures) {
    if (c.store || std::popcount(c.own) != 1) continue;
    const auto at = static_cast<size_t>(std::countr_zero(c.own));
    const KernelRange& r = current_.ranges[at];
    if (r.kind != RangeKind::Loop || bounds(r.range.src(0)).hi < lanes_) continue;
    bool contiguous = true;
    for (const AccessInfo& a : table.accesses)
      contiguous =
          contiguous && (a.node.op() == Op::Index || a.strides[at] == 0 || a.strides[at] == 1);
    // Nothing may have the lanes of two ranges.
    uint64_t lanes = 0;
    for (size_t i = 0; i < current_.ranges.size(); ++i)
      if (current_.ranges[i].kind == RangeKind::Vec) lanes |= bit(i);
    const bool beside = std::ranges::any_of(table.closures, [&](const ClosureInfo& other) {
      return (other.below & bit(at)) && (other.below & lanes);
    });
    if (!contiguous || beside || std::ranges::count(ranges, r.range.int_arg()) != 0) continue;
    ranges.push_back(r.range.int_arg());
    rows.push_back(row_of(c.below & ~c.own));
  }
  for (int64_t r : ranges) give_lanes(cut_columns(r, std::min(row_tile_.vectors, kVectorsMax)));
  for (int64_t row : rows) overlap_tile(row);
}

// The number of the innermost loop among these ranges; -1 if there is none.
int64_t Chooser::row_of(RangeSet ranges) const {
  int64_t row = -1;
  for (size_t i = 0; i < current_.ranges.size(); ++i) {
    const KernelRange& r = current_.ranges[i];
    if ((ranges & bit(i)) && r.kind == RangeKind::Loop && !r.reduced) row = r.range.int_arg();
  }
  return row;
}

// While a row of the tile is reduced, what is made of the one before it is computed.
void Chooser::overlap_tile(int64_t row) {
  if (row < 0) return;
  const bool has_place = row_tile_.place >= 0;
  if (has_place && current_.find_range(row) <= current_.find_range(row_tile_.place)) return;
  const KernelRange& r = current_.ranges[current_.find_range(row)];
  if (!r.overlaps && bounds(r.range.src(0)).hi >= kOverlappedRowsMin)
    kind(OptionKind::Overlap, row);
}

}  // namespace tiny

// Products of matrices that warps form together (base/matrix.h): a tile of the result for each
// group, a band of its rows for each warp; of some steps at a time both operands lie in memory that
// the group shares, swizzled, and are copied ahead where there is room.
#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include "base/matrix.h"
#include "base/sort.h"
#include "codegen/choose/group_editor.h"
#include "codegen/choose/group_product.h"
#include "codegen/choose/strategies.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

// Of a group's tile; warps have bands of its rows.  Large ones load least for each product, smaller
// ones are more groups.
struct MatrixTile {
  int64_t rows, columns, warps;
};
constexpr MatrixTile kTiles[] = {{128, 128, 4}, {128, 64, 4}, {64, 128, 4},
                                 {64, 64, 4},   {64, 32, 4},  {32, 32, 2}};
// Of rows that four warps form together: each has 16 rows of a tile.
constexpr MatrixTile kWideTiles[] = {{128, 256, 8}, {128, 128, 8}, {64, 256, 4},
                                     {64, 128, 4},  {128, 64, 8},  {64, 64, 4}};
constexpr int64_t kBytesOfSteps = 64;  // that are shared at a time: two products of 16 bits
constexpr int64_t kRooms[] = {1, 2, 3, 4};

class MatrixTiler {
 public:
  MatrixTiler(const Seen& seen, const GroupProduct& product, int64_t row, const MatrixTile& tile)
      : seen_(seen),
        product_(product),
        number_(row),
        row_(kMatrixRows[static_cast<size_t>(row)]),
        tile_(tile),
        edit_(seen.kernel, seen.machine) {}

  bool run(int64_t rooms) {
    std::vector<int64_t> launched;
    for (const KernelRange& r : seen_.kernel.ranges) launched.push_back(r.range.int_arg());
    rows_ = edit_.now().next_range_number();
    columns_ = wide_ = rows_ + 1, steps_ = rows_ + 2;
    const Option tiles[] = {tile_option(number(product_.row), tile_.rows),
                            tile_option(number(product_.column), tile_.columns),
                            tile_option(number(product_.step), steps_of_tile())};
    if (!edit_.add(tiles)) return false;
    if (row_.shares_operands() && !cut_columns()) return false;
    edit_.launch(launched);
    if (!order()) return false;
    std::vector<std::vector<int64_t>> fills;
    for (const int64_t param : product_.params) fills.push_back(share(param));
    if (!(row_.shares_operands() ? multiply_shared() : multiply())) return false;
    for (const std::vector<int64_t>& fill : fills)
      if (!fill.empty()) deal(fill);
    if (rooms == 1) return true;
    return edit_.add(Option{OptionKind::Pipeline, place_, rooms, {}, 0, false});
  }

  const Kernel& now() const { return edit_.now(); }
  OptimisedKernel take() { return edit_.take(); }

 private:
  int64_t number(size_t range) const { return seen_.kernel.ranges[range].range.int_arg(); }
  int64_t steps_of_tile() const {
    return row_.shares_operands() ? kLineElements : kBytesOfSteps / kWordBytes * row_.steps;
  }

  const AccessInfo* load_of(int64_t param) const {
    const auto load = std::ranges::find_if(seen_.table.accesses, [&](const AccessInfo& a) {
      return a.node.op() == Op::Load && a.node.src(0).int_arg() == param;
    });
    return load == seen_.table.accesses.end() ? nullptr : &*load;
  }

  // Columns whose steps lie side by side are one product, others as many as a line has.
  bool cut_columns() {
    int64_t wanted = 0;
    for (const int64_t param : product_.params) {
      const AccessInfo* load = load_of(param);
      const bool is_half = load && load->node.dtype() == kFloat16;
      if (!load || is_half != (row_.element == MatrixElement::Half)) return false;
      if (load->strides[product_.row] != 0) continue;
      wanted = load->strides[product_.step] == 1 ? tile_.columns : kLineElements;
    }
    if (row_.n != wanted || product_.params.size() != 2) return false;
    if (row_.n == tile_.columns) return true;
    wide_ = edit_.now().next_range_number();
    return edit_.add(tile_option(columns_, row_.n));
  }

  // Blocks of steps outside of what a group has beside each other, the steps of one inside.
  bool order() {
    std::vector<int64_t> outside, beside;
    for (size_t i = thread_ranges(now()); i < now().ranges.size(); ++i) {
      const KernelRange& r = now().ranges[i];
      const int64_t n = r.range.int_arg();
      if (n != steps_ && n != number(product_.step)) (r.reduced ? outside : beside).push_back(n);
    }
    if (now().find_range(number(product_.step)) < now().ranges.size())
      outside.push_back(number(product_.step));
    place_ = outside.empty() ? edit_.place() : outside.back();
    outside.insert(outside.end(), beside.begin(), beside.end());
    outside.push_back(steps_);
    return edit_.add(Option{OptionKind::Order, -1, 0, outside, 0, false});
  }

  // An operand's tile as it lies in memory, so that it is copied as it is: the ranges that fill it,
  // that of a line last; none where it stays in memory.
  std::vector<int64_t> share(int64_t param) {
    const AccessInfo* load = load_of(param);
    if (!load) return {};
    std::vector<int64_t> sides{rows_};
    if (load->strides[product_.row] == 0) sides = {columns_};
    if (sides[0] == columns_ && wide_ != columns_) sides.push_back(wide_);
    std::vector<int64_t> layout = sides;
    layout.insert(layout.end() - (load->strides[product_.step] == 1 ? 0 : 1), steps_);
    const int64_t along = layout.back();
    if (row_.shares_operands() && edit_.size(along) != kLineElements) return {};
    int64_t bits = 0;
    const int64_t bytes = edit_.size(along) * load->node.dtype().bytes();
    while (bits < kSwizzledBitsMax && (kSwizzledPiece << (bits + 1)) <= bytes) ++bits;
    Option option{OptionKind::Stage, place_, param, layout, 0, false};
    option.is_shared = true;
    option.swizzle = bits;
    const size_t before = now().ranges.size();
    if (!edit_.add(option)) return {};
    std::vector<int64_t> fill;
    for (size_t i = before; i < now().ranges.size(); ++i)
      fill.push_back(now().ranges[i].range.int_arg());
    return fill;
  }

  bool multiply_shared() {
    const int64_t first = now().next_range_number();
    const Option options[] = {
        tile_option(rows_, row_.m), tile_option(steps_, row_.k),
        Option{OptionKind::Matrix, -1, number_, {first, wide_, first + 1}, 0, false},
        local_option(rows_, 2)};
    if (!edit_.add(options)) return false;
    return wide_ == columns_ ? repeat({steps_}) : repeat({columns_, steps_});
  }

  bool multiply() {
    const int64_t first = now().next_range_number();
    const int64_t warp = first, row = first + 1, column = first + 2, step = first + 3;
    const Option options[] = {
        tile_option(rows_, tile_.rows / tile_.warps),
        tile_option(warp, row_.m),
        tile_option(columns_, row_.n),
        tile_option(steps_, row_.k),
        Option{OptionKind::Matrix, -1, number_, {row, column, step}, 0, false},
        local_option(rows_, 2)};
    // A warp's band may be one product high, and a tile one product long: then there is no range
    // around it, and its number is one less.
    if (tile_.rows / tile_.warps == row_.m) {
      const Option high[] = {
          options[0], tile_option(columns_, row_.n), tile_option(steps_, row_.k),
          Option{OptionKind::Matrix, -1, number_, {first, first + 1, first + 2}, 0, false},
          options[5]};
      return edit_.add(high) && repeat({columns_, steps_});
    }
    return edit_.add(options) && repeat({warp, columns_, steps_});
  }
  bool repeat(std::initializer_list<int64_t> ranges) {
    for (const int64_t r : ranges)
      if (edit_.is_loop(r) &&
          !edit_.add(kind_option(r == steps_ ? OptionKind::Unroll : OptionKind::Upcast, r)))
        return false;
    return true;
  }

  // 16 bytes by each of four threads along a line, lines by the others of a warp and by warps.
  void deal(std::vector<int64_t> fill) {
    const AccessTable table = access_table(now());
    const std::vector<double> bytes = bytes_beside(table);
    const auto beside = [&](int64_t r) { return bytes[now().find_range(r)]; };
    sort_stable(fill, [&](int64_t a, int64_t b) {
      return std::tuple(beside(a), b) > std::tuple(beside(b), a);
    });
    // Blocks of columns are filled one after the other.
    if (fill.size() > 2 && edit_.size(fill[1]) < edit_.size(fill[2])) std::swap(fill[1], fill[2]);
    int64_t wide = lanes_beside(now(), table, now().find_range(fill.front()), seen_.machine);
    while (wide > 1 && edit_.size(fill.front()) < kLaneColumns * wide) wide /= 2;
    edit_.deal(fill.front(), 0, kLaneColumns, wide);
    if (fill.size() < 2) return;
    const int64_t warps = lines_apart(fill[1]);
    edit_.deal(fill[1], 1, kLaneRows, 1);
    if (now().find_range(warps) < now().ranges.size() && edit_.is_loop(warps))
      edit_.deal(warps, 2, tile_.warps, 1);
  }

  // Eight threads store at once, a half of each of two lines: where these are four apart they are
  // swizzled to different halves of the banks.  The range whose lines the warps have.
  int64_t lines_apart(int64_t lines) {
    constexpr int64_t kApart = kLinesOfBlock / 2;
    const int64_t blocks = edit_.size(lines) / (kApart * kLaneRows);
    if (!row_.shares_operands() || (blocks < tile_.warps && tile_.warps != kApart)) return lines;
    const int64_t inner = edit_.now().next_range_number();
    if (!edit_.add(tile_option(lines, kApart)) || blocks >= tile_.warps) return lines;
    return inner;
  }

  const Seen& seen_;
  const GroupProduct& product_;
  const int64_t number_;
  const MatrixRow& row_;
  const MatrixTile& tile_;
  GroupEditor edit_;
  int64_t rows_ = -1, columns_ = -1, steps_ = -1, place_ = -1;
  int64_t wide_ = -1;  // the columns of one product that several warps form
};

}  // namespace

bool is_matrix_product(const Seen& seen) {
  return seen.machine.group.matrices != 0 && is_group_product(seen);
}

void propose_group_matrices(const Seen& seen, std::vector<Proposal>& to) {
  const GroupProduct product = *find_group_product(seen);
  for (int64_t row = 0; row < kMatrixRowCount; ++row) {
    if (!seen.machine.has_matrices(row)) continue;
    const bool is_wide = kMatrixRows[static_cast<size_t>(row)].shares_operands();
    for (const MatrixTile& tile : is_wide ? std::span<const MatrixTile>(kWideTiles) : kTiles)
      for (const int64_t rooms : kRooms) {
        MatrixTiler tiler(seen, product, row, tile);
        if (!tiler.run(rooms)) break;
        if (fits_group(tiler.now(), seen.machine))
          to.push_back(propose(tiler.take(), seen.machine));
      }
  }
}

}  // namespace tiny

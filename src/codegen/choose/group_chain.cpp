// Products of products (attention) of groups of threads: a tile of rows for each group, which runs
// along blocks of the steps (STREAM).  Of a block the scores, and what they weigh by, lie in memory
// that the group shares; what is so far of each row's reductions and of its result stays in
// registers.  No score is ever in memory, nor a softmax of them.
#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "base/matrix.h"
#include "base/sort.h"
#include "codegen/choose/group_editor.h"
#include "codegen/choose/strategies.h"
#include "codegen/options/stream.h"
#include "ir/shared_value.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

// Of a group: rows and the steps of a block, and threads along axes 1 and 0; where warps multiply
// matrices, along axis 2, each with a band of the rows.
struct ChainTile {
  int64_t rows, block;
  int64_t row_threads, column_threads;
  int64_t warps;
};
constexpr ChainTile kTiles[] = {{128, 32, 16, 16, 1}, {64, 64, 16, 16, 1}, {64, 32, 16, 16, 1},
                                {32, 64, 8, 16, 1},   {32, 32, 8, 16, 1},  {16, 64, 4, 32, 1}};
constexpr ChainTile kMatrixTiles[] = {{128, 64, kLaneRows, kLaneColumns, 8},
                                      {64, 64, kLaneRows, kLaneColumns, 4},
                                      {64, 32, kLaneRows, kLaneColumns, 4},
                                      {32, 32, kLaneRows, kLaneColumns, 2}};
constexpr int64_t kNoMatrices = -1;
constexpr int64_t kPadding = 4;      // elements a row, so that rows begin in other banks
constexpr int64_t kBeside = 4;       // of what is shared, 16 bytes of float32
constexpr int kSharedValuesMax = 3;  // of a block
constexpr double kRowsMin = 16;      // fewer leave threads without one

// What lies inside of a kernel's blocks.
struct ChainRanges {
  int64_t streamed;
  size_t row, column;  // positions
};

class ChainTiler {
 public:
  ChainTiler(const Seen& seen, const ChainRanges& of, const ChainTile& tile, int64_t matrices)
      : seen_(seen),
        tile_(tile),
        matrices_(matrices),
        streamed_(of.streamed),
        row_(number(of.row)),
        column_(number(of.column)),
        edit_(seen.kernel, seen.machine) {}

  bool run() {
    if (!stream() || !order({blocks_})) return false;
    share_values();
    share_params();
    if (!(matrices_ == kNoMatrices ? multiply() : multiply_matrices())) return false;
    if (!order({tile_rows_, column_, blocks_})) return false;
    for (const int64_t r : steps_) deal_columns(r, OptionKind::Upcast);
    for (const int64_t r : blocked_)
      if (!is_of_product(r)) deal_columns(r, OptionKind::Unroll);
    for (const std::vector<int64_t>& fill : fills_) deal_fill(fill);
    return true;
  }

  const Kernel& now() const { return edit_.now(); }
  OptimisedKernel take() { return edit_.take(); }

 private:
  int64_t number(size_t range) const { return seen_.kernel.ranges[range].range.int_arg(); }
  bool has(RangeSet set, int64_t range) const {
    const size_t at = now().find_range(range);
    return at < now().ranges.size() && (set & bit(at)) != 0;
  }

  // The blocks, and a tile of rows.
  bool stream() {
    blocks_ = now().next_range_number();
    if (!edit_.add(Option{OptionKind::Stream, streamed_, tile_.block, {}, 0, false})) return false;
    for (const KernelRange& r : now().ranges)
      if (r.range.int_arg() > blocks_) blocked_.push_back(r.range.int_arg());
    std::vector<int64_t> launched;
    for (size_t i = 0; i < seen_.kernel.ranges.size(); ++i)
      if (number(i) != column_) launched.push_back(number(i));
    const auto tile = cut(row_, tile_.rows);
    if (!tile) return false;
    tile_rows_ = *tile;
    if (tile_rows_ == row_) std::erase(launched, row_);
    edit_.launch(launched);
    rows_ = {tile_rows_};
    return true;
  }

  // The number of the inner of two ranges; of the range itself, where it has this size.
  std::optional<int64_t> cut(int64_t range, int64_t size) {
    if (edit_.size(range) == size) return range;
    const int64_t inner = now().next_range_number();
    if (!edit_.add(tile_option(range, size))) return std::nullopt;
    return inner;
  }

  // These outermost of what is not launched, the others as they are.
  bool order(std::vector<int64_t> list) {
    std::erase_if(list, [&](int64_t n) { return now().find_range(n) == now().ranges.size(); });
    const auto first = std::ssize(list);
    for (size_t i = thread_ranges(now()); i < now().ranges.size(); ++i) {
      const int64_t n = now().ranges[i].range.int_arg();
      if (std::find(list.begin(), list.begin() + first, n) == list.begin() + first)
        list.push_back(n);
    }
    return edit_.add(Option{OptionKind::Order, -1, 0, list, 0, false});
  }

  // The ranges that a stage is filled over; none where it does not fit.
  std::vector<int64_t> share(Option stage) {
    stage.is_shared = true;
    const size_t before = now().ranges.size();
    std::vector<int64_t> made;
    if (!edit_.add(stage)) return made;
    for (size_t i = before; i < now().ranges.size(); ++i)
      made.push_back(now().ranges[i].range.int_arg());
    return made;
  }

  // The scores of a block, and what several sums make of them.
  void share_values() {
    for (int count = 0; count < kSharedValuesMax; ++count) {
      const size_t inside = now().find_range(blocks_) + 1;
      const auto shared = find_shared_value(now(), inside, kWorkWorthKeeping);
      if (!shared) return;
      const std::vector<int64_t> fill =
          share({OptionKind::Stage, blocks_, shared->number, {}, kPadding, true});
      if (fill.size() != 2) return;
      // Ranges of a stage stand in the order of those that they are copies of: rows before steps.
      rows_.push_back(fill.front());
      steps_.push_back(fill.back());
    }
  }

  // What threads read of memory again for others: operands of the products.
  void share_params() {
    for (size_t p = 0; p < now().params.size(); ++p) {
      const AccessTable table = access_table(now());
      const auto load = std::ranges::find_if(table.accesses, [&](const AccessInfo& a) {
        return a.node.op() == Op::Load && a.node.src(0).int_arg() == static_cast<int64_t>(p) &&
               is_read_again(table, a);
      });
      if (load == table.accesses.end()) continue;
      const RangeSet free = table.free[load->place];
      const int64_t place = has(free, blocks_) ? blocks_ : edit_.place();
      const bool is_operand =
          matrices_ != kNoMatrices && load->node.dtype().bytes() == kWordBytes / matrix().steps;
      Option option{OptionKind::Stage, place, static_cast<int64_t>(p), {}, 0, false};
      if (is_operand)
        lay_as_matrix(*load, free, option);
      else
        lay_by_columns(free, option);
      const std::vector<int64_t> fill = share(option);
      if (!fill.empty()) fills_.push_back(fill);
    }
  }
  const MatrixRow& matrix() const { return kMatrixRows[static_cast<size_t>(matrices_)]; }

  // What a thread reads of a step side by side.
  void lay_by_columns(RangeSet free, Option& option) const {
    option.padding = kPadding;
    for (const std::vector<int64_t>& side : {steps_, rows_, {column_}})
      for (const int64_t r : side)
        if (option.list.empty() && has(free, r)) option.list.push_back(r);
  }
  // As it lies in memory, so that it is copied as it is and loaded as matrices.
  void lay_as_matrix(const AccessInfo& load, RangeSet free, Option& option) const {
    int64_t along = -1;
    for (size_t i = now().find_range(blocks_) + 1; i < now().ranges.size(); ++i) {
      if (!(free & bit(i))) continue;
      const int64_t n = now().ranges[i].range.int_arg();
      if (load.strides[i] == 1)
        along = n;
      else
        option.list.push_back(n);
    }
    if (along < 0) return;
    option.list.push_back(along);
    const int64_t bytes = edit_.size(along) * load.node.dtype().bytes();
    while (option.swizzle < kSwizzledBitsMax && (kSwizzledPiece << (option.swizzle + 1)) <= bytes)
      ++option.swizzle;
  }

  // Whether a sum or a stage has the value over more ranges of the group than the load is of, or
  // another does too.
  bool is_read_again(const AccessTable& table, const AccessInfo& load) const {
    const RangeSet own = table.free[load.place];
    const RangeSet launched = bit(thread_ranges(now())) - 1;
    int readers = 0;
    for (const UOp& u : table.order) {
      if (!closes_ranges(u) || !reads(UOp(u.src(0)), load.node.src(0).int_arg())) continue;
      ++readers;
      if (table.free_of(UOp(u.src(0))) & ~own & ~launched & ~bit(now().find_range(blocks_)))
        return true;
    }
    return readers > 1;
  }
  static bool reads(const UOp& value, int64_t param) {
    const auto ends = [](const UOp& u) { return closes_ranges(u) || u.op() == Op::Running; };
    const std::vector<UOp> below = topological({&value, 1}, ends);
    return std::ranges::any_of(
        below, [&](const UOp& u) { return u.op() == Op::Load && u.src(0).int_arg() == param; });
  }

  // Whether the sum along the range has columns.
  bool is_of_product(int64_t range) const {
    const AccessTable table = access_table(now());
    const RangeSet own = bit(now().find_range(range)), columns = columns_of(table);
    return std::ranges::any_of(table.closures, [&](const ClosureInfo& c) {
      return (c.own & own) && (table.free_of(c.node) & columns);
    });
  }
  // What only the stores have.
  RangeSet columns_of(const AccessTable& table) const {
    RangeSet rows = 0;
    for (const UOp& u : table.order)
      if (u.op() == Op::Running && is_row(table, u)) rows |= table.free_of(u);
    return stored_ranges(table) & ~rows & ~(bit(thread_ranges(now())) - 1);
  }
  static bool is_row(const AccessTable& table, const UOp& u) {
    return std::ranges::none_of(table.order, [&](const UOp& other) {
      return other.op() == Op::Running &&
             std::popcount(table.free_of(other)) < std::popcount(table.free_of(u));
    });
  }

  // Rows of a thread side by side, whose operand is read at once, and so are columns.
  bool multiply() {
    for (const int64_t r : rows_) {
      const auto inner = cut(r, tile_.rows / tile_.row_threads);
      if (!inner) return false;
      const Option options[] = {kind_option(OptionKind::Upcast, *inner), local_option(r, 1)};
      if (!edit_.add(options)) return false;
    }
    deal_columns(column_, OptionKind::Upcast);
    return true;
  }

  // The scores, where the kernel computes them, and the result.
  bool multiply_matrices() {
    std::vector<int64_t> spread;  // rows that no product has
    for (size_t i = 0; i < rows_.size(); ++i) {
      const int64_t column = i == 0 ? column_ : steps_[i - 1];
      const std::optional<int64_t> step = step_of(rows_[i], column);
      if (!step) {
        spread.push_back(rows_[i]);
        continue;
      }
      // What is shared ends with the range: there is nothing beyond to be multiplied.
      if (edit_.size(*step) % matrix().k != 0 || edit_.size(column) % matrix().n != 0) return false;
      const auto m = cut(rows_[i], matrix().m), n = cut(column, matrix().n),
                 k = cut(*step, matrix().k);
      if (!m || !n || !k) return false;
      if (!edit_.add(Option{OptionKind::Matrix, -1, matrices_, {*m, *n, *k}, 0, false}))
        return false;
      if (*m != rows_[i] && !edit_.add(local_option(rows_[i], 2))) return false;
      if (*n != column) edit_.add(kind_option(OptionKind::Upcast, column));
      if (*k != *step) edit_.add(kind_option(OptionKind::Unroll, *step));
    }
    for (const int64_t r : spread) {
      const auto band = cut(r, matrix().m), threads = cut(*band, kLaneRows);
      if (!band || !threads) return false;
      if (*band != r && !edit_.add(local_option(r, 2))) return false;
      const Option options[] = {kind_option(OptionKind::Upcast, *band), local_option(*threads, 1)};
      if (!edit_.add(options)) return false;
    }
    return true;
  }
  // Of the sum over these rows and columns; none if there is no such sum.
  std::optional<int64_t> step_of(int64_t row, int64_t column) const {
    const AccessTable table = access_table(now());
    for (const ClosureInfo& c : table.closures) {
      const RangeSet free = table.free_of(c.node);
      if (c.store || c.node.reduce_arg().op != Op::Add || !has(free, row) || !has(free, column))
        continue;
      if (std::popcount(c.own) == 1)
        return now().ranges[static_cast<size_t>(std::countr_zero(c.own))].range.int_arg();
    }
    return std::nullopt;
  }

  // Threads along axis 0; what is left stays in a thread.
  void deal_columns(int64_t range, OptionKind left) {
    const int64_t n = edit_.size(range);
    if (n == 0 || !edit_.is_loop(range)) return;
    int64_t wide = kBeside;
    while (wide > 1 && n < tile_.column_threads * wide) wide /= 2;
    edit_.deal(range, 0, tile_.column_threads, wide);
    const bool is_left = now().find_range(range) < now().ranges.size() && edit_.is_loop(range);
    if (is_left) edit_.add(kind_option(left, range));
  }

  // Threads of axis 0 fill what lies side by side in memory.
  void deal_fill(std::vector<int64_t> fill) {
    const AccessTable table = access_table(now());
    const std::vector<double> bytes = bytes_beside(table);
    const auto beside = [&](int64_t r) { return bytes[now().find_range(r)]; };
    sort_stable(fill, [&](int64_t a, int64_t b) { return beside(a) > beside(b); });
    int64_t wide = lanes_beside(now(), table, now().find_range(fill.front()), seen_.machine);
    while (wide > 1 && edit_.size(fill.front()) < tile_.column_threads * wide) wide /= 2;
    edit_.deal(fill.front(), 0, tile_.column_threads, wide);
    if (fill.size() < 2) return;
    edit_.deal(fill[1], 1, tile_.row_threads, 1);
    if (tile_.warps > 1 && now().find_range(fill[1]) < now().ranges.size() &&
        edit_.is_loop(fill[1]))
      edit_.deal(fill[1], 2, tile_.warps, 1);
  }

  const Seen& seen_;
  const ChainTile& tile_;
  const int64_t matrices_;  // a row of the matrix table
  const int64_t streamed_;
  const int64_t row_, column_;
  GroupEditor edit_;
  int64_t blocks_ = -1, tile_rows_ = -1;
  std::vector<int64_t> blocked_;  // the sums' parts of a block
  std::vector<int64_t> rows_;     // the tile's, then the copies that stages are filled over
  std::vector<int64_t> steps_;    // such copies of steps
  std::vector<std::vector<int64_t>> fills_;
};

}  // namespace

bool is_group_chain(const Seen& seen) {
  return seen.reductions.size() > 1 && streamed_range(seen.kernel) >= 0;
}

void propose_group_chain(const Seen& seen, std::vector<Proposal>& to) {
  const int64_t streamed = streamed_range(seen.kernel);
  RangeSet common = stored_ranges(seen.table);
  const RangeSet stored = common;
  for (const ClosureInfo* c : seen.reductions) common &= seen.table.free_of(c->node);
  common &= ~ordered_ranges(seen.kernel);
  const auto longest = [&](RangeSet set) {
    size_t best = seen.kernel.ranges.size();
    for (; set; set &= set - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(set));
      if (best == seen.kernel.ranges.size() || seen.table.extents[i] > seen.table.extents[best])
        best = i;
    }
    return best;
  };
  // Rows are what an operand along the steps is the same for.
  RangeSet rows = 0;
  for (const AccessInfo& a : seen.table.accesses)
    if (a.node.op() == Op::Load && a.inside_reduction)
      for (size_t i = 0; i < a.strides.size(); ++i)
        if (a.strides[i] == 0) rows |= bit(i);
  const size_t row = longest(common & rows), column = longest(stored & ~common);
  if (std::max(row, column) == seen.kernel.ranges.size()) return;
  if (seen.table.extents[row] < kRowsMin) return;
  const ChainRanges ranges{streamed, row, column};
  const auto add = [&](const ChainTile& tile, int64_t matrices) {
    ChainTiler tiler(seen, ranges, tile, matrices);
    if (tiler.run() && fits_group(tiler.now(), seen.machine))
      to.push_back(propose(tiler.take(), seen.machine));
  };
  for (const ChainTile& tile : kTiles) add(tile, kNoMatrices);
  for (int64_t m = 0; m < kMatrixRowCount; ++m)
    for (const ChainTile& tile : kMatrixTiles)
      if (seen.machine.has_matrices(m) && !kMatrixRows[m].shares_operands()) add(tile, m);
}

}  // namespace tiny

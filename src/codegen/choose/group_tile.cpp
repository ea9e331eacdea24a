// Products of groups of threads: a tile of the result for each group, of which a thread has a tile
// in registers; of some steps at a time both operands lie in memory that the group shares.
#include <algorithm>
#include <tuple>
#include <vector>

#include "base/sort.h"
#include "codegen/choose/group_editor.h"
#include "codegen/choose/group_product.h"
#include "codegen/choose/strategies.h"

namespace tiny {

namespace {

// Of a product's tile: columns and rows of a group and of a thread, and steps that are shared at a
// time.  Squares of registers load least for each product; larger groups' tiles load least for each
// group, smaller ones are more.
struct TileSizes {
  int64_t columns, rows;
  int64_t columns_of_thread, rows_of_thread;
  int64_t steps;
};
constexpr TileSizes kTiles[] = {
    {128, 128, 8, 8, 16}, {64, 128, 4, 8, 16}, {128, 64, 8, 4, 16}, {64, 64, 4, 4, 16},
    {32, 64, 2, 4, 16},   {64, 32, 4, 2, 16},  {32, 32, 2, 2, 16},
};
constexpr int64_t kPadding = 4;     // elements a row, so that rows begin in other banks: an access
constexpr int64_t kRowsBeside = 4;  // 16 bytes of float32
constexpr int64_t kRooms[] = {1, 2, 3};  // of what is shared

class Tiler {
 public:
  Tiler(const Seen& seen, const GroupProduct& product, const TileSizes& sizes)
      : seen_(seen), product_(product), sizes_(sizes), edit_(seen.kernel, seen.machine) {}

  bool run(int64_t rooms) {
    std::vector<int64_t> launched;
    for (const KernelRange& r : seen_.kernel.ranges) launched.push_back(r.range.int_arg());
    const int64_t first = edit_.now().next_range_number();
    tile_row_ = first, tile_column_ = first + 1, inner_step_ = first + 2;
    const Option tiles[] = {tile_option(number(product_.row), sizes_.rows),
                            tile_option(number(product_.column), sizes_.columns),
                            tile_option(number(product_.step), sizes_.steps)};
    if (!edit_.add(tiles)) return false;
    edit_.launch(launched);
    if (!order_steps()) return false;
    for (const int64_t param : product_.params)
      if (!share(param)) return false;
    if (!deal(tile_column_, 0, threads_of_columns(), lanes()) || !deal_rows()) return false;
    if (rooms == 1) return true;
    return edit_.add(Option{OptionKind::Pipeline, place_, rooms, {}, 0, false});
  }

  const Kernel& now() const { return edit_.now(); }
  OptimisedKernel take() { return edit_.take(); }

 private:
  int64_t number(size_t range) const { return seen_.kernel.ranges[range].range.int_arg(); }
  int64_t threads_of_columns() const { return sizes_.columns / sizes_.columns_of_thread; }
  int64_t threads_of_rows() const { return sizes_.rows / sizes_.rows_of_thread; }

  // What is not shared decides how many columns a thread has side by side.
  int64_t lanes() const {
    AccessTable table = seen_.table;
    std::erase_if(table.accesses, [&](const AccessInfo& a) {
      return a.node.op() == Op::Load && is_operand(a.node.src(0).int_arg());
    });
    return std::min(lanes_beside(seen_.kernel, table, product_.column, seen_.machine),
                    sizes_.columns_of_thread);
  }
  bool is_operand(int64_t param) const {
    return std::ranges::find(product_.params, param) != product_.params.end();
  }

  // The loops of the sum outside of what the group has beside each other, blocks of steps before
  // the steps of one: operands are shared for a block.
  bool order_steps() {
    std::vector<int64_t> order;
    std::vector<int64_t> beside;
    const int64_t blocks = number(product_.step);
    for (size_t i = thread_ranges(now()); i < now().ranges.size(); ++i) {
      const KernelRange& r = now().ranges[i];
      const int64_t n = r.range.int_arg();
      if (n != blocks && n != inner_step_) (r.reduced ? order : beside).push_back(n);
    }
    const bool has_blocks = now().find_range(blocks) < now().ranges.size();
    if (has_blocks) order.push_back(blocks);
    place_ = order.empty() ? edit_.place() : order.back();
    order.push_back(inner_step_);
    order.insert(order.end(), beside.begin(), beside.end());
    return edit_.add(Option{OptionKind::Order, -1, 0, order, 0, false});
  }

  // An operand's tile with its steps outermost: what threads read of a step lies side by side.
  bool share(int64_t param) {
    std::vector<int64_t> fill;
    for (const int64_t last : {tile_column_, tile_row_})
      if (fill.empty()) fill = edit_.share(param, place_, {last}, kPadding);
    if (fill.empty()) fill = edit_.share(param, place_, {}, 0);
    if (fill.empty()) return false;
    deal_fill(fill);
    return true;
  }

  // Threads of axis 0 fill what lies side by side in memory.
  void deal_fill(std::vector<int64_t> fill) {
    const AccessTable table = access_table(now());
    const std::vector<double> bytes = bytes_beside(table);
    const auto beside = [&](int64_t r) { return bytes[now().find_range(r)]; };
    sort_stable(fill, [&](int64_t a, int64_t b) {
      return std::tuple(beside(a), edit_.size(a), b) > std::tuple(beside(b), edit_.size(b), a);
    });
    const int64_t threads = threads_of_columns();
    int64_t wide = lanes_beside(now(), table, now().find_range(fill.front()), seen_.machine);
    while (wide > 1 && edit_.size(fill.front()) < threads * wide) wide /= 2;
    edit_.deal(fill.front(), 0, threads, wide);
    if (fill.size() > 1) edit_.deal(fill[1], 1, threads_of_rows(), 1);
  }

  // A thread's rows lie in groups side by side, whose operand it reads at once.
  bool deal_rows() {
    const int64_t beside = std::min(sizes_.rows_of_thread, kRowsBeside);
    std::vector<Option> options;
    int64_t inner = tile_row_, next = now().next_range_number();
    if (edit_.size(tile_row_) != threads_of_rows() * beside) {
      options.push_back(tile_option(tile_row_, threads_of_rows() * beside));
      inner = next++;
    }
    options.push_back(tile_option(inner, beside));
    options.push_back(kind_option(OptionKind::Upcast, next));
    options.push_back(local_option(inner, 1));
    if (!edit_.add(options)) return false;
    const bool is_left = inner != tile_row_ && edit_.is_loop(tile_row_);
    return !is_left || edit_.add(kind_option(OptionKind::Upcast, tile_row_));
  }

  // A thread's part of the tile: copies in registers, apart by all threads' lanes.
  bool deal(int64_t range, uint8_t axis, int64_t threads, int64_t lanes) {
    if (!edit_.deal(range, axis, threads, lanes)) return false;
    const bool is_left = now().find_range(range) < now().ranges.size() && edit_.is_loop(range);
    return !is_left || edit_.add(kind_option(OptionKind::Upcast, range));
  }

  const Seen& seen_;
  const GroupProduct& product_;
  const TileSizes& sizes_;
  GroupEditor edit_;
  int64_t tile_row_ = -1, tile_column_ = -1, inner_step_ = -1, place_ = -1;
};

}  // namespace

bool is_group_product(const Seen& seen) {
  return find_group_product(seen).has_value();
}

void propose_group_tiles(const Seen& seen, std::vector<Proposal>& to) {
  const GroupProduct product = *find_group_product(seen);
  // Those that multiply matrices copy to shared memory by themselves, so that a thread computes
  // meanwhile; where a thread would copy, running ahead gains nothing.
  const bool copies_ahead = seen.machine.group.matrices != 0;
  for (const TileSizes& sizes : kTiles)
    for (const int64_t rooms : kRooms) {
      if (rooms > 1 && !copies_ahead) break;
      Tiler tiler(seen, product, sizes);
      if (!tiler.run(rooms)) break;
      if (fits_group(tiler.now(), seen.machine)) to.push_back(propose(tiler.take(), seen.machine));
    }
}

}  // namespace tiny

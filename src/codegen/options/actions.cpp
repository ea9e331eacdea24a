#include "codegen/options/actions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>

#include "base/checked.h"
#include "codegen/choose/choose.h"
#include "codegen/choose/group_editor.h"
#include "codegen/options/prefetch.h"
#include "codegen/options/stage.h"
#include "codegen/options/stream.h"
#include "cost/access_table.h"
#include "ir/bounds.h"
#include "ir/dot.h"
#include "ir/shared_value.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

constexpr int64_t kRegisterTiles[] = {2, 3, 4, 6, 8, 12, 14, 16};
constexpr int64_t kRepeatedSteps[] = {2, 4, 8};
constexpr int64_t kBlocks[] = {16, 64, 256};
constexpr int64_t kRowsOfBlock = 64;  // that share what is read of a block
constexpr int64_t kVectors[] = {2, 4};
constexpr int64_t kGroupThreads[] = {4, 8, 16, 32, 64, 128, 256};  // along an axis
constexpr int64_t kWholeMax = 16;  // a range of no more elements may be repeated whole
constexpr int64_t kPadding = 16;   // elements that keep rows apart in a cache
constexpr int64_t kCopiesMax = 64;
constexpr size_t kRangesMax = 20;  // more would need longer names for instances
// Of groups: a product of matrices has some 25, of which few have instances; a RangeSet has 64.
constexpr size_t kGroupRangesMax = 40;
constexpr int64_t kRooms[] = {2, 3, 4};  // of what a group shares

int64_t lanes_of(const Kernel& kernel, const AccessTable& table, const Target& target) {
  return vectorises(kernel, target) ? target.vector_bytes / table.widest_bytes : 1;
}

class Maker {
 public:
  Maker(const Kernel& kernel, const Machine& target)
      : kernel_(kernel),
        target_(target),
        table_(access_table(kernel)),
        lanes_(lanes_of(kernel, table_, target)),
        fresh_(kernel.next_range_number()) {}

  std::vector<Action> run() {
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (!is_loop(i)) continue;
      lanes(i);
      registers(i);
      threads(i);
      group_threads(i);
      blocks(i);
      orders(i);
      words(i);
    }
    stages();
    bypasses();
    overlaps();
    prefetches();
    streams();
    pipelines();
    return std::move(actions_);
  }

 private:
  bool is_loop(size_t i) const { return kernel_.ranges[i].kind == RangeKind::Loop; }
  int64_t number(size_t i) const { return kernel_.ranges[i].range.int_arg(); }
  int64_t most(size_t i) const { return static_cast<int64_t>(table_.extents[i]); }
  bool has_size(size_t i, int64_t size) const {
    return kernel_.ranges[i].range.src(0).is_const_int(size);
  }
  void add(Action action) { actions_.push_back(std::move(action)); }

  static Option tile(int64_t range, int64_t size) {
    return {OptionKind::Tile, range, size, {}, 0, false};
  }
  static Option local(int64_t range, int64_t axis) {
    return {OptionKind::Local, range, axis, {}, 0, false};
  }
  static Option kind(OptionKind what, int64_t range) { return {what, range, 0, {}, 0, false}; }

  // `size` steps of a range get a kind; the rest stays a loop.
  void cut(size_t i, int64_t size, OptionKind what) {
    if (has_size(i, size)) return add({kind(what, number(i))});
    if (most(i) > size) add({tile(number(i), size), kind(what, fresh_)});
  }

  void lanes(size_t i) {
    const int64_t lanes = std::min(lanes_, table_.lanes_along(i, target_.vector_bytes));
    if (lanes < 2 || most(i) < 2 || !table_.may_hold_lanes(i)) return;
    const int64_t width =
        std::min(lanes, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most(i)))));
    if (has_size(i, width))
      add({kind(OptionKind::Vec, number(i))});
    else
      add({tile(number(i), width), kind(OptionKind::Vec, fresh_)});
    if (width / 2 >= 4) cut(i, width / 2, OptionKind::Vec);
    for (int64_t vectors : kVectors)
      if (most(i) >= width * vectors)
        add({tile(number(i), width * vectors), tile(fresh_, width),
             kind(OptionKind::Upcast, fresh_), kind(OptionKind::Vec, fresh_ + 1)});
  }

  void registers(size_t i) {
    const bool reduced = kernel_.ranges[i].reduced;
    if (!reduced)
      for (int64_t size : kRegisterTiles) cut(i, size, OptionKind::Upcast);
    if (reduced) {
      for (int64_t size : kRepeatedSteps) cut(i, size, OptionKind::Unroll);
      for (int64_t size : kVectors) cut(i, size, OptionKind::Upcast);
    }
    const UOp& size = kernel_.ranges[i].range.src(0);
    if (size.is_const() && size.const_int() >= 2 && size.const_int() <= kWholeMax)
      add({kind(reduced ? OptionKind::Unroll : OptionKind::Upcast, number(i))});
  }

  // The first place that loops may move to: the one that threads share stays where it is.
  size_t front() const { return thread_ranges(kernel_); }
  Option to_front(size_t i) const {
    Option order{OptionKind::Order, -1, 0, {number(i)}, 0, false};
    for (size_t k = front(); k < i; ++k) order.list.push_back(number(k));
    return order;
  }

  void threads(size_t i) {
    const bool has_room = front() == 0 || target_.computes_in_groups();
    if (target_.cores < 2 || !has_room || most(i) < 2 || kernel_.ranges[i].reduced) return;
    Action action;
    if (i > front()) action.push_back(to_front(i));
    action.push_back(kind(OptionKind::Thread, number(i)));
    add(std::move(action));
  }

  // The axes of a group along which so many threads may be: those that have them, and the first
  // that has none.
  std::vector<int64_t> axes_of(int64_t threads) const {
    std::array<int64_t, kGroupAxes> sizes{};
    for (const KernelRange& r : kernel_.ranges)
      if (r.kind == RangeKind::Local) sizes[r.axis] = r.range.src(0).const_int();
    std::vector<int64_t> axes;
    for (size_t axis = 0; axis < kGroupAxes; ++axis) {
      if (sizes[axis] == threads || sizes[axis] == 0) axes.push_back(static_cast<int64_t>(axis));
      if (sizes[axis] == 0) break;
    }
    return axes;
  }

  void group_threads(size_t i) {
    if (!target_.computes_in_groups()) return;
    for (int64_t size : kGroupThreads) {
      if (size > target_.group.threads) break;
      for (int64_t axis : axes_of(size)) {
        if (has_size(i, size))
          add({local(number(i), axis)});
        else if (most(i) > size)
          add({tile(number(i), size), local(fresh_, axis)});
      }
    }
  }

  void blocks(size_t i) {
    for (int64_t size : kBlocks) {
      if (most(i) < 2 * size) continue;
      Action action{tile(number(i), size)};
      if (i > front()) action.push_back(to_front(i));
      add(std::move(action));
    }
  }

  void orders(size_t i) {
    if (i > front() && is_loop(i - 1))
      add({{OptionKind::Order, -1, 0, {number(i), number(i - 1)}, 0, false}});
    if (i > front() + 1) add({to_front(i)});
  }

  // A load that is the same along some range is read again along it.
  bool is_read_again(const AccessInfo& load) const {
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (load.strides[i] == 0 && most(i) > 1) return true;
    return false;
  }

  void stages() {
    std::set<int64_t> seen;
    for (const AccessInfo& a : table_.accesses) {
      if (a.store || a.node.op() != Op::Load || !is_read_again(a)) continue;
      const int64_t param = a.node.src(0).int_arg();
      if (!seen.insert(param).second) continue;
      stage_load(a, param, 0);
      for (size_t place = 1; place < kernel_.ranges.size(); ++place)
        if (is_loop(place - 1) || place <= std::max<size_t>(front(), 1))
          stage_load(a, param, place);
    }
    stage_values();
  }

  // In the order in which the kernel walks it, inside the first `place` ranges; by a group over its
  // threads too.
  void stage_load(const AccessInfo& load, int64_t param, size_t place) {
    Option option{OptionKind::Stage, place == 0 ? -1 : number(place - 1), param, {}, 0, false};
    Option shared = option;
    shared.is_shared = true;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (load.strides[i] == 0) continue;
      if (i >= place) option.list.push_back(number(i));
      if (i >= place || kernel_.ranges[i].kind == RangeKind::Local)
        shared.list.push_back(number(i));
    }
    if (is_grouped(kernel_) && !shared.list.empty()) add({std::move(shared)});
    if (!option.list.empty()) add({std::move(option)});
  }

  // Where the target has such stores at all; smaller results are found in a cache when they are
  // read.
  void bypasses() {
    if (target_.bypass_bytes == 0) return;
    for (const AccessInfo& a : table_.accesses) {
      if (a.node.op() != Op::Store) continue;
      const int64_t param = a.node.src(0).int_arg();
      const KernelParam& p = kernel_.params[static_cast<size_t>(param)];
      if (!p.read && !p.bypass &&
          a.elements * static_cast<double>(p.element.bytes()) * 2 >
              static_cast<double>(target_.bypass_bytes))
        add({{OptionKind::Bypass, -1, param, {}, 0, false}});
    }
  }

  // Where a row has loops that could run side by side with another's.
  void overlaps() {
    size_t row = common_outer_ranges(kernel_);
    const auto has_loops = [&](const ClosureInfo& c) { return c.own >> row != 0; };
    if (std::ranges::count_if(table_.closures, has_loops) < 2) return;
    while (row > 0 && !is_loop(row - 1) && kernel_.ranges[row - 1].kind != RangeKind::Thread) --row;
    if (row > 0 && !kernel_.ranges[row - 1].overlaps)
      add({kind(OptionKind::Overlap, number(row - 1))});
  }

  // The steps of a word, where the target has an instruction for the sums of the range.
  void words(size_t i) {
    const auto is_word = [](const KernelRange& r) { return r.kind == RangeKind::Dot; };
    if (!kernel_.ranges[i].reduced || std::ranges::any_of(kernel_.ranges, is_word)) return;
    for (const ClosureInfo& c : table_.closures) {
      if (c.store || !(c.own & bit(i))) continue;
      const std::optional<DotProduct> product = dot_product(c.node);
      if (product && target_.has_dot(product->kind))
        return cut(i, dot_steps(product->kind), OptionKind::Dot);
    }
  }

  // What a loop's steps read, or store, that can be fetched while others run.
  void prefetches() {
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (!is_loop(i) || kernel_.ranges[i].reduced) continue;
      for (size_t param = 0; param < kernel_.params.size(); ++param) {
        const Option option{
            OptionKind::Prefetch, number(i), static_cast<int64_t>(param), {}, 0, false};
        if (can_prefetch(kernel_, option)) add({option});
      }
    }
  }

  // Reductions that depend on each other along blocks of their range: for each row, or for some
  // rows that share what a block reads.
  void streams() {
    const int64_t streamed = streamed_range(kernel_);
    if (streamed < 0) return;
    const double steps = table_.extents[kernel_.find_range(streamed)];
    const size_t row = common_outer_ranges(kernel_);
    for (int64_t block : kBlocks) {
      if (steps < static_cast<double>(2 * block)) continue;
      const Option stream{OptionKind::Stream, streamed, block, {}, 0, false};
      add({stream});
      if (row == 0 || !is_loop(row - 1) || most(row - 1) <= kRowsOfBlock) continue;
      const Option rows = tile(number(row - 1), kRowsOfBlock);
      const Kernel streamed_rows = apply_option(apply_option(kernel_, stream), rows);
      // The loop over blocks has the first new number, the rows of a tile the last.
      Option order{OptionKind::Order, -1, 0, {fresh_}, 0, false};
      const size_t tile_rows = streamed_rows.find_range(streamed_rows.next_range_number() - 1);
      for (size_t i = tile_rows; i < streamed_rows.find_range(fresh_); ++i)
        order.list.push_back(streamed_rows.ranges[i].range.int_arg());
      add({stream, rows, std::move(order)});
    }
  }

  // Rooms for what a group shares in each step of a loop, so that copies run ahead.
  void pipelines() {
    RangeSet inside = 0;
    FreeRanges free;
    add_free_ranges(kernel_, kernel_.roots, free);
    for (const UOp& u : topological(kernel_.roots))
      if (is_stage(u) && u.stage_arg().is_shared) inside |= free.at(u.node());
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (is_loop(i) && kernel_.ranges[i].rooms <= 1 && (inside & bit(i)))
        for (const int64_t rooms : kRooms)
          add({{OptionKind::Pipeline, number(i), rooms, {}, 0, false}});
  }

  // What several reductions compute alike, and reductions that others read.
  void stage_values() {
    const size_t common = common_outer_ranges(kernel_);
    for (size_t place = 1; place <= common && is_loop(place - 1); ++place)
      if (const auto shared = find_shared_value(kernel_, place, 1))
        add({{OptionKind::Stage, number(place - 1), shared->number, {}, 0, true}});
    const std::vector<UOp> order = topological(kernel_.roots);
    std::vector<int64_t> reductions;
    for (size_t n = 0; n < order.size(); ++n)
      if (order[n].op() == Op::Reduce) reductions.push_back(static_cast<int64_t>(n));
    if (reductions.size() < 2) return;
    for (int64_t n : reductions) add({{OptionKind::Stage, -1, n, {}, 0, true}});
  }

  const Kernel& kernel_;
  const Machine& target_;
  AccessTable table_;
  int64_t lanes_ = 1;
  int64_t fresh_ = 0;  // the number of the next range
  std::vector<Action> actions_;
};

// Lists that differ from one in the option at one place.
class Changer {
 public:
  Changer(const Kernel& kernel, std::span<const Option> list)
      : kernel_(kernel), list_(list.begin(), list.end()) {}

  std::vector<std::vector<Option>> run() {
    for (at_ = 0; at_ < list_.size(); ++at_) {
      const Option& option = list_[at_];
      const bool has_size = option.kind == OptionKind::Tile || option.kind == OptionKind::Stream;
      if (has_size)
        tile(option);
      else if (option.kind == OptionKind::Order)
        order(option);
      else if (option.kind == OptionKind::Stage)
        stage(option);
      else if (option.kind == OptionKind::Prefetch)
        prefetch(option);
      else if (option.kind == OptionKind::Pipeline)
        rooms(option);
      // Without a tile what follows would name other ranges; without lanes little is left.
      if (!has_size && option.kind != OptionKind::Vec) leave_out();
      kernel_ = apply_option(kernel_, option);
    }
    return std::move(lists_);
  }

 private:
  void put(Option option) {
    lists_.push_back(list_);
    lists_.back()[at_] = std::move(option);
  }
  void leave_out() {
    lists_.push_back(list_);
    lists_.back().erase(lists_.back().begin() + static_cast<int64_t>(at_));
  }

  void tile(const Option& option) {
    const int64_t now = option.amount;
    std::set<int64_t> sizes{now / 2, now * 2, now * 2 / 3, now * 3 / 2};
    if (now <= kWholeMax) sizes.insert({now - 1, now + 1});
    sizes.erase(now);
    for (int64_t size : sizes) {
      if (size < 2) continue;
      Option changed = option;
      changed.amount = size;
      put(std::move(changed));
    }
  }

  void order(const Option& option) {
    for (size_t i = 0; i + 1 < option.list.size(); ++i) {
      Option changed = option;
      std::swap(changed.list[i], changed.list[i + 1]);
      put(std::move(changed));
    }
  }

  // Of a range; -1 of "all".
  int64_t place_of(int64_t number) const {
    const size_t at = kernel_.find_range(number);
    return at < kernel_.ranges.size() ? static_cast<int64_t>(at) : -1;
  }

  // In the loop outside or inside of its own.
  void prefetch(const Option& option) {
    const int64_t place = place_of(option.range);
    for (int64_t other : {place - 1, place + 1}) {
      if (other < 0 || other >= std::ssize(kernel_.ranges)) continue;
      Option changed = option;
      changed.range = kernel_.ranges[static_cast<size_t>(other)].range.int_arg();
      if (can_prefetch(kernel_, changed)) put(std::move(changed));
    }
  }

  void rooms(const Option& option) {
    for (const int64_t rooms : kRooms) {
      if (rooms == option.amount) continue;
      Option changed = option;
      changed.amount = rooms;
      put(std::move(changed));
    }
  }

  void stage(const Option& option) {
    Option changed = option;
    for (int64_t bits = 0; option.is_shared && bits <= kSwizzledBitsMax; ++bits) {
      if (bits == option.swizzle) continue;
      changed.swizzle = bits;
      put(changed);
    }
    changed = option;
    changed.padding = option.padding == 0 ? kPadding : 0;
    put(changed);
    changed = option;
    const int64_t place = place_of(option.range);
    for (int64_t other : {place - 1, place + 1}) {
      if (other < -1 || other >= std::ssize(kernel_.ranges)) continue;
      changed.range = other < 0 ? -1 : kernel_.ranges[static_cast<size_t>(other)].range.int_arg();
      // What is not inside the new place has no part in the layout.
      if (other > place) std::erase(changed.list, changed.range);
      put(changed);
      changed = option;
    }
  }

  Kernel kernel_;  // before the option that is changed
  std::vector<Option> list_;
  size_t at_ = 0;
  std::vector<std::vector<Option>> lists_;
};

// Of one thread: what has the widest elements fills a vector.  Of a group's threads lanes are
// registers beside each other: what has the narrowest is accessed at once.
int64_t lanes_max(const Kernel& kernel, const Target& target) {
  if (!target.computes_in_groups()) return lanes_of(kernel, access_table(kernel), target);
  int64_t narrowest = target.group.access_bytes;
  for (const KernelParam& p : kernel.params)
    narrowest = std::min<int64_t>(narrowest, p.element.bytes());
  return target.group.access_bytes / std::max<int64_t>(narrowest, 1);
}

}  // namespace

std::vector<Action> possible_actions(const Kernel& kernel, const Machine& target) {
  if (kernel.ranges.empty()) return {};
  return Maker(kernel, target).run();
}

std::vector<std::vector<Option>> changed_lists(const Kernel& kernel, std::span<const Option> list) {
  return Changer(kernel, list).run();
}

bool fits_target(const Kernel& kernel, const Target& target) {
  if (kernel.ranges.size() > (target.computes_in_groups() ? kGroupRangesMax : kRangesMax))
    return false;
  RangeSet repeated = 0;
  int64_t widest = 1;
  for (size_t i = 0; i < kernel.ranges.size(); ++i) {
    const KernelRange& r = kernel.ranges[i];
    if (r.kind == RangeKind::Vec) widest = std::max(widest, r.range.src(0).const_int());
    if (r.kind == RangeKind::Upcast || r.kind == RangeKind::Unroll) repeated |= bit(i);
  }
  if (widest > 1 && widest > lanes_max(kernel, target)) return false;
  if (!has_lanes_of_one_range(kernel)) return false;
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  for (const UOp& u : topological(kernel.roots)) {
    const RangeSet set = free.at(u.node());
    if (target.computes_in_groups()) continue;  // fits_group() counts copies
    int64_t copies = 1;
    for (RangeSet left = set & repeated; left; left &= left - 1) {
      const auto at = static_cast<size_t>(std::countr_zero(left));
      copies *= kernel.ranges[at].range.src(0).const_int();
      if (copies > kCopiesMax) return false;
    }
  }
  if (target.computes_in_groups()) return fits_group(kernel, target);
  return staged_bytes(kernel) <= target.l2_bytes;
}

}  // namespace tiny

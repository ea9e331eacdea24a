// Kernels of groups of threads whose threads compute elements of their own: threads lie along the
// range that most accesses lie side by side in, each with as many elements as one access holds.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "base/sort.h"
#include "codegen/choose/group_editor.h"
#include "codegen/choose/strategies.h"

namespace tiny {

namespace {

// Threads of a group: enough that few groups fill a multiprocessor, few enough that none waits long
// for the last.
constexpr int64_t kGroups[] = {256, 128, 64};
constexpr size_t kRangesTried = 2;  // along which threads may lie
// Steps of reduced loops that are repeated, so that their loads are under way together.
constexpr int64_t kStepsBeside = 16;
// A square that is turned in shared memory: one row of threads is a warp's.
constexpr int64_t kSquare = 32;
constexpr int64_t kRowsOfSquare = 8;

int64_t number_of(const Kernel& kernel, size_t range) {
  return kernel.ranges[range].range.int_arg();
}
std::vector<int64_t> all_numbers(const Kernel& kernel) {
  std::vector<int64_t> numbers;
  for (const KernelRange& r : kernel.ranges) numbers.push_back(r.range.int_arg());
  return numbers;
}

// The stored loops, those first along which most bytes lie side by side.
std::vector<size_t> best_first(const Kernel& kernel, const AccessTable& table) {
  const std::vector<double> bytes = bytes_beside(table);
  const RangeSet stored = stored_ranges(table) & ~ordered_ranges(kernel);
  std::vector<size_t> ranges;
  for (size_t i = kernel.ranges.size(); i-- > 0;)
    if ((stored & bit(i)) && table.extents[i] > 1) ranges.push_back(i);
  sort_stable(ranges, [&](size_t a, size_t b) {  // of equal ones the inner first
    return std::pair(bytes[a], a) > std::pair(bytes[b], b);
  });
  return ranges;
}

// Short reduced loops are repeated in a thread.
void repeat_short_sums(GroupEditor& edit) {
  int64_t copies = 1;
  for (const int64_t r : all_numbers(edit.now())) {
    const size_t at = edit.now().find_range(r);
    const int64_t n = edit.size(r);
    if (!edit.now().ranges[at].reduced || !edit.is_loop(r) || n < 2) continue;
    if (copies * n > kStepsBeside) continue;
    if (edit.add(kind_option(OptionKind::Unroll, r))) copies *= n;
  }
}

void propose_elements(const Seen& seen, size_t range, size_t other, int64_t threads, int64_t lanes,
                      std::vector<Proposal>& to) {
  GroupEditor edit(seen.kernel, seen.machine);
  const auto needed = [&](size_t r, int64_t at_once) {
    const double n = std::min(seen.table.extents[r] / static_cast<double>(at_once), 1e6);
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(n, 1.0))));
  };
  const int64_t along = std::min(threads, needed(range, lanes));
  edit.deal(number_of(seen.kernel, range), 0, along, lanes);
  if (other != range && along < threads)
    edit.deal(number_of(seen.kernel, other), 1, std::min(threads / along, needed(other, 1)), 1);
  edit.launch(all_numbers(edit.now()));
  repeat_short_sums(edit);
  if (fits_group(edit.now(), seen.machine)) to.push_back(propose(edit.take(), seen.machine));
}

// Parameters that are read side by side along one stored range, while stores lie so along another.
struct Turned {
  size_t read = 0;
  size_t stored = 0;
  std::vector<int64_t> params;
};

bool is_turned(const AccessInfo& load, size_t read, size_t stored) {
  return load.node.op() == Op::Load && load.strides[read] == 1 && load.strides[stored] != 0;
}

Turned find_turned(const Seen& seen) {
  const std::vector<size_t> ranges = best_first(seen.kernel, seen.table);
  Turned best;
  for (const size_t read : ranges)
    for (const size_t stored : ranges) {
      if (read == stored) continue;
      const double least = std::min(seen.table.extents[read], seen.table.extents[stored]);
      if (least < kRowsOfSquare) continue;
      Turned found{read, stored, {}};
      bool stores_so = true;
      for (const AccessInfo& a : seen.table.accesses) {
        if (a.store) stores_so = stores_so && a.strides[stored] == 1 && a.strides[read] != 0;
        if (is_turned(a, read, stored)) found.params.push_back(a.node.src(0).int_arg());
      }
      if (stores_so && found.params.size() > best.params.size()) best = found;
    }
  return best;
}

}  // namespace

void propose_group_elements(const Seen& seen, std::vector<Proposal>& to) {
  std::vector<size_t> ranges = best_first(seen.kernel, seen.table);
  if (ranges.empty()) {  // one element, or an order that threads cannot share
    GroupEditor edit(seen.kernel, seen.machine);
    edit.launch(all_numbers(edit.now()));
    to.push_back(propose(edit.take(), seen.machine));
    return;
  }
  const size_t tried = std::min(ranges.size(), kRangesTried);
  for (size_t k = 0; k < tried; ++k) {
    const size_t range = ranges[k];
    size_t other = range;
    for (const size_t r : ranges)
      if (r != range && (other == range || seen.table.extents[r] > seen.table.extents[other]))
        other = r;
    const int64_t lanes = lanes_beside(seen.kernel, seen.table, range, seen.machine);
    for (const int64_t threads : kGroups) {
      propose_elements(seen, range, other, threads, lanes, to);
      if (lanes > 1) propose_elements(seen, range, other, threads, 1, to);
    }
  }
}

bool has_turned(const Seen& seen) {
  return seen.reductions.empty() && !find_turned(seen).params.empty();
}

// A square of what is read, by rows, then of what is stored, by columns: the rows of the square are
// one element longer, so that a column's elements lie in banks of their own.
void propose_turned_square(const Seen& seen, std::vector<Proposal>& to) {
  const Turned of = find_turned(seen);
  GroupEditor edit(seen.kernel, seen.machine);
  const int64_t read = number_of(seen.kernel, of.read), stored = number_of(seen.kernel, of.stored);
  const int64_t inner_read = edit.now().next_range_number(), inner_stored = inner_read + 1;
  const Option squares[] = {tile_option(read, kSquare), tile_option(stored, kSquare)};
  if (!edit.add(squares)) return;
  edit.launch(all_numbers(seen.kernel));
  for (const int64_t param : of.params) {
    const std::vector<int64_t> fill =
        edit.share(param, edit.place(), {inner_stored, inner_read}, 1);
    if (fill.size() != 2) continue;
    edit.deal(fill.back(), 0, kSquare, 1);
    edit.deal(fill.front(), 1, kRowsOfSquare, 1);
  }
  edit.deal(inner_stored, 0, kSquare, 1);
  edit.deal(inner_read, 1, kRowsOfSquare, 1);
  if (fits_group(edit.now(), seen.machine)) to.push_back(propose(edit.take(), seen.machine));
}

}  // namespace tiny

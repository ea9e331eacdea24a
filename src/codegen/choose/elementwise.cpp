// Kernels without a reduction: lanes along what lies side by side, squares that are turned in
// registers, short ranges that choose among values unrolled.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "codegen/choose/lanes.h"
#include "codegen/choose/strategies.h"
#include "cost/estimate.h"
#include "ir/picked_lanes.h"

namespace tiny {

namespace {

// Rows of a square of bytes, which are unpacked in pieces of 16 bytes.
constexpr int64_t kByteRows = 16;
// Choices by position that are unrolled together.
constexpr int64_t kChoicesMax = 64;
// Lanes that are loaded one by one for each of these choices: on a Zen 5, 2026-11-30, 8 take 0.8 of
// 16, whose loads no cache of decoded instructions holds.
constexpr int64_t kLanesApart = 8;
constexpr int64_t kVectorsOfTurn = 4;  // of a loop over what is stored
// Side by side where elements are looked up: with so many that a processor waits for none of them.
constexpr int64_t kVectorsOfLookups = 8;
// Of rows that are far from each other.  On a Zen 5, 2026-11-30: 128 rows of a page in runs of 256
// bytes take 2.4 of rows to their end, of 1024 bytes 0.95; 16 rows in runs of 256 take 0.54.
constexpr int64_t kRunBytes = 1024;
constexpr int64_t kShortRuns = 16;  // runs that are fetched ahead however short they are
constexpr double kLanesMax = 40;    // what lanes may cost that are worth having

class Elementwise {
 public:
  explicit Elementwise(Editor& edit)
      : edit_(edit), ordered_(ordered_ranges(edit.kernel())), choices_(choosing_ranges()) {}
  void run();
  // The range that is stored side by side, where values are chosen by position and run() has taken
  // another for its lanes.
  std::optional<size_t> other_lanes() const;
  void choose_along(size_t lane);
  // After run(): where a load's lanes lie in lines of their own, what walks these lines goes inside
  // of the loop over lanes; false where there is none. Fewer of the lines are fetched twice, but
  // what is stored is not walked as it lies: the estimate decides.
  bool walk_lines();

 private:
  uint64_t choosing_ranges() const;
  bool is_read_apart(size_t lane) const;
  void unroll_choices();
  void lengthen_runs(size_t lane);
  bool is_across(size_t lane, size_t row, bool is_whole) const;
  bool is_stored_by(size_t range, int64_t stride) const;
  int64_t rows_of_square(size_t lane, size_t row, int64_t rows);
  bool turn_squares();
  bool weave_rows();
  std::optional<size_t> walked_by_lanes(size_t lane) const;
  void gather();
  int64_t running_vectors(size_t lane) const;

  Editor& edit_;
  uint64_t ordered_;
  uint64_t choices_;             // ranges that are unrolled
  size_t lane_ = 0;              // along which run() put lanes,
  std::optional<size_t> along_;  // and what walks the lines that they read
};

// The short ranges that choose among values which do not depend on them.
uint64_t Elementwise::choosing_ranges() const {
  FreeRanges free;
  add_free_ranges(edit_.kernel(), edit_.kernel().roots, free);
  uint64_t known = 0;
  for (const UOp& u : topological(edit_.kernel().roots)) {
    if (u.op() != Op::Where) continue;
    const uint64_t decides = free.at(u.src(0).node());
    const uint64_t values = free.at(u.src(1).node()) | free.at(u.src(2).node());
    if (std::has_single_bit(decides) && !(decides & values)) known |= decides;
  }
  uint64_t found = 0;
  int64_t copies = 1;
  known &= ~ordered_;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    if (!(known & bit(i)) || edit_.const_extent(i) < 2) continue;
    if (edit_.const_extent(i) > kChoicesMax / copies) continue;
    copies *= edit_.const_extent(i);
    found |= bit(i);
  }
  return found;
}

// These ranges side by side and innermost, so that what their values share is computed once.
void Elementwise::unroll_choices() {
  std::vector<int64_t> order;
  for (const bool inner : {false, true})
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
      if (((choices_ & bit(i)) != 0) == inner) order.push_back(edit_.number(i));
  edit_.apply({OptionKind::Order, -1, 0, order, 0, false});
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (choices_ & bit(i)) edit_.kind(OptionKind::Upcast, edit_.number(i));
}

// Where lanes are stored apart, and what is unrolled makes runs shorter than a vector, the range
// that continues these runs is unrolled until they are as long, or to its end: they are turned by
// squares then.
void Elementwise::lengthen_runs(size_t lane) {
  for (const AccessInfo& a : edit_.table().accesses) {
    if (!a.store || std::abs(a.strides[lane]) < edit_.lanes()) continue;
    int64_t run = 1;
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
      if ((choices_ & bit(i)) && a.strides[i] == 1) run = edit_.const_extent(i);
    if (run < 2 || edit_.lanes() % run != 0) continue;
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
      if (i == lane || (choices_ & bit(i)) || a.strides[i] != run) continue;
      const int64_t size = edit_.const_extent(i), more = edit_.lanes() / run;
      if (size < 2) continue;
      const int64_t number = edit_.number(i);
      edit_.kind(OptionKind::Upcast, size <= more ? number : edit_.tile(number, more));
      return;
    }
  }
}

// Whether lanes along `lane` read side by side what stores have side by side along `row`; each step
// of that may be read anywhere if `is_whole`, where all of its steps are written apart.
bool Elementwise::is_across(size_t lane, size_t row, bool is_whole) const {
  const int64_t columns = std::min(edit_.most(lane), edit_.lanes());
  const int64_t rows = std::min(edit_.most(row), edit_.lanes());
  bool reads = false;
  for (const AccessInfo& a : edit_.table().accesses) {
    const int64_t along = a.strides[lane];
    if (along == kOpaqueStride || (a.strides[row] == kOpaqueStride && !is_whole)) return false;
    if (a.store) {
      if (a.strides[row] != 1 || std::abs(along) < rows) return false;
    } else if (along == 1) {
      reads |= a.strides[row] == kOpaqueStride || std::abs(a.strides[row]) >= columns;
    } else if (along != 0) {
      return false;
    }
  }
  return reads;
}

// Whether all stores have this stride along a range.
bool Elementwise::is_stored_by(size_t range, int64_t stride) const {
  return std::ranges::all_of(edit_.table().accesses, [&](const AccessInfo& a) {
    return !a.store || a.strides[range] == stride;
  });
}

// The number of a range whose steps are so many rows of a square at most, side by side in what is
// stored; -1 where they are too few.
int64_t Elementwise::rows_of_square(size_t lane, size_t row, int64_t rows) {
  const int64_t size = edit_.const_extent(row), number = edit_.number(row);
  if (2 * size >= rows) return size <= rows ? number : edit_.tile(number, rows);
  if (size == 0) return -1;
  // Steps of another range that go on where these end.
  for (size_t next = 0; next < edit_.kernel().ranges.size(); ++next) {
    const int64_t more = std::min(edit_.const_extent(next), rows / size);
    if (next == lane || !is_stored_by(next, size) || 2 * size * more < rows) continue;
    const int64_t outer = edit_.number(next);
    edit_.kind(OptionKind::Upcast,
               more == edit_.const_extent(next) ? outer : edit_.tile(outer, more));
    return number;
  }
  return -1;
}

// What is read along one range and stored along another goes through registers by squares: lanes
// along what is read, as many rows as are stored side by side.
bool Elementwise::turn_squares() {
  int64_t rows = kByteRows;
  for (const AccessInfo& a : edit_.table().accesses) {
    if (!a.store) continue;
    const int64_t bytes = a.node.src(1).dtype().bytes();
    if (bytes == 4) rows = edit_.lanes();
    if ((bytes != 4 || edit_.table().widest_bytes != 4) &&
        (bytes != 1 || edit_.lanes() < kByteRows))
      return false;
  }
  for (size_t lane = 0; lane < edit_.kernel().ranges.size(); ++lane)
    for (size_t row = 0; row < edit_.kernel().ranges.size(); ++row) {
      const int64_t columns = edit_.most(lane);
      if (lane == row || !is_across(lane, row, false)) continue;
      if (columns < rows && 2 * columns < edit_.lanes()) continue;
      const int64_t inner = rows_of_square(lane, row, rows);
      if (inner < 0) continue;
      edit_.vector_tile(lane, 1);
      edit_.kind(OptionKind::Upcast, inner);
      // What is stored is walked as it lies.
      const size_t outer = edit_.now().find_range(edit_.number(lane));
      const bool is_inside = edit_.now().find_range(edit_.number(row)) > outer;
      if (!is_inside && edit_.is_loop(edit_.number(lane)) && edit_.is_loop(edit_.number(row)))
        edit_.put_inside(edit_.number(row), edit_.number(lane));
      return true;
    }
  return false;
}

// A few rows whose columns follow each other are stored as whole vectors, each of elements of all
// rows.
bool Elementwise::weave_rows() {
  if (!weaves(edit_.machine()) || edit_.table().widest_bytes != kWovenBytes) return false;
  for (size_t lane = 0; lane < edit_.kernel().ranges.size(); ++lane)
    for (size_t row = 0; row < edit_.kernel().ranges.size(); ++row) {
      const int64_t size = edit_.const_extent(row);
      if (lane == row || !are_woven(size, edit_.lanes(), size)) continue;
      if (edit_.most(lane) < edit_.lanes() || !is_stored_by(lane, size) ||
          !is_across(lane, row, true))
        continue;
      edit_.vector_tile(lane, 1);
      edit_.kind(OptionKind::Upcast, edit_.number(row));
      return true;
    }
  return false;
}

// The range, of those that have no order and are not unrolled, along which a load whose lanes lie
// in lines of their own walks these lines.
std::optional<size_t> Elementwise::walked_by_lanes(size_t lane) const {
  constexpr int64_t kNear = 16;  // elements
  for (const AccessInfo& a : edit_.table().accesses) {
    if (a.store || a.strides[lane] == kOpaqueStride || std::abs(a.strides[lane]) < kNear) continue;
    for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
      if (i != lane && !((choices_ | ordered_) & bit(i)) && a.strides[i] != 0 &&
          std::abs(a.strides[i]) < kNear && edit_.most(i) > kNear)
        return i;
  }
  return std::nullopt;
}

// Lanes whose loads have addresses of their own, where all else lies side by side along them: the
// arithmetic of the indices and their checks take a lane's share then.
void Elementwise::gather() {
  for (size_t i = edit_.kernel().ranges.size(); i-- > 0;) {
    if (!(edit_.table().gathered & ~ordered_ & bit(i)) || edit_.const_extent(i) == 1) continue;
    const bool is_near = std::ranges::all_of(edit_.table().accesses, [&](const AccessInfo& a) {
      const int64_t stride = a.strides[i];
      return stride == 0 || stride == 1 || (!a.store && stride == kOpaqueStride);
    });
    if (!is_near || edit_.most(i) < edit_.table().lanes_along(i, edit_.machine().vector_bytes))
      continue;
    return edit_.vector_tile(i, kVectorsOfLookups);
  }
}

// Vectors side by side of values that run along the only ordered range, where that lies outside of
// the lanes: half of the registers hold them, so that no other loop has to keep them in memory and
// rows are read in long runs; 0 where there are none, or many short ones.
int64_t Elementwise::running_vectors(size_t lane) const {
  if (!std::has_single_bit(ordered_) || ordered_ > bit(lane)) return 0;
  const auto values = std::ranges::count_if(topological(edit_.kernel().roots),
                                            [](const UOp& u) { return u.op() == Op::Running; });
  if (values == 0) return 0;
  const int64_t most = std::max<int64_t>(edit_.machine().vector_registers / (2 * values), 1);
  const int64_t all = ceil_div(edit_.most(lane), edit_.lanes());
  const int64_t vectors = ceil_div(all, ceil_div(all, most));
  const auto along = static_cast<size_t>(std::countr_zero(ordered_));
  const bool is_long = vectors * edit_.machine().vector_bytes >= kRunBytes || vectors == all;
  return is_long || edit_.most(along) <= kShortRuns ? vectors : 0;
}

void Elementwise::run() {
  if (edit_.lanes() < 2) return;
  const size_t none = edit_.kernel().ranges.size();
  const uint64_t without_lanes = choices_ | ordered_;
  size_t best = none;
  double best_cost = 0;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i) {
    if (edit_.const_extent(i) == 1 || (without_lanes & bit(i))) continue;
    const double cost = lane_cost(edit_, i, false);
    if (best == none || cost <= best_cost) best = i, best_cost = cost;
  }
  if (!without_lanes && (weave_rows() || turn_squares())) return;
  if (!choices_ && (best == none || best_cost > kLanesMax)) return gather();
  if (best == none) return unroll_choices();
  lane_ = best;
  along_ = walked_by_lanes(best);
  if (choices_) return choose_along(best);
  const int64_t running = running_vectors(best);
  edit_.vector_tile(best, along_ ? 1 : running > 0 ? running : kVectorsOfTurn);
  if (running > 0)
    edit_.put_inside(edit_.number(static_cast<size_t>(std::countr_zero(ordered_))),
                     edit_.number(best));
}

// Where what walks the loaded lines may go inside of the lanes, half of a stored line would wait
// long for the other.
void Elementwise::choose_along(size_t lane) {
  unroll_choices();
  const bool is_code_long = is_read_apart(lane) && !walked_by_lanes(lane);
  edit_.vector_tile(lane, 1, is_code_long ? kLanesApart : edit_.lanes());
  if (!ordered_) lengthen_runs(lane);
}

// Whether lanes are loaded one by one.
bool Elementwise::is_read_apart(size_t lane) const {
  return std::ranges::any_of(edit_.table().accesses, [&](const AccessInfo& a) {
    const int64_t apart = std::abs(a.strides[lane]);
    return a.node.op() == Op::Load && apart > 1 &&
           (a.strides[lane] == kOpaqueStride ||
            !are_picked(edit_.machine(), apart, edit_.lanes(), a.node.dtype().bytes()));
  });
}

std::optional<size_t> Elementwise::other_lanes() const {
  if (!choices_ || edit_.lanes() < 2) return std::nullopt;
  for (size_t i = 0; i < edit_.kernel().ranges.size(); ++i)
    if (!((choices_ | ordered_) & bit(i)) && i != lane_ && edit_.most(i) > 1 && is_stored_by(i, 1))
      return i;
  return std::nullopt;
}

bool Elementwise::walk_lines() {
  if (!along_) return false;
  edit_.put_inside(edit_.number(*along_), edit_.number(lane_));
  return true;
}

}  // namespace

bool is_elementwise(const Seen& seen) {
  return seen.reductions.empty();
}

void propose_elementwise(const Seen& seen, std::vector<Proposal>& to) {
  Editor edit(seen.kernel, seen.machine, seen.table);
  Elementwise elements(edit);
  elements.run();
  Proposal made = propose(edit.chosen(), seen.machine);
  if (elements.walk_lines()) {
    Proposal walked = propose(edit.take(), seen.machine);
    if (walked.cost.seconds < made.cost.seconds) made = std::move(walked);
  }
  if (const std::optional<size_t> lane = elements.other_lanes()) {
    Editor along(seen.kernel, seen.machine, seen.table);
    Elementwise(along).choose_along(*lane);
    Proposal other = propose(along.take(), seen.machine);
    if (other.cost.seconds < made.cost.seconds) made = std::move(other);
  }
  to.push_back(std::move(made));
}

}  // namespace tiny

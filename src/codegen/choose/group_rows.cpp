// Kernels of groups of threads whose threads share sums: each has a part, and the group folds them.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <vector>

#include "codegen/choose/group_editor.h"
#include "codegen/choose/strategies.h"

namespace tiny {

namespace {

constexpr int64_t kSharedStepsMin = 16;     // of a sum: shorter ones are a thread's
constexpr int64_t kGroups[] = {256, 1024};  // threads: of a group, or of a long sum
constexpr int64_t kThreadsMin = 4;          // of a sum
constexpr int64_t kFewRows = 8;             // that a thread sums side by side
constexpr int64_t kColumnThreads = 32;      // along columns: a warp

// What is summed, or stored, over ranges that other sums of the kernel do not have.
struct Piece {
  size_t dealt = 0;  // of its ranges, the one along which most lies side by side
};

class Rows {
 public:
  explicit Rows(const Seen& seen) : seen_(seen), bytes_(bytes_beside(seen.table)) {
    common_ = stored_ranges(seen.table);
    for (const ClosureInfo* c : seen.reductions) common_ &= seen.table.free_of(c->node);
    common_ &= ~ordered_ranges(seen.kernel);
    for (const ClosureInfo& c : seen.table.closures) {
      const RangeSet own = c.own & ~common_;
      if (const auto dealt = best_of(own)) add_piece(*dealt);
    }
  }

  bool is_empty() const { return pieces_.empty(); }
  double longest() const {
    double most = 1;
    for (const Piece& p : pieces_) most = std::max(most, seen_.table.extents[p.dealt]);
    return most;
  }

  // A group has `rows` rows, along axis 1, and so many threads for each, along axis 0.
  void propose_rows(int64_t group, int64_t threads, bool shares, std::vector<Proposal>& to) const {
    GroupEditor edit(seen_.kernel, seen_.machine);
    if (const auto row = innermost(common_); row && threads < group)
      edit.deal(number(*row), 1, rows_beside(*row, group / threads), 1);
    begin(edit);
    if (shares && !share_rows(edit, threads)) return;
    for (const Piece& p : pieces_) edit.deal(number(p.dealt), 0, threads, lanes_of(p));
    end(edit, to);
  }

  // Threads of axis 0 lie along columns, which are not summed; those of axis 1 have parts of each
  // sum.
  void propose_columns(int64_t group, std::vector<Proposal>& to) const {
    const auto column = best_of(common_);
    if (!column || bytes_[*column] == 0) return;
    const int64_t lanes = lanes_beside(seen_.kernel, seen_.table, *column, seen_.machine);
    for (const int64_t wide : {lanes, int64_t{1}}) {
      GroupEditor edit(seen_.kernel, seen_.machine);
      if (!edit.deal(number(*column), 0, kColumnThreads, wide)) return;
      begin(edit);
      for (const Piece& p : pieces_) edit.deal(number(p.dealt), 1, group / kColumnThreads, 1);
      end(edit, to);
      if (lanes == 1) return;
    }
  }

 private:
  int64_t number(size_t range) const { return seen_.kernel.ranges[range].range.int_arg(); }

  std::optional<size_t> best_of(RangeSet ranges) const {
    std::optional<size_t> best;
    for (size_t i = seen_.kernel.ranges.size(); i-- > 0;) {
      if (!(ranges & bit(i)) || seen_.table.extents[i] < 2) continue;
      const bool is_better =
          !best || bytes_[i] > bytes_[*best] ||
          (bytes_[i] == bytes_[*best] && seen_.table.extents[i] > seen_.table.extents[*best]);
      if (is_better) best = i;
    }
    return best;
  }
  std::optional<size_t> innermost(RangeSet ranges) const {
    for (size_t i = seen_.kernel.ranges.size(); i-- > 0;)
      if ((ranges & bit(i)) && seen_.table.extents[i] > 1) return i;
    return std::nullopt;
  }
  void add_piece(size_t dealt) {
    if (std::ranges::none_of(pieces_, [&](const Piece& p) { return p.dealt == dealt; }))
      pieces_.push_back({dealt});
  }
  int64_t lanes_of(const Piece& p) const {
    return lanes_beside(seen_.kernel, seen_.table, p.dealt, seen_.machine);
  }
  int64_t rows_beside(size_t row, int64_t most) const {
    const double n = std::min(seen_.table.extents[row], static_cast<double>(most));
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n)));
  }

  // Few rows stay in a thread, which then loads what they share once; the others are launched.
  void begin(GroupEditor& edit) const {
    for (size_t i = 0; i < seen_.kernel.ranges.size(); ++i) {
      const int64_t n = edit.size(number(i));
      const bool is_few = (common_ & bit(i)) && n > 1 && n <= kFewRows && edit.is_loop(number(i));
      if (is_few && is_shared_along(i)) edit.add(kind_option(OptionKind::Upcast, number(i)));
    }
    std::vector<int64_t> launched;
    for (size_t i = 0; i < seen_.kernel.ranges.size(); ++i)
      if (common_ & bit(i)) launched.push_back(number(i));
    edit.launch(launched);
  }
  // Whether what lies along the sums is the same for all steps of a range.
  bool is_shared_along(size_t range) const {
    return std::ranges::any_of(seen_.table.accesses, [&](const AccessInfo& a) {
      return a.node.op() == Op::Load && a.strides[range] == 0 &&
             std::ranges::any_of(pieces_, [&](const Piece& p) { return a.strides[p.dealt] != 0; });
    });
  }

  // What several sums, or a sum and a store, read of a row is read once, into shared memory.
  bool share_rows(GroupEditor& edit, int64_t threads) const {
    bool any = false;
    for (size_t p = 0; p < seen_.kernel.params.size(); ++p) {
      int64_t loads = 0;
      size_t along = 0;
      for (const AccessInfo& a : seen_.table.accesses) {
        if (a.node.op() != Op::Load || a.node.src(0).int_arg() != static_cast<int64_t>(p)) continue;
        for (const Piece& piece : pieces_)
          if (a.strides[piece.dealt] != 0) ++loads, along = piece.dealt;
      }
      if (loads < 2) continue;
      const std::vector<int64_t> fill = edit.share(static_cast<int64_t>(p), edit.place(), {}, 0);
      if (fill.empty()) continue;
      any = true;
      edit.deal(fill.back(), 0, threads, lanes_of({along}));
      deal_rows(edit, fill);
    }
    return any;
  }
  // The rows that the group has beside each other are filled beside each other.
  static void deal_rows(GroupEditor& edit, const std::vector<int64_t>& fill) {
    for (const KernelRange& r : edit.now().ranges) {
      if (r.kind != RangeKind::Local || r.axis != 1) continue;
      const int64_t rows = r.range.src(0).const_int();
      for (const int64_t f : fill)
        if (edit.is_loop(f) && edit.size(f) == rows && edit.deal(f, 1, rows, 1)) return;
      return;
    }
  }

  void end(GroupEditor& edit, std::vector<Proposal>& to) const {
    if (fits_group(edit.now(), seen_.machine)) to.push_back(propose(edit.take(), seen_.machine));
  }

  const Seen& seen_;
  std::vector<double> bytes_;
  RangeSet common_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

bool has_shared_sums(const Seen& seen) {
  for (const ClosureInfo* c : seen.reductions) {
    double steps = 1;
    for (size_t i = 0; i < seen.table.extents.size(); ++i)
      if (c->own & bit(i)) steps *= seen.table.extents[i];
    if (steps >= kSharedStepsMin) return true;
  }
  return false;
}

void propose_group_rows(const Seen& seen, std::vector<Proposal>& to) {
  const Rows rows(seen);
  if (rows.is_empty()) return;
  for (const int64_t group : kGroups)
    for (int64_t threads = group; threads >= kThreadsMin; threads /= 2) {
      if (static_cast<double>(threads) >= 2 * rows.longest()) continue;
      rows.propose_rows(group, threads, true, to);
      rows.propose_rows(group, threads, false, to);
    }
}

void propose_group_columns(const Seen& seen, std::vector<Proposal>& to) {
  const Rows rows(seen);
  if (rows.is_empty()) return;
  for (const int64_t group : kGroups) rows.propose_columns(group, to);
}

}  // namespace tiny

#include "schedule/layout.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "schedule/kernel_axes.h"
#include "schedule/schedule.h"
#include "schedule/window_rows.h"
#include "shape/shape.h"
#include "shape/winograd.h"

namespace tiny {

namespace {

constexpr double kContraction = 1;  // what a vote counts
constexpr double kReduction = 0.5;
constexpr double kFollower = 0.5;
// Lanes of what lies apart are loaded one by one, which no contraction that reads the result makes
// up for.
constexpr double kGivenRows = 1.5;
// Rows that start so many bytes apart fall into the same sets of a cache, or every second one does
// (a stride of two reads those); a line more sets them apart.
constexpr int64_t kSetsBytes = 2048;
constexpr int64_t kLineBytes = 64;
constexpr int64_t kRowsMin = 8;  // fewer rows get along in a set
constexpr uint64_t kNoAxis = uint64_t{1} << 63;

class LayoutChoice {
 public:
  LayoutChoice(Decision& decision, std::span<const UOp> outputs, const Target& target)
      : decision_(decision), target_(target), axes_(decision), fixed_(decision.stored.size()) {
    for (const UOp& out : outputs) {
      UOp base = out;
      fixed_[base.id()] = 1;
      while (!axes_.is_buffer(base) && has(base.op(), kMovement))
        fixed_[(base = UOp(base.src(0))).id()] = 1;
    }
    for (const UOp& u : decision.order) {
      const bool is_write = u.op() == Op::Assign || u.op() == Op::After;
      const bool is_whole = (u.op() == Op::Contiguous && !is_of_run(u)) || u.op() == Op::Call ||
                            u.op() == Op::Scatter || is_of_scan(u);
      if (has_memory(u) || is_whole || is_write) fixed_[u.id()] = 1;
      if (u.op() == Op::AsStrided) fixed_[u.src(0).id()] = 1;
      if (is_write || u.op() == Op::Call || is_of_scan(u))
        for (const UOp& s : u.src())
          if (s.op() == Op::Contiguous) fixed_[s.id()] = 1;
    }
  }

  void run() {
    // Readers come after what they read: from the end on, every vote is cast before it is counted.
    for (size_t i = decision_.order.size(); i-- > 0;) {
      const UOp& u = decision_.order[i];
      if (!axes_.is_buffer(u) || has_memory(u)) continue;
      if (const UOp* whole = decision_.slice(u)) {
        visit_kernel(u, innermost_[whole->node()]);
        continue;
      }
      const std::optional<size_t> axis = choose(u);
      innermost_[u.node()] = axis;
      visit_kernel(u, axis);
    }
  }

 private:
  // Whether it is a contraction's result whose columns lie as far apart, in row-major order, as
  // only a run says: lanes along them would be stored one by one.  Who asked for it to be stored
  // asked for no order, unless something reads it as it lies.
  bool is_of_run(const UOp& u) const {
    const Axis columns = axes_.columns_of(u);
    if (!columns) return false;
    const Shape& shape = shape_of(u);
    return !all_const(
        Shape(shape.begin() + static_cast<std::ptrdiff_t>(*columns) + 1, shape.end()));
  }

  // The innermost axis of a stored value, which gets its layout.
  Axis choose(const UOp& u) {
    const Shape& shape = shape_of(u);
    if (shape.empty()) return std::nullopt;
    size_t last = shape.size() - 1;
    while (last > 0 && shape[last].is(1)) --last;
    if (fixed_[u.id()] || shape.size() < 2) return last;
    std::vector<double>& votes = votes_[u.node()];
    votes.resize(shape.size());
    const Axis columns = axes_.columns_of(u);
    if (columns) votes[*columns] += kContraction;
    if (const Axis rows = given_rows(u)) votes[*rows] += kGivenRows;
    size_t best = last;
    const auto wins = [&](size_t i) {  // how it is written decides between as many votes
      return votes[i] > votes[best] || (votes[i] == votes[best] && i == columns);
    };
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape.size() > 2 && extent(u, i) >= KernelAxes::extent_min(u) && wins(i)) best = i;
    const int64_t gap = votes[best] >= kContraction ? gap_after(u, best) : 0;
    const size_t planes = std::max(chosen_axes(u), planes_[u.node()]);
    const Dim apart = best >= planes ? gap_between(u, planes, best, gap) : 0;
    if (best == last && gap == 0 && apart.is(0)) return last;
    // The strides, from the innermost axis on.
    View view{shape, shape, 0};
    view.strides[best] = 1;
    Dim stride = shape[best] + gap;
    for (size_t i = shape.size(); i-- > 0;) {
      if (i + 1 == planes) stride = stride + apart;
      if (i == best) continue;
      view.strides[i] = stride;
      stride = stride * shape[i];
    }
    if (gap > 0 || !apart.is(0)) decision_.elements.emplace(u.node(), stride);
    decision_.layouts.emplace(u.node(), std::move(view));
    return best;
  }

  // The axis of `u` along which its kernel reduces windows that move along rows of memory that the
  // graph was given.
  Axis given_rows(const UOp& u) const {
    for (size_t axis = 0; axis < shape_of(u).size(); ++axis)
      if (extent(u, axis) >= KernelAxes::extent_min(u) && are_given_rows({u, axis})) return axis;
    return std::nullopt;
  }
  bool are_given_rows(AxisOfNode from) const {
    const uint64_t visit = from.node.graph().next_visit();
    std::vector<AxisOfNode> stack{std::move(from)};
    for (bool first = true; !stack.empty(); first = false) {
      const AxisOfNode at = std::move(stack.back());
      stack.pop_back();
      if (!at.axis || (!first && axes_.is_buffer(at.node))) continue;
      if (std::exchange(at.node.node()->visit, visit) == visit) continue;
      if (at.node.op() == Op::ReduceAxis) {
        const auto rows = window_rows(at.node);
        return rows && rows->axis == at.axis && axes_.are_given_rows(rows->source());
      }
      for (size_t i = KernelAxes::sources(at.node); i-- > 0;)
        stack.push_back(KernelAxes::below(at, i));
    }
    return false;
  }

  // How many of the outermost axes number values that are stored side by side in time: one kernel
  // chooses among them by position.
  static size_t chosen_axes(const UOp& u) {
    UOp node = u;
    while (node.op() == Op::ReduceAxis || node.op() == Op::Reshape) {
      const Shape& below = shape_of(node.src(0));
      if (below.size() < 2 || !std::equal(below.begin(), below.begin() + 2, shape_of(u).begin()))
        return 0;
      node = UOp(node.src(0));
    }
    if (node.op() != Op::Winograd) return 0;
    const WinogradTransform transform = winograd_transform(node);
    return transform.is_of_places() || transform.part == WinogradPart::FilterSlopes ? 0 : 2;
  }

  // A tile's places are made of what lies in all planes of a stored value.
  void mark_planes(const UOp& transform) {
    UOp node = transform.src(0);
    while (!axes_.is_buffer(node) && has(node.op(), kMovement)) node = UOp(node.src(0));
    const Shape &shape = shape_of(node), &above = shape_of(transform.src(0));
    if (axes_.is_buffer(node) && std::equal(above.begin(), above.begin() + 2, shape.begin()))
      planes_[node.node()] = 2;
  }

  // Elements to leave out after each plane, so that planes start in sets of their own: their
  // distance is an odd number of lines.
  static Dim gap_between(const UOp& u, size_t planes, size_t innermost, int64_t gap) {
    const Shape& shape = shape_of(u);
    if (planes == 0) return 0;
    const int64_t line = kLineBytes / u.dtype().bytes();
    Dim plane = shape[innermost] + gap, count = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i == innermost) continue;
      Dim& all = i < planes ? count : plane;
      all = all * shape[i];
    }
    if (lower_bound(count) < kRowsMin) return 0;
    if (plane.is_const()) return plane.value() % (2 * line) == 0 ? line : 0;
    const auto lines = divide_exactly(plane, line);
    return lines ? (Dim(1) - floor_mod(*lines, 2)) * line : 0;
  }

  // Elements to leave out after each row along `axis`.
  static int64_t gap_after(const UOp& u, size_t axis) {
    const Shape& shape = shape_of(u);
    if (!shape[axis].is_const() || shape[axis].value() * u.dtype().bytes() % kSetsBytes != 0)
      return 0;
    double rows = 1;
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis) rows *= static_cast<double>(upper_bound(shape[i]));
    return rows >= kRowsMin ? kLineBytes / u.dtype().bytes() : 0;
  }

  // Votes of the kernel of `root` on what it reads; `axis` is innermost in its result.
  void visit_kernel(const UOp& root, const Axis& axis) {
    std::vector<AxisOfNode> stack{{root, axis}};
    NodeTable<uint64_t> seen;  // the axes that each was reached along, as bits
    bool first = true;
    while (!stack.empty()) {
      const AxisOfNode at = std::move(stack.back());
      stack.pop_back();
      if (!first && axes_.is_buffer(at.node)) {
        vote(at, kFollower);
        continue;
      }
      first = false;
      const uint64_t along = at.axis ? uint64_t{1} << std::min<size_t>(*at.axis, 62) : kNoAxis;
      uint64_t& before = seen[at.node.node()];
      if (std::exchange(before, before | along) & along) continue;
      if (at.node.op() == Op::Winograd && winograd_transform(at.node).is_of_places())
        mark_planes(at.node);
      if (at.node.op() == Op::ReduceAxis && vote_of_reduction(at.node)) {
        // Its operands are no longer followed along the result's axis.
        for (const UOp& s : at.node.src()) stack.push_back({s, std::nullopt});
        continue;
      }
      for (size_t i = 0; i < KernelAxes::sources(at.node); ++i)
        stack.push_back(KernelAxes::below(at, i));
    }
  }

  // Whether a sum runs over rows, which want to lie in one piece: its last axis is not short, and
  // what it keeps lies around them.  Where a long axis that it keeps lies within (the channels of a
  // batch's statistics) sums side by side do as well.
  static bool is_of_rows(const UOp& reduce) {
    const Shape& shape = shape_of(reduce.src(0));
    const Ints& axes = reduce.reduce_arg().axes;
    const auto is_long = [&](int64_t axis) {
      const Dim& size = shape[static_cast<size_t>(axis)];
      return !size.is_const() || size.value() >= KernelAxes::kExtentMin;
    };
    if (!is_long(axes.back())) return false;
    for (int64_t axis = axes.front(); axis < axes.back(); ++axis)
      if (!std::ranges::binary_search(axes, axis) && is_long(axis)) return false;
    return true;
  }

  // Windows that set lanes along rows apart vote for channels.  A gradient of weights votes for the
  // columns of what it reads, another contraction for the longest axis that it reduces, a row
  // reduction for its last if that is not short; false if no such axis was found.
  bool vote_of_reduction(const UOp& reduce) {
    if (const auto rows = window_rows(reduce);
        rows && apart_cost(*rows, target_) > turned_cost(*rows, target_))
      if (const auto channels = channels_of(*rows);
          channels && follow({rows->source(), channels}, kContraction))
        return true;
    bool found = false;
    const std::array<Axis, 2> columns = axes_.columns_of_gradient(reduce);
    for (size_t factor = 0; factor < 2; ++factor)
      if (columns[factor])
        found |= follow({reduce.src(0).src(factor), columns[factor]}, kContraction);
    if (found) return true;
    const UOp* weights = axes_.weights_of(reduce);
    const Ints& axes = reduce.reduce_arg().axes;
    if (!weights) {
      if (is_of_rows(reduce)) follow({reduce.src(0), static_cast<size_t>(axes.back())}, kReduction);
      return false;
    }
    const UOp& product = reduce.src(0);
    const UOp& data = product.src(0) == *weights ? product.src(1) : product.src(0);
    // Words of bytes are no steps of a window, which leads to no buffer: the next longest may.
    // Floats slide along rows where the window is longer than all else.
    std::vector<size_t> left;
    for (int64_t a : axes) {
      const auto axis = static_cast<size_t>(a);
      if (extent(data, axis) >= KernelAxes::extent_min(data)) left.push_back(axis);
    }
    while (!left.empty()) {
      const auto longest =
          std::ranges::max_element(left, {}, [&](size_t axis) { return extent(data, axis); });
      if (follow({data, *longest}, kContraction)) return true;
      if (data.dtype().is_float()) return false;
      left.erase(longest);
    }
    return false;
  }

  // Casts a vote on each buffer that the axis leads to; false if there is none.
  bool follow(AxisOfNode start, double weight) {
    std::vector<AxisOfNode> stack{std::move(start)};
    bool found = false;
    for (int steps = 0; !stack.empty() && steps < 1000; ++steps) {
      const AxisOfNode at = std::move(stack.back());
      stack.pop_back();
      if (!at.axis) continue;
      if (axes_.is_buffer(at.node)) {
        vote(at, weight);
        found = true;
        continue;
      }
      for (size_t i = 0; i < KernelAxes::sources(at.node); ++i)
        stack.push_back(KernelAxes::below(at, i));
    }
    return found;
  }

  void vote(const AxisOfNode& at, double weight) {
    const UOp* whole = decision_.slice(at.node);
    const UOp& base = whole ? *whole : at.node;
    if (!at.axis || has_memory(base) || base.op() == Op::Scatter) return;
    std::vector<double>& votes = votes_[base.node()];
    votes.resize(shape_of(base).size());
    votes[*at.axis] += weight;
  }

  Decision& decision_;
  const Target& target_;
  KernelAxes axes_;
  std::vector<uint8_t> fixed_;
  NodeTable<std::vector<double>> votes_;  // per axis
  NodeTable<Axis> innermost_;
  NodeTable<size_t> planes_;  // outermost axes, of which one kernel reads all at once
};

}  // namespace

void choose_layouts(Decision& decision, std::span<const UOp> outputs, const Target& target) {
  if (!decision.order.empty()) LayoutChoice(decision, outputs, target).run();
}

}  // namespace tiny

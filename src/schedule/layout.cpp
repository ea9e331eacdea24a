#include "schedule/layout.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"
#include "shape/winograd.h"

namespace tiny {

namespace {

constexpr double kContraction = 1;  // what a vote counts
constexpr double kReduction = 0.5;
constexpr double kFollower = 0.5;
// A shorter axis is not worth an order of its own.
constexpr int64_t kExtentMin = 8;
// Rows that start so many bytes apart fall into the same sets of a cache, or every second one does
// (a stride of two reads those); a line more sets them apart.
constexpr int64_t kSetsBytes = 2048;
constexpr int64_t kLineBytes = 64;
constexpr int64_t kRowsMin = 8;  // fewer rows get along in a set
constexpr uint64_t kNoAxis = uint64_t{1} << 63;

class LayoutChoice {
 public:
  LayoutChoice(Decision& decision, std::span<const UOp> outputs)
      : decision_(decision), fixed_(decision.stored.size()) {
    for (const UOp& out : outputs) {
      UOp base = out;
      fixed_[base.id()] = 1;
      while (!is_buffer(base) && has(base.op(), kMovement))
        fixed_[(base = UOp(base.src(0))).id()] = 1;
    }
    for (const UOp& u : decision.order) {
      const bool is_write = u.op() == Op::Assign || u.op() == Op::After;
      const bool is_whole =
          u.op() == Op::Contiguous || u.op() == Op::Call || u.op() == Op::Scatter || is_of_scan(u);
      if (has_memory(u) || is_whole || is_write) fixed_[u.id()] = 1;
      if (u.op() == Op::AsStrided) fixed_[u.src(0).id()] = 1;
    }
  }

  void run() {
    // Readers come after what they read: from the end on, every vote is cast before it is counted.
    for (size_t i = decision_.order.size(); i-- > 0;) {
      const UOp& u = decision_.order[i];
      if (!is_buffer(u) || has_memory(u)) continue;
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
  using Axis = std::optional<size_t>;
  struct Visit {
    UOp node;
    Axis axis;  // the one that the kernel's result has innermost
  };

  bool is_buffer(const UOp& u) const {
    return has_memory(u) || decision_.stored[u.id()] || decision_.slice(u);
  }

  // 0 where a run says: rows of such a size begin anywhere, and their last vector is a part.
  static int64_t extent(const UOp& u, size_t axis) {
    const Dim& d = shape_of(u)[axis];
    return d.is_const() ? d.value() : 0;
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
    const Axis columns = columns_of(u);
    if (columns) votes[*columns] += kContraction;
    size_t best = last;
    const auto wins = [&](size_t i) {  // how it is written decides between as many votes
      return votes[i] > votes[best] || (votes[i] == votes[best] && i == columns);
    };
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape.size() > 2 && extent(u, i) >= kExtentMin && wins(i)) best = i;
    const int64_t gap = votes[best] >= kContraction ? gap_after(u, best) : 0;
    const size_t planes = chosen_axes(u);
    const int64_t apart = best >= planes ? gap_between(u, planes, best, gap) : 0;
    if (best == last && gap == 0 && apart == 0) return last;
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
    if (gap > 0 || apart > 0) decision_.elements.emplace(u.node(), stride);
    decision_.layouts.emplace(u.node(), std::move(view));
    return best;
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
    return winograd_transform(node).part == WinogradPart::Output ? 0 : 2;
  }

  // Elements to leave out after each plane, so that planes start in sets of their own: their
  // distance is an odd number of lines.
  static int64_t gap_between(const UOp& u, size_t planes, size_t innermost, int64_t gap) {
    const Shape& shape = shape_of(u);
    if (planes == 0 || !all_const(shape)) return 0;
    const int64_t line = kLineBytes / u.dtype().bytes();
    int64_t plane = shape[innermost].value() + gap;
    int64_t count = 1;
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != innermost) (i < planes ? count : plane) *= shape[i].value();
    return count >= kRowsMin && plane % (2 * line) == 0 ? line : 0;
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

  // The axis of `u` along which the columns of the contraction run that its kernel ends with.
  Axis columns_of(const UOp& u) const {
    for (size_t axis = 0; axis < shape_of(u).size(); ++axis)
      if (are_columns({u, axis})) return axis;
    return std::nullopt;
  }

  // Whether the axis is that of the columns of the first contraction that it leads to in its kernel.
  bool are_columns(Visit from) const {
    const uint64_t visit = from.node.graph().next_visit();
    std::vector<Visit> stack{std::move(from)};
    for (bool first = true; !stack.empty(); first = false) {
      const Visit at = std::move(stack.back());
      stack.pop_back();
      if (!at.axis || (!first && is_buffer(at.node))) continue;
      if (std::exchange(at.node.node()->visit, visit) == visit) continue;
      if (const UOp* weights = weights_of(at.node)) {
        const UOp& product = at.node.src(0);
        const UOp& data = product.src(product.src(0) == *weights ? 1 : 0);
        return repeats(data, *at.axis) && !repeats(*weights, *at.axis);
      }
      for (size_t i = sources(at.node); i-- > 0;) stack.push_back(below(at, i));
    }
    return false;
  }

  // The operand that continues towards the contraction: the largest, of equals the first.
  static size_t main_source(const UOp& u) {
    size_t best = 0;
    for (size_t i = 1; i < sources(u); ++i)
      if (size_of(u.src(i)) > size_of(u.src(best))) best = i;
    return best;
  }

  static double size_of(const UOp& u) {
    while (u.op() == Op::Expand) return size_of(u.src(0));
    double n = 1;
    for (const Dim& d : shape_of(u)) n *= static_cast<double>(upper_bound(d));
    return n;
  }

  // Of a contraction, the operand that is not computed here while the other is; null if it has
  // none.
  const UOp* weights_of(const UOp& reduce) const {
    if (reduce.op() != Op::ReduceAxis || reduce.reduce_arg().op != Op::Add) return nullptr;
    const UOp& product = reduce.src(0);
    if (product.op() != Op::Mul || is_buffer(product)) return nullptr;
    const bool first = is_given(product.src(0));
    const bool second = is_given(product.src(1));
    if (first == second) return nullptr;
    return &product.src(first ? 0 : 1);
  }

  static bool is_given(UOp u) {
    while (!has_memory(u) && (has(u.op(), kMovement) || u.op() == Op::Cast)) u = UOp(u.src(0));
    return has_memory(u);
  }

  // The sources that hold elements: the others of a movement are sizes.
  static size_t sources(const UOp& u) { return has(u.op(), kMovement) ? 1 : u.src().size(); }

  // Where an axis of a node's result is in one of its sources.
  static Visit below(const Visit& at, size_t source) {
    const UOp& s = at.node.src(source);
    if (!at.axis) return {s, std::nullopt};
    if (has(at.node.op(), kMovement)) return {s, axis_below(at.node, *at.axis)};
    if (at.node.op() == Op::Winograd) return {s, winograd_transform(at.node).axis_below(*at.axis)};
    const bool keeps = has(at.node.op(), kElementwise) || at.node.op() == Op::ReduceAxis ||
                       at.node.op() == Op::Contiguous || at.node.op() == Op::Concat;
    const bool same = keeps && *at.axis < shape_of(s).size() &&
                      (at.node.op() == Op::Concat || at.node.op() == Op::ReduceAxis ||
                       shape_of(s)[*at.axis] == shape_of(at.node)[*at.axis]);
    return {s, same ? at.axis : std::nullopt};
  }

  // Votes of the kernel of `root` on what it reads; `axis` is innermost in its result.
  void visit_kernel(const UOp& root, const Axis& axis) {
    std::vector<Visit> stack{{root, axis}};
    NodeTable<uint64_t> seen;  // the axes that each was reached along, as bits
    bool first = true;
    while (!stack.empty()) {
      const Visit at = std::move(stack.back());
      stack.pop_back();
      if (!first && is_buffer(at.node)) {
        vote(at, kFollower);
        continue;
      }
      first = false;
      const uint64_t along = at.axis ? uint64_t{1} << std::min<size_t>(*at.axis, 62) : kNoAxis;
      uint64_t& before = seen[at.node.node()];
      if (std::exchange(before, before | along) & along) continue;
      if (at.node.op() == Op::ReduceAxis && vote_of_reduction(at.node)) {
        // Its operands are no longer followed along the result's axis.
        for (const UOp& s : at.node.src()) stack.push_back({s, std::nullopt});
        continue;
      }
      for (size_t i = 0; i < sources(at.node); ++i) stack.push_back(below(at, i));
    }
  }

  // How many elements lie between neighbours along the axis, in the stored value that it leads to
  // if that is row-major; 0 if it leads to none.
  double distance_along(Visit at) const {
    const auto is_row_major = [&](const UOp& u) {
      return is_buffer(u) || (u.op() == Op::Reshape && is_buffer(u.src(0)));
    };
    while (at.axis && !is_row_major(at.node)) {
      if (at.node.op() == Op::AsStrided)
        return static_cast<double>(std::abs(at.node.view_arg().strides[*at.axis]));
      if (at.node.src().empty()) return 0;
      at = below(at, main_source(at.node));
    }
    if (!at.axis) return 0;
    double elements = 1;
    const Shape& shape = shape_of(at.node);
    for (size_t i = *at.axis + 1; i < shape.size(); ++i)
      elements *= static_cast<double>(upper_bound(shape[i]));
    return elements;
  }

  // The axes of a product that one factor has and the other repeats.
  static std::vector<size_t> own_axes(const UOp& product, size_t factor) {
    std::vector<size_t> own;
    for (size_t axis = 0; axis < shape_of(product).size(); ++axis)
      if (!repeats(product.src(factor), axis) && repeats(product.src(1 - factor), axis))
        own.push_back(axis);
    return own;
  }

  // Whether the factor lies in memory with steps of the sum outside of the axes that are its own.
  bool is_summed_outermost(const UOp& reduce, size_t factor) const {
    const UOp& product = reduce.src(0);
    const auto farthest = [&](const auto& axes) {
      double found = 0;
      for (const auto axis : axes) {
        const Visit at{product.src(factor), static_cast<size_t>(axis)};
        if (!shape_of(product)[*at.axis].is(1)) found = std::max(found, distance_along(at));
      }
      return found;
    };
    return farthest(reduce.reduce_arg().axes) > farthest(own_axes(product, factor));
  }

  // A sum of outer products (the gradient of weights: A^T B) reads both factors along axes of their
  // own, each step anew: those are voted for, and none that is summed over.  False if there are none.
  bool vote_of_outer_products(const UOp& reduce) {
    if (reduce.reduce_arg().op != Op::Add || reduce.src(0).op() != Op::Mul) return false;
    const UOp& product = reduce.src(0);
    if (is_buffer(product) || !is_summed_outermost(reduce, 0) || !is_summed_outermost(reduce, 1))
      return false;
    bool found = false;
    for (size_t factor = 0; factor < 2; ++factor) {
      const UOp& data = product.src(factor);
      Axis longest;
      for (const size_t axis : own_axes(product, factor))
        if (extent(data, axis) >= kExtentMin && distance_along({data, axis}) > 0 &&
            (!longest || extent(data, axis) > extent(data, *longest)))
          longest = axis;
      if (longest && !is_given(data)) found |= follow({data, longest}, kContraction);
    }
    return found;
  }

  // A contraction votes for the longest axis that it reduces, a row reduction for its last if that
  // is not short; false if no such axis was found.
  bool vote_of_reduction(const UOp& reduce) {
    if (vote_of_outer_products(reduce)) return true;
    const UOp* weights = weights_of(reduce);
    const Ints& axes = reduce.reduce_arg().axes;
    if (!weights) {
      const auto axis = static_cast<size_t>(axes.back());
      const Dim& size = shape_of(reduce.src(0))[axis];
      if (!size.is_const() || size.value() >= kExtentMin) follow({reduce.src(0), axis}, kReduction);
      return false;
    }
    const UOp& product = reduce.src(0);
    const UOp& data = product.src(0) == *weights ? product.src(1) : product.src(0);
    Axis longest;
    for (int64_t a : axes) {
      const auto axis = static_cast<size_t>(a);
      if (extent(data, axis) >= kExtentMin &&
          (!longest || extent(data, axis) > extent(data, *longest)))
        longest = axis;
    }
    return longest && follow({data, longest}, kContraction);
  }

  // Casts a vote on each buffer that the axis leads to; false if there is none.
  bool follow(Visit start, double weight) {
    std::vector<Visit> stack{std::move(start)};
    bool found = false;
    for (int steps = 0; !stack.empty() && steps < 1000; ++steps) {
      const Visit at = std::move(stack.back());
      stack.pop_back();
      if (!at.axis) continue;
      if (is_buffer(at.node)) {
        vote(at, weight);
        found = true;
        continue;
      }
      for (size_t i = 0; i < sources(at.node); ++i) stack.push_back(below(at, i));
    }
    return found;
  }

  void vote(const Visit& at, double weight) {
    const UOp* whole = decision_.slice(at.node);
    const UOp& base = whole ? *whole : at.node;
    if (!at.axis || has_memory(base) || base.op() == Op::Scatter) return;
    std::vector<double>& votes = votes_[base.node()];
    votes.resize(shape_of(base).size());
    votes[*at.axis] += weight;
  }

  Decision& decision_;
  std::vector<uint8_t> fixed_;
  NodeTable<std::vector<double>> votes_;  // per axis
  NodeTable<Axis> innermost_;
};

}  // namespace

void choose_layouts(Decision& decision, std::span<const UOp> outputs) {
  if (!decision.order.empty()) LayoutChoice(decision, outputs).run();
}

}  // namespace tiny

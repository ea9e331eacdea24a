#include "schedule/kernel_ranges.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/sort.h"

namespace tiny {

namespace {

// The axes as they lie in memory, the outermost first; where that is not known, in their order.
std::vector<size_t> axes_by_stride(const View& view) {
  std::vector<size_t> axes(view.strides.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  if (view.strides.empty() || !all_const(view.strides)) return axes;
  sort_stable(
      axes, [&](size_t a, size_t b) { return view.strides[a].value() > view.strides[b].value(); });
  return axes;
}

std::vector<UOp> outer_ranges(const std::vector<UOp>& index) {
  std::vector<UOp> ranges;
  for (const UOp& e : index)
    if (!e.is_const()) ranges.push_back(e);
  return ranges;
}

}  // namespace

UOp KernelRanges::make(const Dim& size, bool reduced) {
  if (size.is(1)) return graph_.integer(0);
  const auto number = static_cast<int64_t>(kernel_.ranges.size());
  const UOp range = graph_.make(Op::Range, {size.uop(graph_)}, number);
  kernel_.ranges.push_back({range, RangeKind::Loop, reduced});
  return range;
}

const std::vector<UOp>& KernelRanges::make_output(const UOp& value, const View& view) {
  first_shape_ = shape_of(value);
  first_.resize(first_shape_.size());
  for (size_t axis : axes_by_stride(view)) first_[axis] = make(first_shape_[axis], false);
  outputs_ = kernel_.ranges.size();
  return first_;
}

std::optional<std::vector<UOp>> KernelRanges::index_beside(
    const UOp& value, std::span<const std::vector<UOp>* const> known) const {
  const Shape& own = shape_of(value);
  for (const std::vector<UOp>* at : known)
    if (is_output_index(*at, own)) return *at;
  if (own.size() > first_shape_.size()) return std::nullopt;
  std::vector<UOp> index;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!(own[i] == first_shape_[i]) && !own[i].is(1)) return std::nullopt;
    index.push_back(own[i].is(1) ? graph_.integer(0) : first_[i]);
  }
  return index;
}

// Whether an index is made of output ranges, each of which runs over one axis.
bool KernelRanges::is_output_index(const std::vector<UOp>& index, const Shape& shape) const {
  for (size_t i = 0; i < index.size(); ++i) {
    if (shape[i].is(1) && index[i] == graph_.integer(0)) continue;
    const auto runs = [&](const KernelRange& r) {
      return r.range == index[i] && r.range.src(0) == shape[i].uop(graph_);
    };
    const auto ranges = std::span(kernel_.ranges).first(outputs_);
    const auto before = index.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::ranges::none_of(ranges, runs) || std::find(index.begin(), before, index[i]) != before)
      return false;
  }
  return true;
}

const std::vector<UOp>& KernelRanges::reduced(const UOp& node, const std::vector<UOp>& index) {
  // A value that is reduced for several indices walks the same ranges for each.
  std::vector<UOp>& ranges = reduced_over_[node.node()];
  if (ranges.empty()) ranges = reduced_beside(node, index);
  if (ranges.empty())
    for (int64_t axis : node.reduce_arg().axes)
      ranges.push_back(make(shape_of(node.src(0))[static_cast<size_t>(axis)], true));
  if (has_several_stores_) reductions_.push_back({node, outer_ranges(index)});
  return ranges;
}

// The ranges of a reduction in the same loops, as long as this one, if neither needs the other:
// what both read is read once.  None if there is none.
std::vector<UOp> KernelRanges::reduced_beside(const UOp& node,
                                              const std::vector<UOp>& index) const {
  const ReduceArg& arg = node.reduce_arg();
  const Shape& shape = shape_of(node.src(0));
  const std::vector<UOp> outer = outer_ranges(index);
  for (const Reduction& r : reductions_) {
    const std::vector<UOp>& ranges = reduced_over_.at(r.node.node());
    bool fits = ranges.size() == arg.axes.size() && r.outer == outer;
    for (size_t i = 0; i < ranges.size() && fits; ++i) {
      const Dim& size = shape[static_cast<size_t>(arg.axes[i])];
      fits = ranges[i].op() == Op::Range ? ranges[i].src(0) == size.uop(graph_) : size.is(1);
    }
    for (const Reduction& other : reductions_)
      fits = fits && (!(reduced_over_.at(other.node.node()) == ranges) ||
                      (!needs(node, other.node) && !needs(other.node, node)));
    if (fits) return ranges;
  }
  return {};
}

bool KernelRanges::needs(const UOp& user, const UOp& node) const {
  std::vector<const UOp*> stack{&user};
  const uint64_t visit = user.graph().next_visit();
  while (!stack.empty()) {
    const UOp& u = *stack.back();
    stack.pop_back();
    if (u == node) return true;
    if (in_memory_(u)) continue;
    for (const UOp& s : u.src())
      if (std::exchange(s.node()->visit, visit) != visit) stack.push_back(&s);
  }
  return false;
}

}  // namespace tiny

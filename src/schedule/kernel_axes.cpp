#include "schedule/kernel_axes.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "shape/movement_axis.h"
#include "shape/shape.h"
#include "shape/winograd.h"

namespace tiny {

namespace {

double size_of(const UOp& u) {
  if (u.op() == Op::Expand) return size_of(u.src(0));
  return elements_at_most(u);
}

// The source that has a node's elements: the largest, of equals the first.
size_t main_source(const UOp& u) {
  size_t best = 0;
  for (size_t i = 1; i < KernelAxes::sources(u); ++i)
    if (size_of(u.src(i)) > size_of(u.src(best))) best = i;
  return best;
}

bool is_given(UOp u) {
  while (!has_memory(u) && (has(u.op(), kMovement) || u.op() == Op::Cast)) u = UOp(u.src(0));
  return has_memory(u);
}

// The axes of a product that one factor has and the other repeats.
Ints own_axes(const UOp& product, size_t factor) {
  Ints own;
  for (size_t axis = 0; axis < shape_of(product).size(); ++axis)
    if (!repeats(product.src(factor), axis) && repeats(product.src(1 - factor), axis))
      own.push_back(static_cast<int64_t>(axis));
  return own;
}

// Where an axis of what is gathered is in the data (0) or the index (1), whose axes stand in place
// of the one that they index.  None where one index picks a part of the data (the keys of an
// attention): how the whole lies is not for its readers to say.
Axis gathered_axis(const UOp& gather, size_t axis, size_t source) {
  const auto indexed = static_cast<size_t>(gather.int_arg());
  const size_t count = shape_of(gather.src(1)).size();
  const bool is_index = axis >= indexed && axis < indexed + count;
  if (count == 0 || is_index != (source == 1)) return std::nullopt;
  if (is_index) return axis - indexed;
  return axis < indexed ? axis : axis - count + 1;
}

// The axis of a reshaped value whose neighbours are those of an axis of the result: of axes that
// become one (heads and their elements) the innermost, of one that becomes several the whole for
// the innermost of these.
Axis axis_of_neighbours(const UOp& reshape, size_t axis) {
  const Shape& to = shape_of(reshape);
  const Shape& from = shape_of(reshape.src(0));
  Dim wanted = 1, distance = 1;  // elements between neighbours, if it is row-major
  for (size_t i = to.size(); i-- > axis + 1;) wanted = wanted * to[i];
  for (size_t k = from.size(); k-- > 0;) {
    if (distance == wanted && !from[k].is(1)) return k;
    distance = distance * from[k];
  }
  return std::nullopt;
}

}  // namespace

int64_t extent(const UOp& u, size_t axis) {
  const Dim& d = shape_of(u)[axis];
  return d.is_const() ? d.value() : 0;
}

AxisOfNode KernelAxes::below(const AxisOfNode& at, size_t source) {
  const UOp& s = at.node.src(source);
  if (!at.axis) return {s, std::nullopt};
  if (at.node.op() == Op::Gather) return {s, gathered_axis(at.node, *at.axis, source)};
  // Floats need not lie side by side along what is summed, and windows beside them would follow
  // their votes through the groups of a channel shuffle.
  const bool is_of_words = s.dtype().bytes() == 1;
  if (is_of_words && at.node.op() == Op::Reshape && !shape_of(at.node)[*at.axis].is(1))
    return {s, axis_of_neighbours(at.node, *at.axis)};
  if (has(at.node.op(), kMovement)) return {s, axis_below(at.node, *at.axis)};
  if (at.node.op() == Op::Winograd) return {s, winograd_transform(at.node).axis_below(*at.axis)};
  const bool keeps = has(at.node.op(), kElementwise) || at.node.op() == Op::ReduceAxis ||
                     at.node.op() == Op::Contiguous || at.node.op() == Op::Concat;
  const bool same = keeps && *at.axis < shape_of(s).size() &&
                    (at.node.op() == Op::Concat || at.node.op() == Op::ReduceAxis ||
                     shape_of(s)[*at.axis] == shape_of(at.node)[*at.axis]);
  return {s, same ? at.axis : std::nullopt};
}

// Whether it sums products that its kernel makes.
bool KernelAxes::is_contraction(const UOp& reduce) const {
  return reduce.op() == Op::ReduceAxis && reduce.reduce_arg().op == Op::Add &&
         reduce.src(0).op() == Op::Mul && !is_buffer(reduce.src(0));
}

const UOp* KernelAxes::weights_of(const UOp& reduce) const {
  if (!is_contraction(reduce)) return nullptr;
  const UOp& product = reduce.src(0);
  const bool first = is_given(product.src(0));
  const bool second = is_given(product.src(1));
  if (first == second) return nullptr;
  return &product.src(first ? 0 : 1);
}

Axis KernelAxes::columns_of(const UOp& u) const {
  for (size_t axis = 0; axis < shape_of(u).size(); ++axis)
    if (are_columns({u, axis})) return axis;
  return std::nullopt;
}

// Whether the axis is that of the columns of the first contraction that it leads to in its kernel.
bool KernelAxes::are_columns(AxisOfNode from) const {
  const uint64_t visit = from.node.graph().next_visit();
  std::vector<AxisOfNode> stack{std::move(from)};
  for (bool first = true; !stack.empty(); first = false) {
    const AxisOfNode at = std::move(stack.back());
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

// How many elements lie between neighbours along the axis, in the stored value that it leads to if
// that is row-major; 0 if it leads to none.
double KernelAxes::distance_along(AxisOfNode at) const {
  const auto is_row_major = [&](const UOp& u) {
    return is_buffer(u) || (u.op() == Op::Reshape && is_buffer(u.src(0)));
  };
  while (at.axis && !is_row_major(at.node)) {
    if (at.node.op() == Op::AsStrided)
      return std::abs(static_cast<double>(at.node.view_arg().strides[*at.axis]));
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

bool KernelAxes::are_given_rows(const UOp& u) const {
  return is_given(u) && distance_along({u, shape_of(u).size() - 1}) == 1;
}

// Whether a product is summed along several axes that lie, in both factors, outside of fewer
// elements of the factor's own.  Axes along which windows overlap count for nothing.
bool KernelAxes::is_summed_over_positions(const UOp& reduce) const {
  if (!is_contraction(reduce)) return false;
  const UOp& product = reduce.src(0);
  struct Span {
    int axes = 0;
    double elements = 1;
    double distance = 0;  // between neighbours along the outermost
  };
  const auto span_of = [&](const UOp& factor, const Ints& axes) {
    Span span;
    for (const int64_t a : axes) {
      const auto axis = static_cast<size_t>(a);
      const Dim& size = shape_of(factor)[axis];
      const double distance = size.is(1) ? 0 : distance_along({factor, axis});
      if (distance == 0) continue;
      ++span.axes;
      span.elements *= static_cast<double>(upper_bound(size));
      span.distance = std::max(span.distance, distance);
    }
    return span;
  };
  bool are_pixels = false;
  for (size_t factor = 0; factor < 2; ++factor) {
    const Span steps = span_of(product.src(factor), reduce.reduce_arg().axes);
    const Span own = span_of(product.src(factor), own_axes(product, factor));
    if (steps.distance <= own.distance || steps.elements <= own.elements) return false;
    are_pixels |= steps.axes > 1;
  }
  return are_pixels;
}

std::array<Axis, 2> KernelAxes::columns_of_gradient(const UOp& reduce) const {
  std::array<Axis, 2> columns;
  if (!is_summed_over_positions(reduce)) return columns;
  const UOp& product = reduce.src(0);
  for (size_t factor = 0; factor < 2; ++factor) {
    const UOp& data = product.src(factor);
    if (is_given(data)) continue;
    for (const int64_t a : own_axes(product, factor)) {
      const auto axis = static_cast<size_t>(a);
      if (extent(data, axis) < kExtentMin || distance_along({data, axis}) == 0) continue;
      Axis& longest = columns[factor];
      if (!longest || extent(data, axis) > extent(data, *longest)) longest = axis;
    }
  }
  return columns;
}

}  // namespace tiny

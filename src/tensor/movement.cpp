#include "tensor/movement.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "shape/view.h"

namespace tiny {

namespace {

size_t at(int64_t axis) {
  return static_cast<size_t>(axis);
}

Shape zeros(size_t rank) {
  return Shape(rank, Dim(0));
}

// The size that stands for -1: product(of) / product(by).  What does not divide is left to the
// check that follows, if all are numbers.
Dim left_over(const Shape& of, const Shape& by) {
  const Dim count = product(of);
  const Dim known = product(by);
  if (const auto exact = divide_exactly(count, known)) return *exact;
  if (count.is_const() && known.is_const()) return floor_div(count, known);
  const UOp both[] = {count.uop((count.is_const() ? known : count).expression().graph()),
                      known.uop((count.is_const() ? known : count).expression().graph())};
  throw_free(both, cat("whether ", known, " divides ", count));
}

}  // namespace

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const Dim one = 1;
    const Dim& x = i < a.size() ? a[a.size() - 1 - i] : one;
    const Dim& y = i < b.size() ? b[b.size() - 1 - i] : one;
    require(x.is(1) || y.is(1) || decide_equal(x, y), Status::Shape, "shapes ", a, " and ", b,
            " do not broadcast");
    out[out.size() - 1 - i] = x.is(1) ? y : x;
  }
  return out;
}

UOp broadcast_to(const UOp& node, const Shape& shape) {
  const Shape& from = shape_of(node);
  if (from == shape) return node;
  Shape ones(shape.size() - from.size(), Dim(1));
  ones.insert(ones.end(), from.begin(), from.end());
  return make_expand(make_reshape(node, ones), shape);
}

int64_t checked_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw_error(Status::Shape, "axis ", axis, " of a tensor with ", rank, " dimensions",
                rank == 0 ? "" : cat("; wanted from ", -rank, " to ", rank - 1));
  return axis < 0 ? axis + rank : axis;
}

Ints checked_axes(const Ints& axes, int64_t rank) {
  Ints out;
  for (int64_t axis : axes) {
    const int64_t a = checked_axis(axis, rank);
    require(std::find(out.begin(), out.end(), a) == out.end(), Status::Shape, "axis ", a,
            " is named twice in ", list_text(axes));
    out.push_back(a);
  }
  return out;
}

Ints every_axis(int64_t rank) {
  Ints axes(at(rank));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

void check_shape(const Shape& shape, DType dtype) {
  require(std::ssize(shape) <= kRankMax, Status::Shape, "a tensor of ", shape.size(),
          " dimensions; at most ", kRankMax);
  int64_t bytes = dtype.bytes();
  for (const Dim& d : shape) {
    require(decide_less_equal(0, d), Status::Shape, "a negative dimension in ", shape,
            "; each at least 0");
    const int64_t n = upper_bound(d);
    // Sizes beside a 0 count too, so that strides never overflow.
    require(!__builtin_mul_overflow(bytes, std::max<int64_t>(n, 1), &bytes), Status::Shape,
            "shape ", shape, " of ", dtype, " has more bytes than an int64 counts");
  }
}

Tensor reshape(const Tensor& a, const Shape& shape) {
  Shape out = shape;
  Dim known = 1;
  int64_t open = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].is(-1)) continue;
    require(open < 0, Status::Shape, "more than one -1 in ", shape, "; wanted one at most");
    open = static_cast<int64_t>(i);
    out[i] = 1;
  }
  check_shape(out, a.dtype());
  known = product(out);
  const Dim count = product(a.shape());
  if (open >= 0) {
    require(!known.is(0), Status::Shape, "reshape to ", shape, ": -1 beside a 0 is any number");
    out[at(open)] = left_over(a.shape(), out);
    known = known * out[at(open)];
  }
  require(decide_equal(known, count), Status::Shape, "cannot reshape ", a.shape(), " (", count,
          " elements) to ", shape);
  check_shape(out, a.dtype());
  return a.moved(make_reshape(a.node(), out), Op::Reshape, out);
}

Tensor permute(const Tensor& a, const Ints& axes) {
  require(std::ssize(axes) == a.rank(), Status::Shape, "permutation ", list_text(axes),
          " of shape ", a.shape(), ": name every axis");
  const Ints order = checked_axes(axes, a.rank());
  return a.moved(make_permute(a.node(), order), Op::Permute, to_shape(order));
}

Tensor move_axis(const Tensor& a, int64_t from, int64_t to) {
  const int64_t axis = checked_axis(from, a.rank());
  Ints order;
  for (int64_t i = 0; i < a.rank(); ++i)
    if (i != axis) order.push_back(i);
  order.insert(order.begin() + checked_axis(to, a.rank()), axis);
  return permute(a, order);
}

Tensor transpose(const Tensor& a, int64_t axis, int64_t other) {
  Ints axes = every_axis(a.rank());
  std::swap(axes[at(checked_axis(axis, a.rank()))], axes[at(checked_axis(other, a.rank()))]);
  return permute(a, axes);
}

Tensor expand(const Tensor& a, const Shape& shape) {
  const TensorShape from = a.shape();
  require(shape.size() >= from.size(), Status::Shape, "cannot expand ", from, " to ", shape);
  const size_t added = shape.size() - from.size();
  Shape out = shape;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].is(-1) && i >= added) out[i] = from[i - added];
    require(i < added || from[i - added].is(1) || decide_equal(out[i], from[i - added]),
            Status::Shape, "cannot expand ", from, " to ", shape);
  }
  check_shape(out, a.dtype());
  Shape ones(added, Dim(1));
  ones.insert(ones.end(), from.begin(), from.end());
  const Tensor same_rank = a.moved(make_reshape(a.node(), ones), Op::Reshape, ones);
  return same_rank.moved(make_expand(same_rank.node(), out), Op::Expand, out);
}

Tensor flip(const Tensor& a, const Ints& axes) {
  Ints sorted = checked_axes(axes, a.rank());
  std::sort(sorted.begin(), sorted.end());
  return a.moved(make_flip(a.node(), sorted), Op::Flip, to_shape(sorted));
}

Tensor shrink(const Tensor& a, const Shape& begin, const Shape& end) {
  const TensorShape from = a.shape();
  require(begin.size() == from.size() && end.size() == from.size(), Status::Shape, "begin ", begin,
          " and end ", end, " of shape ", from, ": name every axis");
  for (size_t i = 0; i < from.size(); ++i) {
    require(decide_less_equal(0, begin[i]) && decide_less_equal(begin[i], end[i]) &&
                decide_less_equal(end[i], from[i]),
            Status::Shape, "elements ", begin, " to ", end, " of shape ", from,
            "; wanted 0 <= begin <= end <= size along each axis");
  }
  Shape both = begin;
  both.insert(both.end(), end.begin(), end.end());
  return a.moved(make_shrink(a.node(), begin, end), Op::Shrink, both);
}

Tensor pad(const Tensor& a, const Shape& before, const Shape& after, double value) {
  const TensorShape from = a.shape();
  require(before.size() == from.size() && after.size() == from.size(), Status::Shape, "pads ",
          before, " and ", after, " of shape ", from, ": name every axis");
  // What is taken away comes first; what is left may be nothing.
  Shape begin = zeros(from.size());
  Shape end = from;
  Shape more_before = before;
  Shape more_after = after;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!decide_less_equal(0, before[i])) {
      begin[i] = Dim(0) - before[i];
      more_before[i] = 0;
    }
    if (!decide_less_equal(0, after[i])) {
      end[i] = end[i] + after[i];
      more_after[i] = 0;
    }
    require(decide_less_equal(begin[i], end[i]), Status::Shape, "pads ", before, " and ", after,
            " take away more than shape ", from, " has");
  }
  const UOp inner = make_shrink(a.node(), begin, end);
  const UOp padded = make_pad(inner, more_before, more_after);
  check_shape(shape_of(padded), a.dtype());
  const UOp fill = a.graph().constant(a.dtype(), value);
  // Padding is with zero bits: -0.0 is a value like any other.
  if (fill.const_bits() == 0 || padded == inner) return a.with(padded);
  const UOp inside =
      make_pad(broadcast_to(a.graph().boolean(true), shape_of(inner)), more_before, more_after);
  return a.with(where(inside, padded, broadcast_to(fill, shape_of(padded))));
}

namespace {

// Whether something between `node` and the memory that it is a view of is a value of its own,
// which gradients go to or stop at.
bool is_apart(const UOp& node, const UOp& memory) {
  for (UOp u = node; !(u == memory); u = UOp(u.src(0)))
    if (u.op() == Op::Alias) return true;
  return false;
}

// Elements begin, begin+step, .. (count of them, all in range) of one axis; step > 0.
UOp strided_axis(const UOp& node, size_t axis, const Dim& begin, int64_t step, const Dim& count) {
  Shape shape = shape_of(node);
  const bool few = count.is(0) || count.is(1);
  if (step > 1 && !few && all_const(shape)) {
    // In memory it is a view, whatever the sizes.
    const auto stored = as_view(node);
    if (stored && all_const(stored->view.strides) && !is_apart(node, stored->base)) {
      ViewArg view{const_dims(shape), const_dims(stored->view.strides),
                   stored->view.offset.value()};
      view.offset += begin.value() * view.strides[axis];
      view.strides[axis] *= step;
      view.shape[axis] = count.value();
      return node.graph().make(Op::AsStrided, {stored->base}, std::move(view));
    }
  }
  const Dim n = shape[axis];
  Shape from = zeros(shape.size());
  Shape to = shape;
  if (step == 1 || few) {
    from[axis] = begin;
    to[axis] = begin + count;
    return make_shrink(node, from, to);
  }
  // Rows of `step` elements, of which one column is taken; the last row may end outside.
  const Dim window = count * Dim(step);
  const Dim column = minimum(maximum(begin + window - n, 0), begin);
  const Dim first = begin - column;
  Shape more = zeros(shape.size());
  more[axis] = maximum(first + window - n, 0);
  from[axis] = first;
  to[axis] = first + window;
  const UOp rows = make_shrink(make_pad(node, zeros(shape.size()), more), from, to);
  Shape split = shape;
  split[axis] = count;
  split.insert(split.begin() + static_cast<int64_t>(axis) + 1, Dim(step));
  Shape begins = zeros(split.size());
  Shape ends = split;
  begins[axis + 1] = column;
  ends[axis + 1] = column + 1;
  Shape out = shape;
  out[axis] = count;
  return make_reshape(make_shrink(make_reshape(rows, split), begins, ends), out);
}

struct Picked {
  Dim begin;
  int64_t step;
  Dim count;
};

// Python's begin:end:step on n elements.
Picked picked(const Dim& begin, const Dim& end, int64_t step, const Dim& n) {
  // A longer step than the axis picks one element at most, and a bound beyond it is its end.
  const int64_t most = std::max<int64_t>(upper_bound(n), 1);
  const int64_t s = std::clamp(step, -most, most);
  const Dim low = s > 0 ? 0 : -1;
  const Dim high = s > 0 ? n : n - 1;
  const auto counted = [&](Dim p) {
    if (p.is_const()) p = std::clamp(p.value(), -most - 1, most + 1);
    return decide_less_equal(0, p) ? p : p + n;
  };
  const Dim b = counted(begin);
  const Dim e = counted(end);
  // Each side is held where the other cannot be: x[1:] and x[:-1] have one size in the same words.
  const Dim span = s > 0 ? minimum(e, high) - maximum(b, low) : minimum(b, high) - maximum(e, low);
  const int64_t stride = s > 0 ? s : -s;
  return {minimum(maximum(b, low), high), s, floor_div(maximum(span, 0) + (stride - 1), stride)};
}

}  // namespace

Tensor slice(const Tensor& a, const Shape& begin, const Shape& end, const Ints& step) {
  const size_t rank = a.shape().size();
  require(begin.size() == rank && end.size() == rank && (step.empty() || step.size() == rank),
          Status::Shape, "a slice of shape ", a.shape(), " names every axis; got ", begin.size(),
          " begins, ", end.size(), " ends");
  UOp node = a.node();
  View view = a.view();
  for (size_t i = 0; i < rank; ++i) {
    const int64_t s = step.empty() ? 1 : step[i];
    require(s != 0, Status::InvalidArgument, "a slice's step is 0; wanted another");
    const Dim n = shape_of(node)[i];
    if (begin[i].is(0) && end[i].is(kSliceEnd) && s == 1) continue;
    const Picked p = picked(begin[i], end[i], s, n);
    view.offset = view.offset + (p.count.is(0) ? Dim(0) : p.begin) * view.strides[i];
    view.strides[i] = view.strides[i] * Dim(p.step);
    view.shape[i] = p.count;
    if (p.count.is(0)) {
      node = strided_axis(node, i, 0, 1, 0);
    } else if (s > 0) {
      node = strided_axis(node, i, p.begin, p.step, p.count);
    } else {
      // Backwards: the mirrored axis, forwards.
      node = strided_axis(make_flip(node, {static_cast<int64_t>(i)}), i, n - 1 - p.begin, -p.step,
                          p.count);
    }
  }
  return a.viewed(node, std::move(view));
}

Tensor slice_axis(const Tensor& a, int64_t axis, const Dim& begin, const Dim& end) {
  Shape from = zeros(a.shape().size());
  Shape to = a.shape();
  const size_t k = at(checked_axis(axis, a.rank()));
  from[k] = begin;
  to[k] = end;
  return shrink(a, from, to);
}

Tensor squeeze(const Tensor& a, const Ints& axes) {
  const Ints gone = checked_axes(axes, a.rank());
  Shape out;
  for (int64_t i = 0; i < a.rank(); ++i) {
    const Dim d = a.shape()[at(i)];
    const bool named = std::find(gone.begin(), gone.end(), i) != gone.end();
    require(!named || decide_equal(d, 1), Status::Shape, "axis ", i, " of ", a.shape(),
            " is not of size 1");
    if (!named) out.push_back(d);
  }
  return a.moved(make_reshape(a.node(), out), Op::Reshape, out);
}

Tensor squeeze(const Tensor& a) {
  Ints axes;
  for (int64_t i = 0; i < a.rank(); ++i)
    if (decide_equal(a.shape()[at(i)], 1)) axes.push_back(i);
  return squeeze(a, axes);
}

Tensor unsqueeze(const Tensor& a, const Ints& axes) {
  const int64_t rank = a.rank() + std::ssize(axes);
  const Ints added = checked_axes(axes, rank);
  Shape out;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i) {
    const bool is_new = std::find(added.begin(), added.end(), i) != added.end();
    out.push_back(is_new ? Dim(1) : a.shape()[next++]);
  }
  check_shape(out, a.dtype());
  return a.moved(make_reshape(a.node(), out), Op::Reshape, out);
}

Tensor flatten(const Tensor& a, int64_t begin, int64_t end) {
  const int64_t last = std::min(end, a.rank());
  require(begin >= 0 && begin <= last, Status::Shape, "flatten axes ", begin, " to ", last, " of ",
          a.shape(), "; wanted 0 <= begin <= end <= the number of axes");
  const TensorShape from = a.shape();
  Shape out(from.begin(), from.begin() + begin);
  out.push_back(product(Shape(from.begin() + begin, from.begin() + last)));
  out.insert(out.end(), from.begin() + last, from.end());
  return a.moved(make_reshape(a.node(), out), Op::Reshape, out);
}

}  // namespace tiny

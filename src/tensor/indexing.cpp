#include "tensor/indexing.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/error.h"
#include "ir/build.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/window.h"

namespace tiny {

namespace {

size_t at(int64_t axis) {
  return static_cast<size_t>(axis);
}

void require_index(const Tensor& a, const Tensor& index, const char* what) {
  const Tensor* const both[] = {&a, &index};
  require_one_context(both);
  require(index.dtype().is_int(), Status::DType, what, ": an index of ", index.dtype(),
          "; wanted an integer type");
}

Tensor size_like(const Tensor& index, const Dim& size) {
  return cast(size_tensor(index.context_ref(), size), index.dtype());
}

// Negative indices count from the end of `size` elements.
Tensor wrapped(const Tensor& index, const Dim& size) {
  if (index.dtype().is_unsigned()) return index;
  // A size that the index type cannot hold is out of its reach anyway: count in int64.
  const Tensor i = index.dtype() == kInt32 ? index : cast(index, kInt64);
  return where(less(i, number_int(i, 0)), add(i, size_like(i, size)), i);
}

// 0, 1, .. along `axis` of a tensor of `rank` axes.
Tensor positions(const Tensor& like, const Dim& count, int64_t rank, int64_t axis,
                 DType dtype = kInt64) {
  Shape shape(at(rank), Dim(1));
  shape[at(axis)] = count;
  const Tensor iota = arange(like.context_ref(), dtype, count);
  return iota.with(make_reshape(iota.node(), shape));
}

// The nearest index inside: whatever the data says, a place in flattened data that is made of it is
// one of its own row, and needs no division to tell the axes.
Tensor nearest(const Tensor& i, const Dim& size) {
  const Tensor last = size_like(i, size) - number_int(i, 1);
  return minimum(maximum(i, number_int(i, 0)), last);
}

Tensor is_inside(const Tensor& i, const Dim& size) {
  return bit_and(less_equal(number_int(i, 0), i), less(i, size_like(i, size)));
}

}  // namespace

Tensor positions(const Ref<Context>& context, DType dtype, const Dim& n, int64_t axis,
                 int64_t rank) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(axis)] = n;
  return reshape(arange(context, dtype, n), shape);
}

Tensor gather(const Tensor& a, const Tensor& index, int64_t axis) {
  require_index(a, index, "gather");
  const int64_t along = checked_axis(axis, a.rank());
  const Tensor out =
      a.with(make_gather(a.node(), wrapped(index, a.shape()[at(along)]).node(), along));
  check_shape(out.shape(), a.dtype());
  return out;
}

Tensor take_along_axis(const Tensor& a, const Tensor& index, int64_t axis) {
  require_index(a, index, "take_along_axis");
  const int64_t along = checked_axis(axis, a.rank());
  bool fits = index.rank() == a.rank();
  for (int64_t i = 0; fits && i < a.rank(); ++i) {
    const Dim have = a.shape()[at(i)];
    const Dim want = index.shape()[at(i)];
    fits = i == along || decide_less_equal(want, have);
  }
  require(fits, Status::Shape, "take_along_axis ", along, " of ", a.shape(), " with an index of ",
          index.shape(), "; wanted the same sizes, or 1, but along the axis");
  const Shape strides = row_major_strides(a.shape());
  const Dim size = a.shape()[at(along)];
  const Tensor i = wrapped(cast(index, kInt64), size);
  Tensor place = mul(nearest(i, size), size_like(i, strides[at(along)]));
  for (int64_t axis_of = 0; axis_of < a.rank(); ++axis_of) {
    if (axis_of == along) continue;
    const Tensor position = positions(index, index.shape()[at(axis_of)], a.rank(), axis_of);
    place = add(place, mul(position, size_like(position, strides[at(axis_of)])));
  }
  place = where(is_inside(i, size), place, number_int(place, -1));
  const Tensor flat = flatten(a);
  return a.with(make_gather(flat.node(), broadcast_to(place.node(), index.shape()), 0));
}

namespace {

// Elements that lie in one line: first, first + step, .., each `repeats` times side by side.
struct Line {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 1;
  int64_t repeats = 1;
};

// So many lines are read as they lie, which needs no index; more are looked up.
constexpr size_t kLinesMax = 8;

int64_t equal_from(const Ints& indices, size_t begin) {
  size_t end = begin + 1;
  while (end < indices.size() && indices[end] == indices[begin]) ++end;
  return static_cast<int64_t>(end - begin);
}

// Padded, resized and repeated axes have few.  None if there are more than kLinesMax.
std::vector<Line> lines_of(const Ints& indices) {
  std::vector<Line> lines;
  size_t i = 0;
  while (i < indices.size()) {
    if (lines.size() == kLinesMax) return {};
    Line line{indices[i], 1, 1, equal_from(indices, i)};
    i += static_cast<size_t>(line.repeats);
    for (int64_t last = line.first; i < indices.size(); last = indices[i - 1]) {
      const int64_t step = indices[i] - last;
      if (line.count > 1 && step != line.step) break;
      if (equal_from(indices, i) != line.repeats) break;
      line.step = step;
      ++line.count;
      i += static_cast<size_t>(line.repeats);
    }
    lines.push_back(line);
  }
  return lines;
}

Tensor taken(const Tensor& a, const Line& line, int64_t axis) {
  const int64_t last = line.first + (line.count - 1) * line.step;
  Tensor out = slice_axis(a, axis, std::min(line.first, last), std::max(line.first, last) + 1);
  Ints step(static_cast<size_t>(a.rank()), 1);
  step[static_cast<size_t>(axis)] = std::abs(line.step);
  if (line.count > 1 && std::abs(line.step) > 1)
    out = slice(out, Shape(static_cast<size_t>(a.rank()), Dim(0)), out.shape(), step);
  if (line.count > 1 && line.step < 0) out = flip(out, {axis});
  if (line.repeats == 1) return out;
  Shape one = out.shape(), each = out.shape(), flat = out.shape();
  const auto at = static_cast<std::ptrdiff_t>(axis);
  one.insert(one.begin() + at + 1, Dim(1));
  each.insert(each.begin() + at + 1, Dim(line.repeats));
  flat[static_cast<size_t>(axis)] = line.count * line.repeats;
  return reshape(expand(reshape(out, one), each), flat);
}

}  // namespace

Tensor index_select(const Tensor& a, const Ints& indices, int64_t axis) {
  const int64_t along = checked_axis(axis, a.rank());
  Shape shape = a.shape();
  const int64_t n = shape[static_cast<size_t>(along)].value();
  for (int64_t i : indices)
    require(i >= 0 && i < n, Status::InvalidArgument, "index_select: element ", i, " of axis ",
            along, ", which has ", n, "; each at least 0 and less");
  if (indices.empty()) {
    shape[static_cast<size_t>(along)] = 0;
    return full(a.context_ref(), a.dtype(), shape, 0);
  }
  if (const std::vector<Line> lines = lines_of(indices); !lines.empty()) {
    std::vector<Tensor> parts;
    for (const Line& line : lines) parts.push_back(taken(a, line, along));
    return parts.size() == 1 ? parts.front() : concat(parts, along);
  }
  const Tensor index = from_data(a.context_ref(), kInt64, {std::ssize(indices)}, indices.data(),
                                 std::ssize(indices) * 8);
  return a.with(make_gather(a.node(), index.node(), along));
}

Tensor gather_nd(const Tensor& a, const Tensor& index, int64_t batch) {
  require_index(a, index, "gather_nd");
  require(batch >= 0 && index.rank() > batch, Status::Shape, "gather_nd of ", a.shape(),
          " with an index of ", index.shape(), ", ", batch, " batch axes");
  const int64_t depth = index.shape().back().value();
  require(depth >= 1 && batch + depth <= a.rank() &&
              a.shape().part(0, at(batch)) == index.shape().part(0, at(batch)),
          Status::Shape, "gather_nd of ", a.shape(), " with an index of ", index.shape(), ", ",
          batch, " batch axes");
  const int64_t inner = batch + depth;
  const Shape outer = a.shape().part(0, at(inner));
  const Shape strides = row_major_strides(outer);
  const int64_t rank = index.rank() - 1;
  Tensor place = number_int(cast(index, kInt64), 0);
  // Gather checks places in flattened data: an index outside of its own axis must not pass for one
  // in the next row.
  Tensor inside;
  const auto add_axis = [&](const Tensor& i, int64_t axis) {
    place = add(place, mul(i, size_like(i, strides[at(axis)])));
  };
  for (int64_t i = 0; i < batch; ++i) add_axis(positions(index, outer[at(i)], rank, i), i);
  for (int64_t i = batch; i < inner; ++i) {
    const Tensor column = squeeze(slice_axis(index, -1, i - batch, i - batch + 1), {-1});
    const Tensor wanted = wrapped(cast(column, kInt64), outer[at(i)]);
    const Tensor fits = is_inside(wanted, outer[at(i)]);
    inside = inside ? bit_and(inside, fits) : fits;
    add_axis(nearest(wanted, outer[at(i)]), i);
  }
  place = where(inside, place, number_int(place, -1));
  const Tensor rows = flatten(a, 0, inner);
  const Shape shape = index.shape().part(0, at(rank));
  return a.with(make_gather(rows.node(), broadcast_to(place.node(), shape), 0));
}

Tensor one_hot(const Tensor& index, const Dim& depth, const Tensor& on, const Tensor& off,
               int64_t axis) {
  require_index(on, index, "one_hot");
  const int64_t rank = index.rank() + 1;
  const int64_t along = checked_axis(axis, rank);
  const Tensor i = unsqueeze(wrapped(cast(index, kInt64), depth), {along});
  const Tensor hit = equal(i, positions(index, depth, rank, along));
  check_shape(hit.shape(), on.dtype());
  return where(hit, on, off);
}

namespace {

// A type that counts `size` elements: twice as many of the narrow one are a vector.
DType counting_type(const Dim& size) {
  return upper_bound(size) <= std::numeric_limits<int32_t>::max() ? kInt32 : kInt64;
}

// Of counting_type().
Tensor arg_extreme(const Tensor& a, int64_t axis, bool keepdims, bool last, bool greatest) {
  const int64_t along = checked_axis(axis, a.rank());
  const Dim size = a.shape()[at(along)];
  // Of a size that may be 0 in a run the place is any.
  require(!size.is(0), Status::Shape, greatest ? "argmax" : "argmin", " over nothing: axis ", along,
          " of ", a.shape(), " has no elements");
  const Tensor best = greatest ? max(a, {along}, true) : min(a, {along}, true);
  Tensor chosen = equal(a, best);
  if (a.dtype().is_float()) chosen = bit_or(chosen, is_nan(a));
  const Tensor place = positions(a, size, a.rank(), along, counting_type(size));
  if (last) return max(where(chosen, place, number_int(place, -1)), {along}, keepdims);
  return min(where(chosen, place, size_like(place, size)), {along}, keepdims);
}

}  // namespace

Tensor argmax(const Tensor& a, int64_t axis, bool keepdims, bool last) {
  return cast(arg_extreme(a, axis, keepdims, last, true), kInt64);
}

Tensor argmin(const Tensor& a, int64_t axis, bool keepdims, bool last) {
  return cast(arg_extreme(a, axis, keepdims, last, false), kInt64);
}

Tensor hardmax(const Tensor& a, int64_t axis) {
  const int64_t along = checked_axis(axis, a.rank());
  const Tensor chosen = arg_extreme(a, along, true, false, true);
  const Tensor place = positions(a, a.shape()[at(along)], a.rank(), along, chosen.dtype());
  return cast(equal(place, chosen), a.dtype());
}

Tensor reverse_sequence(const Tensor& a, const Tensor& lengths, int64_t batch, int64_t time) {
  require_index(a, lengths, "reverse_sequence");
  const int64_t rows = checked_axis(batch, a.rank());
  const int64_t along = checked_axis(time, a.rank());
  const TensorShape dims = a.shape();
  require(rows != along && lengths.rank() == 1 && decide_equal(lengths.shape()[0], dims[at(rows)]),
          Status::Shape, "reverse_sequence of ", a.shape(), " along axis ", along,
          " with lengths of ", lengths.shape(), " for axis ", rows,
          "; wanted a length for each of its elements, and two axes");
  Shape shape(a.shape().size(), Dim(1));
  shape[at(rows)] = dims[at(rows)];
  const Tensor end = reshape(cast(lengths, kInt64), shape);
  const auto places = [&](int64_t axis) { return positions(a, dims[at(axis)], a.rank(), axis); };
  const Tensor place = places(along);
  const Tensor from = where(less(place, end), sub(sub(end, number_int(place, 1)), place), place);
  const Shape strides = row_major_strides(dims);
  const auto size = [&](const Dim& d) { return size_tensor(a.context_ref(), d); };
  Tensor flat = mul(from, size(strides[at(along)]));
  for (int64_t i = 0; i < a.rank(); ++i)
    if (i != along) flat = add(flat, mul(places(i), size(strides[at(i)])));
  const Tensor inside =
      bit_and(less_equal(number_int(from, 0), from), less(from, size(dims[at(along)])));
  const Tensor checked = where(expand(inside, flat.shape()), flat, number_int(flat, -1));
  return a.with(make_gather(flatten(a).node(), checked.node(), 0));
}

namespace {

Tensor triangle(const Tensor& a, int64_t diagonal, bool upper) {
  require(a.rank() >= 2, Status::Shape, upper ? "triu" : "tril", " of shape ", a.shape(),
          "; wanted at least 2 axes");
  const int64_t rank = a.rank();
  const Tensor i = positions(a, a.shape()[at(rank - 2)], rank, rank - 2);
  const Tensor j = positions(a, a.shape()[at(rank - 1)], rank, rank - 1);
  const Tensor border = add(i, number_int(i, diagonal));
  return where(upper ? less_equal(border, j) : less_equal(j, border), a, number_int(a, 0));
}

}  // namespace

Tensor triu(const Tensor& a, int64_t diagonal) {
  return triangle(a, diagonal, true);
}

Tensor tril(const Tensor& a, int64_t diagonal) {
  return triangle(a, diagonal, false);
}

Tensor eye(const Ref<Context>& context, DType dtype, const Dim& rows, const Dim& columns,
           int64_t diagonal) {
  const Tensor row = positions(context, kInt64, rows, 0, 2);
  const Tensor column = positions(context, kInt64, columns, 1, 2);
  return cast(equal(column - row, number_int(row, diagonal)), dtype);
}

Tensor tile(const Tensor& a, const Shape& repeats) {
  require(repeats.size() == a.shape().size(), Status::Shape, "tile of ", a.shape(), " by ", repeats,
          "; wanted a number for each axis");
  Shape ones;
  Shape wide;
  Shape out;
  for (size_t i = 0; i < repeats.size(); ++i) {
    require(decide_less_equal(0, repeats[i]), Status::Shape, "tile by ", repeats,
            "; each at least 0");
    ones.insert(ones.end(), {Dim(1), a.shape()[i]});
    wide.insert(wide.end(), {repeats[i], a.shape()[i]});
    out.push_back(a.shape()[i] * repeats[i]);
  }
  check_shape(out, a.dtype());
  return a.with(make_reshape(make_expand(make_reshape(a.node(), ones), wide), out));
}

namespace {

// Reshapes to `split`, permutes, reshapes to `shape`.
Tensor rearranged(const Tensor& a, const Shape& split, const Ints& order, const Shape& shape) {
  return a.with(make_reshape(make_permute(make_reshape(a.node(), split), order), shape));
}

void require_blocks(const Tensor& a, int64_t block, const char* what) {
  require(a.rank() == 4 && block >= 1, Status::Shape, what, " of ", a.shape(), " in blocks of ",
          block, "; wanted 4 axes, and blocks of at least 1");
}

Dim cut(const Dim& size, int64_t by, const char* what) {
  if (const auto exact = divide_exactly(size, by)) return *exact;
  require(size.value() % by == 0, Status::Shape, what, ": ", size.value(), " is no multiple of ",
          by);
  return floor_div(size, Dim(by));
}

}  // namespace

Tensor depth_to_space(const Tensor& a, int64_t block, bool columns_first) {
  require_blocks(a, block, "depth_to_space");
  const TensorShape s = a.shape();
  const Dim channels = cut(s[1], checked_mul(block, block, "a block"), "depth_to_space");
  const Dim b = block;
  const Shape shape{s[0], channels, s[2] * b, s[3] * b};
  if (columns_first)
    return rearranged(a, {s[0], channels, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, shape);
  return rearranged(a, {s[0], b, b, channels, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, shape);
}

Tensor space_to_depth(const Tensor& a, int64_t block) {
  require_blocks(a, block, "space_to_depth");
  const TensorShape s = a.shape();
  const Dim b = block;
  const Dim rows = cut(s[2], block, "space_to_depth");
  const Dim columns = cut(s[3], block, "space_to_depth");
  return rearranged(a, {s[0], s[1], rows, b, columns, b}, {0, 3, 5, 1, 2, 4},
                    {s[0], s[1] * b * b, rows, columns});
}

}  // namespace tiny

// Operators that move elements without computing: shapes, slices, parts, tiles.
#include <algorithm>
#include <map>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

Tensors import_identity(Call& c) {
  return give(c, {c.has(0) ? c.input(0) : Value{.is_nothing = true}});
}

Tensor reshaped(const Tensor& x, const Shape& shape) {
  for (const tiny::Dim& d : shape)
    require(decide_less_equal(0, d), Status::InvalidModel, "a shape ", tiny::to_string(shape),
            " with a negative size");
  require(decide_equal(product(shape), product(x.shape())), Status::InvalidModel, "shape ",
          x.shape(), " cannot become ", tiny::to_string(shape));
  return reshape(x, shape);
}

// Whether the size is 0 or may be, and what stood there is another then.
bool keeps_another(const Call& c, const tiny::Dim& asked, const TensorShape& from, size_t axis) {
  if (asked.is_const()) return asked.is(0);
  // A size that the run finds is meant as it is: where it is 0, so is what it was made of.
  if (c.importer().is_computed(asked)) return false;
  // A part of what stood there is 0 together with it.
  if (axis < from.size() && divide_exactly(from[axis], asked)) return false;
  return decide_equal(asked, 0);
}

// As many elements as these sizes are, one after the other, which are as many as x has: that nobody
// can tell of sizes that data says.
Tensor reshaped_as_said(const Call& c, const Tensor& x, const Shape& shape) {
  const tiny::Dim count = product(shape);
  if (product(x.shape()).is(0)) return full(c.context(), x.dtype(), shape, 0);
  return reshape(gather(flatten(x), arange(c.context(), kInt64, count)), shape);
}

// The same where the sizes are numbers, and the run finds how many elements there are.
Tensor reshaped_if_it_fits(const Call& c, const Tensor& x, const Shape& shape) {
  const tiny::Dim count = product(shape);
  const Tensor all = pad(flatten(x), {tiny::Dim(0)}, {tiny::Dim(1)});  // what may be none
  const Tensor size =
      size_tensor(c.context(), c.importer().common_size(product(x.shape()), count, c.node()));
  const Tensor at = minimum(arange(c.context(), kInt64, count), size);
  return reshape(gather(all, at), shape);
}

// `shape` is -1 where data says the size; there it may be 0 or -1 too.  Sizes that do not fit are
// below 0, which ends the run.
Tensors reshape_as_found(Call& c, Shape shape, bool allow_zero) {
  const Tensor& x = c.in(0);
  const TensorShape from = x.shape();
  const tiny::Dim elements = product(from);
  const Tensor count = size_tensor(c.context(), elements);
  const Tensor asked = cast(flatten(c.in(1)), kInt64);
  const Tensor none = tiny::number_int(asked, 0), one = tiny::number_int(asked, 1);
  Tensors sizes;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    Tensor size = slice_axis(asked, 0, at, at + 1);
    if (!allow_zero && i < from.size()) {
      if (shape[i].is(0)) shape[i] = from[i];
      size = where(equal(size, none), size_tensor(c.context(), from[i]), size);
    }
    sizes.push_back(size);
  }
  const Tensor named = concat(sizes, 0), is_open = less(named, none);
  const Tensor others = prod(where(is_open, one, named), {0});
  const Tensor given = where(is_open, floor_div(count, maximum(others, one)), named);
  const Tensor fits = equal(prod(given, {0}), count);
  const Tensor checked = where(fits, given, tiny::number_int(asked, -1));
  // Beside a size of 0 others may be any.
  const int64_t most = elements.is(0) ? kOpenSizeMax : upper_bound(elements);
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (shape[i].is(-1))
      shape[i] = c.importer().open_size(slice_axis(checked, 0, at, at + 1), c.node(), most);
  }
  return {reshaped_as_said(c, x, shape)};
}

// The product of the sizes that are neither 0 nor open.
tiny::Dim product_of_others(const Shape& shape) {
  tiny::Dim all = 1;
  for (const tiny::Dim& size : shape)
    if (!size.is(0) && !size.is(-1)) all = all * size;
  return all;
}

// 0 keeps a size unless `allow_zero`; one -1 takes what is left.
Tensors reshape_as_asked(Call& c, Shape shape, bool allow_zero) {
  const Tensor& x = c.in(0);
  const TensorShape from = x.shape();
  int64_t open = -1;
  tiny::Dim rest = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!allow_zero && keeps_another(c, shape[i], from, i)) {
      require(i < from.size(), Status::InvalidModel, "shape ", tiny::to_string(shape),
              " keeps an axis that ", x.shape(), " has not");
      shape[i] = from[i];
    }
    if (decide_equal(shape[i], -1)) {
      require(open < 0, Status::InvalidModel, "shape ", tiny::to_string(shape),
              " has two open sizes");
      open = static_cast<int64_t>(i);
    } else {
      rest = rest * shape[i];
    }
  }
  if (open >= 0) {
    const tiny::Dim count = product(from);
    auto exact = rest.is(0) && !count.is(0) ? std::nullopt : divide_exactly(count, rest);
    // Beside a 0, of a batch without pictures, it is what it is of any other batch, if that is one.
    if (rest.is(0) && count.is(0)) {
      const tiny::Dim all = product_of_others(from), others = product_of_others(shape);
      if (decide_equal(floor_mod(all, others), 0)) exact = floor_div(all, others);
    }
    // Whether what is left of what a run finds is whole, only the run can tell.
    if (!exact && c.has(1) && c.importer().is_computed(count))
      return reshape_as_found(c, shape, allow_zero);
    require(exact || (!rest.is(0) && count.value() % rest.value() == 0), Status::InvalidModel,
            "shape ", x.shape(), " cannot become ", tiny::to_string(shape));
    shape[static_cast<size_t>(open)] = *exact;
  }
  const auto is_number = [](const tiny::Dim& size) { return size.is_const(); };
  if (c.importer().is_computed(product(from)) && std::ranges::all_of(shape, is_number))
    return {reshaped_if_it_fits(c, x, shape)};
  return {reshaped(x, shape)};
}

Tensors import_reshape_attribute(Call& c) {
  return reshape_as_asked(c, to_shape(c.ints_attr("shape", {})), false);
}

Tensors import_reshape(Call& c) {
  bool is_found = false;
  const Shape shape = c.sizes(1, [&](size_t, const Tensor&) -> tiny::Dim {
    is_found = true;
    return -1;
  });
  const bool allow_zero = c.flag("allowzero", false);
  return is_found ? reshape_as_found(c, shape, allow_zero) : reshape_as_asked(c, shape, allow_zero);
}

Tensors import_flatten(Call& c) {
  const TensorShape dims = c.in(0).shape();
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = c.attr("axis", 1);
  c.check(axis >= -rank && axis <= rank, "axis ", axis, " of a tensor with ", rank, " axes");
  if (axis < 0) axis += rank;
  return {reshaped(c.in(0), {product(Shape(dims.begin(), dims.begin() + axis)),
                             product(Shape(dims.begin() + axis, dims.end()))})};
}

Tensors import_transpose(Call& c) {
  Ints axes(static_cast<size_t>(c.in(0).rank()));
  std::iota(axes.rbegin(), axes.rend(), 0);
  const Ints perm = c.ints_attr("perm", axes);
  c.check(perm.size() == axes.size(), "perm ", list_text(perm), " of a tensor with ", axes.size(),
          " axes");
  return {permute(c.in(0), axes_of(perm, c.in(0).rank()))};
}

// ---- Axes of size 1.

// Every axis of size 1, of which a size that the run finds is none: where it is, the rank would be
// another, and a size below 0 ends the run.
Tensor squeezed_all(Call& c) {
  const Tensor& x = c.in(0);
  Ints ones;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const tiny::Dim& size = x.shape()[static_cast<size_t>(axis)];
    if (!c.importer().is_computed(size)) {
      if (decide_equal(size, 1)) ones.push_back(axis);
      continue;
    }
    const Tensor found = size_tensor(c.context(), size);
    const Tensor is_one = equal(found, number_int(c, 1));
    c.importer().computed_size(where(is_one, number_int(c, -1), found), size, c.node());
  }
  return squeeze(x, ones);
}

Tensors squeezed(Call& c, const std::optional<Ints>& axes) {
  const Tensor& x = c.in(0);
  if (!axes) return {squeezed_all(c)};
  for (int64_t axis : axes_of(*axes, x.rank()))
    c.check(decide_equal(size_of(x, axis), 1), "axis ", axis, " of shape ", x.shape(),
            " has not size 1");
  return {squeeze(x, axes_of(*axes, x.rank()))};
}

Tensors import_squeeze_attribute(Call& c) {
  return squeezed(c, c.ints_attr("axes"));
}
Tensors import_squeeze(Call& c) {
  return squeezed(c, c.has(1) ? std::optional<Ints>(c.ints(1)) : std::nullopt);
}

Tensors unsqueezed(Call& c, const Ints& axes) {
  const int64_t rank = c.in(0).rank() + static_cast<int64_t>(axes.size());
  return {unsqueeze(c.in(0), axes_of(axes, rank))};
}

Tensors import_unsqueeze_attribute(Call& c) {
  return unsqueezed(c, c.ints_attr("axes", {}));
}
Tensors import_unsqueeze(Call& c) {
  return unsqueezed(c, c.ints(1));
}

// ---- Parts.

// As many elements of an axis as the run finds, from where it says, which lie in the axis.
Tensor found_part(const Call& c, const Tensor& x, int64_t axis, const Tensor& begin,
                  const tiny::Dim& count, int64_t step = 1) {
  const Tensor places = arange(c.context(), kInt64, count);
  const Tensor from = reshape(begin, {1});
  return gather(x, add(mul(places, tiny::number_int(places, step)), from), axis);
}

// So many sizes that the run finds have a sum that is an expression.  The sums of more are sizes of
// their own: else each part would begin at an expression over all parts before it.
constexpr size_t kFoundTogether = 16;

Tensors import_concat(Call& c) {
  Tensors parts = c.all();
  const int64_t given = c.version() < 4 ? c.attr("axis", 1) : c.attr("axis");
  const int64_t axis = axis_of(given, parts[0].rank());
  const auto is_found = [&](const Tensor& part) {
    return c.importer().is_computed(size_of(part, axis));
  };
  while (static_cast<size_t>(std::ranges::count_if(parts, is_found)) > kFoundTogether) {
    Tensors groups;
    for (size_t i = 0; i < parts.size(); i += kFoundTogether) {
      const size_t count = std::min(kFoundTogether, parts.size() - i);
      Tensor group = concat(std::span(parts).subspan(i, count), axis);
      if (is_found(group)) {
        const tiny::Dim size = size_of(group, axis);
        const Tensor sum = size_tensor(c.context(), size);
        group = found_part(c, group, axis, number_int(c, 0),
                           c.importer().computed_size(sum, size, c.node()));
      }
      groups.push_back(group);
    }
    parts = std::move(groups);
  }
  return {concat(parts, axis)};
}

constexpr int64_t kPartsMax = 1 << 20;

Tensors split_equally(Call& c, int64_t count) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c.attr("axis", 0), x.rank());
  const tiny::Dim n = size_of(x, axis);
  c.check(count > 0, "it has no outputs");
  c.check(count <= kPartsMax, count, " outputs");
  const bool is_found = c.importer().is_computed(n);
  if (!is_found) {
    const int64_t size = n.value();
    c.check(c.version() >= 18 || size % count == 0, "an axis of ", size, " elements in ", count,
            " parts");
  }
  // Only the last part may be smaller, and behind it may be empty ones.
  const tiny::Dim part = floor_div(n + (count - 1), count);
  // Of more parts than two the last may be the greater the fewer elements there are: its size is
  // one of its own, since there is memory for the greatest of each.
  const bool has_own_sizes = is_found && count > 2;
  Tensors out;
  for (int64_t i = 0; i < count; ++i) {
    const tiny::Dim begin = tiny::Dim(i) * part;
    if (!has_own_sizes || i == 0) {
      out.push_back(slice_axis(x, axis, minimum(begin, n), minimum(begin + part, n)));
      continue;
    }
    const Tensor from = size_tensor(c.context(), begin), width = size_tensor(c.context(), part);
    const Tensor left = sub(size_tensor(c.context(), n), from);
    const Tensor size = maximum(minimum(left, width), number_int(c, 0));
    out.push_back(found_part(c, x, axis, from, c.importer().computed_size(size, part, c.node())));
  }
  return out;
}

// Where data says how large the parts are, the last has a size below 0, which ends the run, unless
// they are the axis together.
Tensors split_as_found(Call& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c.attr("axis", 0), x.rank());
  const tiny::Dim n = size_of(x, axis);
  const Tensor sizes = cast(flatten(c.in(1)), kInt64);
  const int64_t count = dim_of(sizes, 0);
  c.check(count == static_cast<int64_t>(c.outputs()), count, " sizes of ", c.outputs(), " parts");
  const Tensor fits = equal(sum(sizes, {0}), size_tensor(c.context(), n));
  Tensors out;
  Tensor begin = full(c.context(), kInt64, {1}, 0);
  for (int64_t i = 0; i < count; ++i) {
    const Tensor size = slice_axis(sizes, 0, i, i + 1);
    const Tensor checked = i + 1 == count ? where(fits, size, number_int(c, -1)) : size;
    out.push_back(found_part(c, x, axis, begin, c.importer().computed_size(checked, n, c.node())));
    begin = add(begin, size);
  }
  return out;
}

Tensors split_into(Call& c, const std::optional<Ints>& sizes, int64_t count) {
  const Tensor& x = c.in(0);
  if (sizes) return split(x, *sizes, axis_of(c.attr("axis", 0), x.rank()));
  return split_equally(c, count);
}

Tensors import_split_attribute(Call& c) {
  const auto count = static_cast<int64_t>(c.outputs());
  if (c.has(1)) return split_into(c, c.ints(1), count);  // version 1
  return split_into(c, c.ints_attr("split"), count);
}

Tensors import_split(Call& c) {
  if (c.has(1) && c.importer().is_decided_by_data(c.in(1))) return split_as_found(c);
  if (c.has(1)) return split_into(c, c.ints(1), 0);
  return split_into(c, std::nullopt, c.attr("num_outputs", static_cast<int64_t>(c.outputs())));
}

Tensors sliced(Call& c, const Tensor& x, const Shape& starts, const Shape& ends,
               const std::optional<Ints>& given_axes, const std::optional<Ints>& given_steps) {
  const auto rank = static_cast<size_t>(x.rank());
  Ints axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (given_axes) axes = axes_of(*given_axes, x.rank());
  const Ints steps = given_steps.value_or(Ints(starts.size(), 1));
  c.check(ends.size() == starts.size() && axes.size() == starts.size() &&
              steps.size() == starts.size() && starts.size() <= rank,
          "starts, ends, axes and steps differ in length");
  Shape begin(rank, tiny::Dim(0)), end(rank, tiny::Dim(kSliceEnd));
  Ints step(rank, 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    c.check(steps[i] != 0, "a step is 0");
    // Backwards what begins before the axis begins at its first element.
    const bool may_precede = steps[i] < 0 && starts[i].is_const() && starts[i].value() < -1;
    begin[axis] = may_precede ? maximum(starts[i] + size_of(x, axes[i]), 0) : starts[i];
    end[axis] = ends[i];
    step[axis] = steps[i];
  }
  return {slice(x, begin, end, step)};
}

Tensors import_slice_attributes(Call& c) {
  return sliced(c, c.in(0), to_shape(c.ints_attr("starts", {})), to_shape(c.ints_attr("ends", {})),
                c.ints_attr("axes"), std::nullopt);
}

// Where a slice begins and ends that data decides about; none where it is known.
struct FoundSlice {
  Tensor begin;
  Tensor end;
};

// The elements of one axis from a begin on that data says, or backwards to such an end.
Tensor slice_found(Call& c, const Tensor& x, int64_t axis, const FoundSlice& at, int64_t step) {
  const tiny::Dim n = size_of(x, axis);
  // A longer step than the axis picks one element at most.
  const int64_t longest = std::max<int64_t>(upper_bound(n), 1);
  step = std::clamp(step, -longest, longest);
  const Tensor size = size_tensor(c.context(), n), none = number_int(c, 0);
  // Negative places count from the end; what is outside is the outermost that there is.
  const Tensor shift = number_int(c, step > 0 ? 0 : 1);
  const auto placed = [&](const Tensor& place, const Tensor& least) {
    const Tensor counted = where(less(place, none), add(place, size), place);
    return minimum(maximum(counted, least), sub(size, shift));
  };
  const Tensor begin = placed(at.begin, none), end = placed(at.end, sub(none, shift));
  const int64_t width = step > 0 ? step : -step;
  const Tensor apart = step > 0 ? sub(end, begin) : sub(begin, end);
  const Tensor count =
      maximum(floor_div(add(apart, number_int(c, width - 1)), number_int(c, width)), none);
  const tiny::Dim most = floor_div(n + (width - 1), width);
  return found_part(c, x, axis, begin, c.importer().computed_size(count, most, c.node()), step);
}

Tensors import_slice(Call& c) {
  const auto optional = [&](size_t i) {
    return c.has(i) ? std::optional<Ints>(c.ints(i)) : std::nullopt;
  };
  const std::optional<Ints> axes = optional(3), steps = optional(4);
  const auto at = [&](const Ints& given, size_t i) {
    c.check(i < given.size(), "starts, ends, axes and steps differ in length");
    return given[i];
  };
  const auto axis_at = [&](size_t i) {
    return axis_of(axes ? at(*axes, i) : static_cast<int64_t>(i), c.in(0).rank());
  };
  const auto step_at = [&](size_t i) { return steps ? at(*steps, i) : int64_t{1}; };
  std::map<size_t, FoundSlice> found;
  Shape starts = c.sizes(1, [&](size_t i, const Tensor& place) -> tiny::Dim {
    found[i].begin = place;
    return 0;
  });
  // Memory is for the greatest sizes, which with the begin at its greatest are not.
  for (size_t i = 0; i < starts.size(); ++i)
    if (c.importer().is_computed(starts[i])) found[i].begin = size_tensor(c.context(), starts[i]);
  Shape ends = c.sizes(2, [&](size_t i, const Tensor& place) -> tiny::Dim {
    if (found.contains(i) || step_at(i) < 0) {
      found[i].end = place;
      return 0;
    }
    const tiny::Dim size = size_of(c.in(0), axis_at(i));
    const Tensor most = size_tensor(c.context(), size), none = tiny::number_int(place, 0);
    const Tensor counted = where(less(place, none), add(place, most), place);
    return c.importer().computed_size(minimum(maximum(counted, none), most), size, c.node());
  });
  c.check(starts.size() == ends.size(), "starts and ends differ in length");
  Ints known_steps = steps.value_or(Ints(starts.size(), 1));
  Tensor x = c.in(0);
  for (auto& [i, place] : found) {
    c.check(step_at(i) != 0, "a step is 0");
    if (!place.begin) place.begin = size_tensor(c.context(), starts[i]);
    if (!place.end) place.end = size_tensor(c.context(), ends[i]);
    x = slice_found(c, x, axis_at(i), place, step_at(i));
    starts[i] = 0;
    ends[i] = kSliceEnd;
    known_steps[i] = 1;
  }
  return sliced(c, x, starts, ends, axes, known_steps);
}

// ---- Repeats.

Tensors import_expand(Call& c) {
  Shape shape = c.sizes(1);
  const TensorShape from = c.in(0).shape();
  const size_t more = shape.size() - std::min(shape.size(), from.size());
  // The size of a first row of what may have none: there more than one have no place.
  for (size_t i = more; i < shape.size(); ++i)
    if (c.importer().is_computed(shape[i]) && upper_bound(shape[i]) == 1 && !from[i - more].is(1))
      shape[i] = 1;
  return {expand(c.in(0), broadcast_shape(c.in(0).shape(), shape))};
}

Tensors tiled(Call& c, const Shape& repeats) {
  c.check(repeats.size() == static_cast<size_t>(c.in(0).rank()), "repeats ",
          tiny::to_string(repeats), " for ", c.in(0).rank(), " axes");
  return {tile(c.in(0), repeats)};
}

Tensors import_tile_axis(Call& c) {
  const int64_t axis = axis_of(c.integer(2), c.in(0).rank());
  Shape repeats(static_cast<size_t>(c.in(0).rank()), tiny::Dim(1));
  repeats[static_cast<size_t>(axis)] = c.integer(1);
  return tiled(c, repeats);
}

Tensors import_tile(Call& c) {
  return tiled(c, c.sizes(1));
}

// ---- Blocks of pixels.

Tensors import_depth_to_space(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() == 4, "it takes four axes; got ", x.rank());
  const int64_t channels = dim_of(x, 1);
  const int64_t b = c.attr("blocksize");
  c.check(b > 0 && b < (1 << 15) && channels % (b * b) == 0, channels, " channels in blocks of ",
          b);
  const std::string mode = c.text_attr("mode", "DCR");
  c.check(mode == "DCR" || mode == "CRD", "the attribute mode is \"", mode, "\"");
  return {depth_to_space(x, b, mode == "CRD")};
}

Tensors import_space_to_depth(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() == 4, "it takes four axes; got ", x.rank());
  const int64_t b = c.attr("blocksize");
  c.check(b > 0 && b < (1 << 15), "blocks of ", b);
  for (const int64_t axis : {2, 3})
    if (const tiny::Dim size = size_of(x, axis); size.is_const())
      c.check(size.value() % b == 0, "a picture of shape ", x.shape(), " in blocks of ", b);
  return {space_to_depth(x, b)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Identity",     1,  kNow, import_identity},
    {"Reshape",      1,  4,    import_reshape_attribute},
    {"Reshape",      5,  kNow, import_reshape, operand(1)},
    {"Flatten",      1,  kNow, import_flatten},
    {"Transpose",    1,  kNow, import_transpose},
    {"Squeeze",      1,  12,   import_squeeze_attribute},
    {"Squeeze",      13, kNow, import_squeeze, operand(1)},
    {"Unsqueeze",    1,  12,   import_unsqueeze_attribute},
    {"Unsqueeze",    13, kNow, import_unsqueeze, operand(1)},
    {"Concat",       1,  kNow, import_concat},
    {"Split",        1,  12,   import_split_attribute, operand(1)},
    {"Split",        13, kNow, import_split, operand(1)},
    {"Slice",        1,  9,    import_slice_attributes},
    {"Slice",        10, kNow, import_slice, operand(1) | operand(2) | operand(3) | operand(4)},
    {"Expand",       8,  kNow, import_expand, operand(1)},
    {"Tile",         1,  5,    import_tile_axis, operand(1) | operand(2)},
    {"Tile",         6,  kNow, import_tile, operand(1)},
    {"DepthToSpace", 1,  kNow, import_depth_to_space},
    {"SpaceToDepth", 1,  kNow, import_space_to_depth},
};
// clang-format on

}  // namespace

std::span<const Row> movement_rows() {
  return kRows;
}

}  // namespace tiny::onnx

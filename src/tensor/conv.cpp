// Convolutions: products of windows with filters.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "ir/build.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/window.h"
#include "tensor/window_parts.h"

namespace tiny {

namespace {

// [.., m] with one axis of size 1 for every spatial axis.
Tensor beside_space(const Tensor& bias, size_t spatial) {
  Shape shape = bias.shape();
  shape.insert(shape.end(), spatial, Dim(1));
  return reshape(bias, shape);
}

Tensor add_bias(const Tensor& out, const Tensor& bias, size_t spatial, DType dtype,
                const char* what) {
  if (!bias) return out;
  require(bias.rank() == 1 && decide_equal(bias.shape()[0], out.shape()[1]), Status::Shape, what,
          ": bias ", bias.shape(), " for ", out.shape()[1], " channels; wanted a number for each");
  return add(out, cast(beside_space(bias, spatial), dtype));
}

struct ConvTypes {
  DType result;
  DType wide;
};

ConvTypes conv_types(const Tensor& x, const Tensor& weight, const Tensor& bias, const char* what) {
  std::vector<const Tensor*> operands{&x, &weight};
  if (bias) operands.push_back(&bias);
  require_one_context(operands);
  require(x.rank() >= 2 && x.rank() == weight.rank(), Status::Shape, what, " of x ", x.shape(),
          " with weight ", weight.shape(), "; wanted as many axes, at least 2");
  const DType dtype = common_dtype(operands);
  return {dtype, accumulator_dtype(dtype)};
}

Dim divided(const Dim& channels, int64_t groups, const char* what) {
  require(groups >= 1, Status::InvalidArgument, what, ": groups is ", groups,
          "; wanted at least 1");
  const auto exact = divide_exactly(channels, groups);
  require(exact || channels.value() % groups == 0, Status::Shape, what, ": ", channels,
          " channels in ", groups, " groups; wanted a multiple of the groups");
  return *exact;
}

}  // namespace

Tensor conv(const Tensor& given, const Tensor& given_weight, const Tensor& bias,
            const Window& window) {
  const ConvTypes types = conv_types(given, given_weight, bias, "conv");
  const auto spatial = static_cast<size_t>(given.rank() - 2);
  const Tensor x = from_layout(given, window, spatial);
  const Tensor weight = from_layout(given_weight, window, spatial);
  const Ints kernel = const_dims(spatial_sizes(weight, spatial, "conv"));
  const Window o = complete(window, kernel, spatial_sizes(x, spatial, "conv"), "conv");
  const int64_t groups = o.groups;
  const Dim each = divided(x.shape()[1], groups, "conv");
  const Dim made = divided(weight.shape()[0], groups, "conv");
  require(decide_equal(weight.shape()[1], each), Status::Shape, "conv: weight ", weight.shape(),
          " for ", x.shape()[1], " channels in ", groups, " groups; its axis 1 must be ", each);
  // Where windows overlap, groups part before they are made: what reaches these is so one sum over
  // filters and taps.  Of windows a stride apart few have an element in common: what each tap adds
  // to it is formed first.
  const auto in_groups = [&](const Tensor& channels) {
    Shape split{channels.shape()[0], Dim(groups), Dim(1), each};
    const Shape rest = channels.shape().from(2);
    split.insert(split.end(), rest.begin(), rest.end());
    return reshape(channels, split);
  };
  const Tensor wide = cast(x, types.wide);
  const bool overlap = std::ranges::all_of(o.strides, [](int64_t s) { return s == 1; });
  const Tensor padded =
      pad_spatial(overlap ? in_groups(wide) : wide, o.before, to_shape(o.after), 0);
  const Shape sizes = spatial_sizes(padded, spatial, "conv");
  Shape counts;
  for (size_t i = 0; i < spatial; ++i) {
    counts.push_back(window_count(sizes[i], kernel[i], o.strides[i], o.dilations[i]));
    require(kernel[i] > 0 && !counts[i].is(0), Status::Shape, "conv: kernel ", list_text(kernel),
            " does not fit into ", x.shape(), " with its padding");
  }
  // [n, g, 1, counts.., c, kernel..] * [1, g, m, 1.., c, kernel..], summed over channels and
  // kernel.
  const Tensor view = windows(padded, kernel, o.strides, o.dilations, counts);
  const Tensor grouped = overlap ? view : in_groups(view);
  Ints order{0, 1, 2};
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(4 + i));
  order.push_back(3);
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(4 + spatial + i));
  Shape filters{Dim(1), Dim(groups), made};
  filters.insert(filters.end(), spatial, Dim(1));
  filters.push_back(each);
  filters.insert(filters.end(), kernel.begin(), kernel.end());
  Ints folded;
  for (size_t i = 0; i <= spatial; ++i) folded.push_back(static_cast<int64_t>(3 + spatial + i));
  // Nodes: with a tensor for each step a call takes a quarter longer (10.3 us for 8.0 on Zen 5).
  const UOp left = make_permute(grouped.node(), order);
  const UOp right = make_reshape(cast(weight, types.wide).node(), filters);
  const Shape met = broadcast_shape(shape_of(left), shape_of(right));
  const UOp products = mul(broadcast_to(left, met), broadcast_to(right, met));
  Shape shape{x.shape()[0], weight.shape()[0]};
  shape.insert(shape.end(), counts.begin(), counts.end());
  const Tensor total = x.with(make_reshape(make_reduce(products, Op::Add, folded), shape));
  const Tensor out = add_bias(total, bias, spatial, types.wide, "conv");
  return to_layout(cast(out, types.result), window, spatial);
}

namespace {

// `step` - 1 zeros between neighbours along the last axes.
Tensor spread_out(Tensor x, const Ints& steps) {
  const size_t lead = x.shape().size() - steps.size();
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == 1) continue;
    Shape column = x.shape();
    column.insert(column.begin() + static_cast<int64_t>(lead + i) + 1, Dim(1));
    Shape more(column.size(), Dim(0)), joined = x.shape(), end = joined;
    more[lead + i + 1] = steps[i] - 1;
    end[lead + i] = (joined[lead + i] - 1) * Dim(steps[i]) + 1;
    joined[lead + i] = joined[lead + i] * Dim(steps[i]);
    const Tensor rows = pad(reshape(x, column), Shape(column.size(), Dim(0)), more);
    x = slice(reshape(rows, joined), Shape(end.size(), Dim(0)), end);
  }
  return x;
}

// A transposed convolution as one with filters for each phase of its outputs.  Outputs a stride
// apart read the same taps, every stride-th one of the mirrored kernel; the phases take turns (Shi
// et al. 2016, "Is the deconvolution layer the same as a convolutional layer?").
struct Phases {
  Ints strides;
  Ints reach;   // elements from the first to the last of a kernel
  Ints first;   // of these phases,
  Ints counts;  // all of which have taps: those behind a kernel shorter than the stride have none
  Ints taps;    // of each
  int64_t groups = 1;
};

// [groups * phases * out channels of a group, channels of a group, taps..].
Tensor filters_of_phases(const Tensor& weight, const Ints& dilations, const Phases& phases) {
  const size_t spatial = phases.taps.size();
  const Tensor spread = spread_out(weight, dilations);
  Shape sizes{Dim(phases.groups), *divide_exactly(weight.shape()[0], phases.groups),
              weight.shape()[1]};
  Shape joined{Dim(phases.groups) * weight.shape()[1], sizes[1]};
  Shape begin(3, Dim(0)), end = sizes;
  Ints more, space, order{0};
  // [g, c, m, (taps, phases)..] to [g, phases.., m, c, taps..].
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t most = ceil_div(phases.reach[i], phases.strides[i]);
    const int64_t all = std::min(phases.strides[i], phases.reach[i]);
    more.push_back(most * all - phases.reach[i]);
    sizes.insert(sizes.end(), {Dim(most), Dim(all)});
    begin.insert(begin.end(), {Dim(0), Dim(phases.first[i])});
    end.insert(end.end(), {Dim(phases.taps[i]), Dim(phases.first[i] + phases.counts[i])});
    joined[0] = joined[0] * Dim(phases.counts[i]);
    joined.emplace_back(phases.taps[i]);
    order.push_back(static_cast<int64_t>(4 + 2 * i));
    space.push_back(static_cast<int64_t>(2 + i));
  }
  order.insert(order.end(), {2, 1});
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(3 + 2 * i));
  const Tensor whole = reshape(pad_spatial(spread, Ints(spatial, 0), to_shape(more), 0), sizes);
  return flip(reshape(permute(slice(whole, begin, end), order), joined), space);
}

// Where phases take turns, what makes one does not know how.
Tensor stored_for_turns(const Tensor& t, const Phases& phases) {
  return std::ranges::all_of(phases.strides, [](int64_t s) { return s == 1; }) ? t : contiguous(t);
}

// Phases of a tap less get a convolution of their own where that leaves out so many multiply-adds.
// Columns are computed by whole vectors, of so many at the most; windows of three stay as they are,
// which may be computed in tiles (rewrite/winograd.h).
constexpr double kLeftOutMin = 1e6;
constexpr int64_t kVectorColumns = 16;
constexpr int64_t kWindowInTiles = 3;

// The first of an axis' phases that have a tap less and a convolution of their own; 0: none has.
int64_t first_short_phase(const Tensor& x, const Dim& channels, const Phases& phases, size_t axis) {
  const int64_t taps = phases.taps[axis], count = phases.counts[axis];
  const int64_t full = phases.reach[axis] - (taps - 1) * phases.strides[axis];
  if (full == count || taps == 1 || taps == kWindowInTiles || !channels.is_const()) return 0;
  double steps = elements_at_most(x.node());
  int64_t beside = channels.value();
  for (size_t i = 0; i < phases.taps.size(); ++i) {
    if (i == axis) continue;
    steps *= static_cast<double>(phases.taps[i]);
    beside = checked_mul(beside, phases.counts[i], "the phases of a transposed convolution");
  }
  const auto columns = [&](int64_t of_axis) {
    return std::ceil(static_cast<double>(beside) * static_cast<double>(of_axis) / kVectorColumns) *
           kVectorColumns;
  };
  const auto each = static_cast<double>(taps);
  const double left_out =
      each * columns(count) - each * columns(full) - (each - 1) * columns(count - full);
  return steps * left_out < kLeftOutMin ? 0 : full;
}

// [n, groups, phases.., out channels of a group, sizes..], where those of the axes before `axis`
// have as many taps each.
Tensor by_phases(const Tensor& x, const Tensor& weight, const Window& inner, const Ints& dilations,
                 const Phases& phases, size_t axis) {
  const size_t spatial = phases.taps.size();
  const Dim channels = weight.shape()[1];
  if (axis < spatial) {
    const int64_t full = first_short_phase(x, channels, phases, axis);
    if (full == 0) return by_phases(x, weight, inner, dilations, phases, axis + 1);
    Phases longer = phases, shorter = phases;
    longer.counts[axis] = full;
    shorter.first[axis] = full;
    shorter.counts[axis] -= full;
    --shorter.taps[axis];
    Window beside = inner;
    --beside.before[axis];
    const Tensor parts[] = {by_phases(x, weight, inner, dilations, longer, axis + 1),
                            by_phases(x, weight, beside, dilations, shorter, axis + 1)};
    return concat(parts, static_cast<int64_t>(2 + axis));
  }
  const Tensor filters = stored_for_turns(filters_of_phases(weight, dilations, phases), phases);
  const Tensor all = stored_for_turns(conv(x, filters, Tensor(), inner), phases);
  Shape sizes{all.shape()[0], Dim(phases.groups)};
  for (const int64_t count : phases.counts) sizes.emplace_back(count);
  sizes.push_back(channels);
  for (size_t i = 0; i < spatial; ++i) sizes.push_back(all.shape()[2 + i]);
  return reshape(all, sizes);
}

// [n, groups, phases.., m, sizes..] as [n, groups * m, sizes * strides..].
Tensor in_turn(const Tensor& all, const Dim& channels, const Phases& phases) {
  const size_t spatial = phases.taps.size();
  Shape joined{all.shape()[0], channels};
  Shape more(all.shape().size(), Dim(0));
  Ints order{0, 1, static_cast<int64_t>(2 + spatial)};
  for (size_t i = 0; i < spatial; ++i) {
    joined.push_back(all.shape()[3 + spatial + i] * Dim(phases.strides[i]));
    more[2 + i] = phases.strides[i] - phases.counts[i];
    order.push_back(static_cast<int64_t>(3 + spatial + i));
    order.push_back(static_cast<int64_t>(2 + i));
  }
  const Tensor whole = pad(all, Shape(more.size(), Dim(0)), more);
  return reshape(permute(whole, order), joined);
}

}  // namespace

Tensor conv_transpose(const Tensor& given, const Tensor& given_weight, const Tensor& bias,
                      const Window& window) {
  const ConvTypes types = conv_types(given, given_weight, bias, "conv_transpose");
  const auto spatial = static_cast<size_t>(given.rank() - 2);
  const Tensor x = from_layout(given, window, spatial);
  const Tensor weight = from_layout(given_weight, window, spatial);
  const Ints kernel = const_dims(spatial_sizes(weight, spatial, "conv_transpose"));
  const Shape inputs = spatial_sizes(x, spatial, "conv_transpose");
  const Window o = complete_transposed(window, kernel, inputs, "conv_transpose");
  require(decide_equal(weight.shape()[0], x.shape()[1]), Status::Shape, "conv_transpose: weight ",
          weight.shape(), " for ", x.shape()[1], " channels; wanted as many along its axis 0");
  divided(x.shape()[1], o.groups, "conv_transpose");
  Phases phases{o.strides, {}, Ints(spatial, 0), {}, {}, o.groups};
  Window inner;
  inner.groups = o.groups;
  Shape begin{Dim(0), Dim(0)}, end{x.shape()[0], weight.shape()[1] * Dim(o.groups)};
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = checked_mul(o.dilations[i], kernel[i] - 1, "a window") + 1;
    const int64_t stride = o.strides[i];
    // Outputs from where the last input's window begins on.
    const int64_t last = reach - o.before[i] - o.after[i] + o.output_padding[i];
    const Dim size = (inputs[i] - 1) * Dim(stride) + last;
    const int64_t least = size.is_const() ? 1 : 0;  // runs may find that there is nothing
    require(kernel[i] > 0 && decide_less_equal(least, size), Status::Shape,
            "conv_transpose: nothing is left of ", x.shape(), " with kernel ", list_text(kernel));
    phases.reach.push_back(reach);
    phases.counts.push_back(std::min(stride, reach));
    phases.taps.push_back(ceil_div(reach, stride));
    const int64_t turn = floor_div(o.before[i], stride);
    inner.before.push_back(phases.taps[i] - 1 - turn);
    inner.after.push_back(floor_div(o.before[i] + last - 1, stride));
    begin.emplace_back(o.before[i] - turn * stride);
    end.push_back(begin.back() + size);
  }
  const Tensor all = by_phases(cast(x, types.wide), weight, inner, o.dilations, phases, 0);
  const Tensor out = slice(in_turn(all, end[1], phases), begin, end);
  const Tensor sum = add_bias(out, bias, spatial, types.wide, "conv_transpose");
  return to_layout(cast(sum, types.result), window, spatial);
}

}  // namespace tiny

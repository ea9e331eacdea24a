#include "schedule/rewrite/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/sort.h"
#include "ir/build.h"
#include "ir/open_size.h"
#include "schedule/decide.h"
#include "schedule/rewrite/winograd_match.h"
#include "schedule/rewrite/winograd_tiles.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

// The cost model.  Shares of the target's rates that kernels reach, and what tiles must gain.
constexpr double kSumRate = 0.8;
constexpr double kStreamRate = 0.6;
constexpr double kGainMin = 1.2;
constexpr int64_t kLanesMin = 8;
constexpr double kFilterOps = 2;  // additions and products a tap for a point of its filter
// Operations of a place for each point more that it is made of.  On a Zen 5, 2026-11-30: vectors of
// 4 x 4 places of F(4, 5) take 49 ns of one tile each, 130 ns of four.
constexpr double kOverlapOps = 3.5;

// Of a convolution's output and its channels.
struct Sizes {
  Dim batch = 1, rows = 1, columns = 1, channels_in = 1, channels_out = 1;
};

Sizes sizes_of(const Convolution& c, const Shape& shape) {
  const auto count = [&](const auto& axes, auto axis_of) {
    Dim n = 1;
    for (const auto& a : axes) n = n * shape[axis_of(a)];
    return n;
  };
  const auto paired = [](const AxisPair& a) { return a.product; };
  return {.batch = count(c.batch, paired),
          .rows = shape[c.windows[0].place],
          .columns = shape[c.windows[1].place],
          .channels_in = count(c.channels, paired),
          .channels_out = count(c.outputs, [](size_t a) { return a; })};
}

// With what a run says as it usually is.
ConvolutionSize usual_size(const Convolution& c, const Shape& shape) {
  const Sizes sizes = sizes_of(c, shape);
  const auto usual = [](const Dim& d) {
    return d.is_const() ? d.value() : usual_most(d.expression());
  };
  return {.batch = usual(sizes.batch),
          .rows = usual(sizes.rows),
          .columns = usual(sizes.columns),
          .channels_in = usual(sizes.channels_in),
          .channels_out = usual(sizes.channels_out),
          .taps = c.taps,
          .filter_varies = c.filter_varies};
}

Dim tiles_of(const Dim& places, WinogradTile tile) {
  return floor_div(places + (tile.outputs - 1), tile.outputs);
}

// The elements [first, first + count) along the windows' axes, with zeros behind the end.  What
// the input is padded with becomes one with that.
UOp extended(const Convolution& c, const std::array<Dim, 2>& counts) {
  UOp base = c.input;
  const size_t rank = shape_of(base).size();
  Shape before(rank);
  Shape after(rank);
  if (!has_memory(base) && base.op() == Op::Pad && base.src().size() == 1) {
    const Ints& pads = base.ints();
    for (size_t i = 0; i < rank; ++i) before[i] = pads[i], after[i] = pads[rank + i];
    base = UOp(base.src(0));
  }
  const Shape size = shape_of(base);
  Shape begin(rank);
  Shape end = size;
  for (size_t k = 0; k < 2; ++k) {
    const size_t axis = c.windows[k].input;
    const int64_t from = c.windows[k].first - before[axis].value();
    const Dim to = counts[k] + from;
    begin[axis] = minimum(std::max<int64_t>(from, 0), size[axis]);
    end[axis] = maximum(begin[axis], minimum(to, size[axis]));
    before[axis] = minimum(std::max<int64_t>(-from, 0), counts[k]);
    after[axis] = counts[k] - before[axis] - (end[axis] - begin[axis]);
  }
  return make_pad(make_shrink(base, begin, end), before, after);
}

// `x` as [sizes], made of these of its axes; the others have one element.
UOp in_order(const UOp& x, const std::vector<size_t>& axes, const Shape& sizes) {
  std::vector<bool> placed(shape_of(x).size());
  Ints order;
  for (const size_t axis : axes) {
    order.push_back(static_cast<int64_t>(axis));
    placed[axis] = true;
  }
  for (size_t i = 0; i < placed.size(); ++i)
    if (!placed[i]) order.push_back(static_cast<int64_t>(i));
  return make_reshape(make_permute(x, order), sizes);
}

std::vector<size_t> axes_of_input(const Convolution& c) {
  std::vector<size_t> axes;
  for (const AxisPair& a : c.batch) axes.push_back(a.input);
  for (const WindowAxis& w : c.windows) axes.push_back(w.input);
  for (const AxisPair& a : c.channels) axes.push_back(a.input);
  return axes;
}

// The input as [n, rows, columns, channels], long enough for whole tiles.
UOp input_of(const Convolution& c, const Sizes& size, WinogradTile tile) {
  const auto length = [&](const Dim& n) { return (tiles_of(n, tile) + 1) * tile.outputs; };
  const std::array<Dim, 2> counts{length(size.rows), length(size.columns)};
  return in_order(extended(c, counts), axes_of_input(c),
                  {size.batch, counts[0], counts[1], size.channels_in});
}

// An input that is there already, with its channels apart, is laid out anew: each element is read
// for several tiles, with lanes along the channels.
Convolution with_channels_innermost(Convolution c) {
  UOp base = c.input;
  while (!has_memory(base) && base.op() == Op::Pad && base.src().size() == 1)
    base = UOp(base.src(0));
  const auto stored = as_view(base);
  const auto is_channel = [&](size_t axis) {
    return std::ranges::any_of(c.channels, [&](const AxisPair& a) { return a.input == axis; });
  };
  const size_t rank = shape_of(base).size();
  Ints order;
  bool is_apart = stored && !c.channels.empty();
  for (const bool channels : {false, true})
    for (size_t i = 0; i < rank; ++i) {
      if (is_channel(i) != channels) continue;
      order.push_back(static_cast<int64_t>(i));
      if (channels && stored && stored->view.strides[i].is(1)) is_apart = false;
    }
  if (!is_apart) return c;
  Ints back(rank);
  for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const UOp laid_out = base.graph().make(Op::Contiguous, {make_permute(base, order)});
  c.input = substitute(c.input, {{base, make_permute(laid_out, back)}});
  return c;
}

// An operand of the product as [sizes], made of these of its axes; it repeats along the others. How
// often is left out where only a run says: what is made of constants is one.
UOp cut_to(const UOp& operand, const std::vector<size_t>& axes, const Shape& sizes) {
  std::vector<bool> repeats(shape_of(operand).size(), true);
  for (const size_t axis : axes) repeats[axis] = false;
  UOp once = operand;
  if (operand.op() == Op::Expand && !all_const(shape_of(operand))) {
    once = UOp(operand.src(0));
    Shape shape = shape_of(once);
    for (const size_t axis : axes) shape[axis] = shape_of(operand)[axis];
    once = make_expand(once, shape);
  }
  return in_order(first_along(once, repeats), axes, sizes);
}

// `x` as movement of the last value that has the same elements, whatever movement leads to it: two
// sums' operands of one value are one node then.
UOp from_its_value(const UOp& x) {
  const Shape shape = shape_of(x);
  std::vector<size_t> axes;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!shape[i].is(1)) axes.push_back(i);
  UOp out = x, node = x;
  while (!has_memory(node) && has(node.op(), kMovement)) {
    if (node.op() == Op::Flip || node.op() == Op::Pad) break;
    for (size_t& axis : axes) {
      const auto below = axis_below(node, axis);
      if (!below || !(shape_of(node.src(0))[*below] == shape_of(node)[axis])) return out;
      axis = *below;
    }
    node = UOp(node.src(0));
    if (product(shape_of(node)) == product(shape)) out = in_order(node, axes, shape);
  }
  return out;
}

// The axes of the product along which batch and places, or taps and channels lie.
std::vector<size_t> axes_of_places(const Convolution& c) {
  std::vector<size_t> axes;
  for (const AxisPair& a : c.batch) axes.push_back(a.product);
  for (const WindowAxis& w : c.windows) axes.push_back(w.place);
  axes.insert(axes.end(), c.outputs.begin(), c.outputs.end());
  return axes;
}
std::vector<size_t> axes_of_filter(const Convolution& c) {
  std::vector<size_t> axes;
  for (const WindowAxis& w : c.windows) axes.push_back(w.tap);
  axes.insert(axes.end(), c.outputs.begin(), c.outputs.end());
  for (const AxisPair& a : c.channels) axes.push_back(a.product);
  return axes;
}

// [taps, taps, out, in], whose first tap is the first of the input's places, or the last.
UOp turned_filter(const UOp& filter, const Convolution& c, bool is_last_first = false) {
  Ints axes;
  for (size_t i = 0; i < 2; ++i)
    if (c.windows[i].is_flipped != is_last_first) axes.push_back(static_cast<int64_t>(i));
  return axes.empty() ? filter : make_flip(filter, axes);
}

// `x` as a sum over an axis of one element: what the scheduler does not compute twice.
UOp kept_whole(const UOp& x) {
  const Shape& shape = shape_of(x);
  Shape longer = shape;
  longer.emplace_back(1);
  const auto last = static_cast<int64_t>(shape.size());
  return make_reshape(make_reduce(make_reshape(x, longer), Op::Add, {last}), shape);
}

// What reached places, [n, rows, columns, c], at the points of whole tiles.
UOp slopes_of(const UOp& y, WinogradTile tile) {
  const auto rest = [&](const Dim& n) { return tiles_of(n, tile) * tile.outputs - n; };
  const UOp whole = from_its_value(y);
  const Shape& shape = shape_of(y);
  return kept_whole(winograd_slopes(
      make_pad(whole, Shape(4, Dim(0)), {0, rest(shape[1]), rest(shape[2]), 0}), tile));
}

// `value`, whose axes are these of the product, as the sum had it: one element along the others.
UOp placed(const UOp& value, const std::vector<size_t>& axes, const UOp& reduce) {
  const Shape& shape = shape_of(reduce.src(0));
  Shape sizes;
  for (const size_t axis : axes) sizes.push_back(shape[axis]);
  Ints order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  sort_stable(order, {}, [&](int64_t i) { return axes[static_cast<size_t>(i)]; });
  return make_reshape(make_permute(make_reshape(value, sizes), order), shape_of(reduce));
}

// The convolution computed in tiles of its output.  Or, where all taps reach beyond the input's
// ends, from tiles of its input: what these places add to those of the output.
UOp convolved_in_tiles(const UOp& reduce, const Convolution& c, WinogradTile tile,
                       bool is_from_slopes) {
  const Sizes size = sizes_of(c, shape_of(reduce.src(0)));
  const auto stored = [&](const UOp& x) { return reduce.graph().make(Op::Contiguous, {x}); };
  const UOp filter =
      cut_to(c.other, axes_of_filter(c), {c.taps, c.taps, size.channels_out, size.channels_in});
  const UOp u = stored(winograd_filter(turned_filter(filter, c, is_from_slopes), tile));
  UOp tiles;
  if (is_from_slopes) {
    const Shape& input = shape_of(c.input);
    const UOp x = in_order(
        c.input, axes_of_input(c),
        {size.batch, input[c.windows[0].input], input[c.windows[1].input], size.channels_in});
    tiles = winograd_input_slopes(winograd_product(slopes_of(x, tile), u), tile);
  } else {
    const UOp v = kept_whole(winograd_input(input_of(c, size, tile), tile));
    tiles = winograd_output(stored(winograd_product(v, u)), tile);
  }
  const UOp y = make_shrink(tiles, Shape(4, Dim(0)),
                            {size.batch, size.rows, size.columns, size.channels_out});
  return placed(y, axes_of_places(c), reduce);
}

// The filter's gradient computed in tiles: of the convolution's input as that has it.
UOp filter_gradient_in_tiles(const UOp& reduce, const Convolution& c, WinogradTile tile) {
  const Sizes size = sizes_of(c, shape_of(reduce.src(0)));
  const UOp v = kept_whole(winograd_input(input_of(c, size, tile), tile));
  const UOp s = slopes_of(
      cut_to(c.other, axes_of_places(c), {size.batch, size.rows, size.columns, size.channels_out}),
      tile);
  const UOp sums = reduce.graph().make(Op::Contiguous, {winograd_slope_product(s, v)});
  return placed(turned_filter(winograd_filter_slopes(sums, tile), c), axes_of_filter(c), reduce);
}

// Constants come from memory, while what is there already is multiplied: a network has more of them
// than a cache holds.
double constant_seconds(double elements, const Machine& target) {
  const double bytes = 4 * elements;
  return bytes / (bytes > static_cast<double>(target.l2_bytes) / 2
                      ? target.memory_bandwidth * kStreamRate
                      : target.l2_bandwidth);
}

// Short panels keep fewer accumulators busy.
double busy(double rows) {
  return std::min(1.0, rows / 6);
}

// Of U = G g G^T in the run: each point adds up few of the taps, and is stored.
double filter_seconds(double filters, double points, double taps, const Machine& target) {
  return filters * points * kFilterOps * std::sqrt(taps) / target.fma_rate +
         saved_seconds(4 * filters * (points + taps), target) + target.launch_seconds;
}

double taps_of(const ConvolutionSize& size) {
  return static_cast<double>(size.taps * size.taps);
}

double direct_seconds(const ConvolutionSize& size, const Machine& target) {
  const auto places = static_cast<double>(size.batch * size.rows * size.columns);
  const double filter = taps_of(size) * static_cast<double>(size.channels_in * size.channels_out);
  return std::max(places * filter / (target.fma_rate * kSumRate), constant_seconds(filter, target));
}

double tiled_seconds(const ConvolutionSize& size, WinogradTile tile, const Machine& target) {
  const int64_t m = tile.outputs;
  const auto points = static_cast<double>(tile.points() * tile.points());
  const auto tiles =
      static_cast<double>(size.batch * ceil_div(size.rows, m) * ceil_div(size.columns, m));
  const auto in = static_cast<double>(size.channels_in);
  const auto out = static_cast<double>(size.channels_out);
  const double product = points * tiles * in * out / (target.fma_rate * kSumRate * busy(tiles));
  // Both intermediate values are written and read.
  const double bytes = 4 * points * tiles * (in + out);
  const double filter =
      size.filter_varies ? filter_seconds(in * out, points, taps_of(size), target) : 0;
  return std::max(product, constant_seconds(points * in * out, target)) +
         saved_seconds(bytes, target) + target.launch_seconds + filter;
}

// Whether it is faster to add up what the input's own places, whose tiles are fewer, add to the
// output.  This begins where a tile does, so that results share what they are made of.  Only of
// filters that vary is there a gradient, which wants the same places at the same points.
bool is_faster_from_slopes(const Convolution& c, const ConvolutionSize& size, WinogradTile tile,
                           const Machine& target) {
  ConvolutionSize within = size;
  const Dim &rows = shape_of(c.input)[c.windows[0].input],
            &columns = shape_of(c.input)[c.windows[1].input];
  if (!c.filter_varies || !rows.is_const() || !columns.is_const()) return false;
  within.rows = rows.value();
  within.columns = columns.value();
  const int64_t around = c.taps - 1;
  if (c.windows[0].first != -around || c.windows[1].first != -around ||
      size.rows > within.rows + around || size.columns > within.columns + around)
    return false;
  const auto operands = static_cast<double>(3 * tile.points() * tile.points());
  const auto tiles = static_cast<double>(size.batch * ceil_div(size.rows, tile.outputs) *
                                         ceil_div(size.columns, tile.outputs));
  const double more = kOverlapOps * operands * tiles * static_cast<double>(size.channels_out);
  return tiled_seconds(within, tile, target) + more / target.fma_rate <
         tiled_seconds(size, tile, target);
}

// A sum as before, over axes that now have one element.
UOp computed_in_tiles(const UOp& reduce, const Convolution& c, WinogradTile tile,
                      const Machine& target) {
  const UOp y =
      c.is_gradient
          ? filter_gradient_in_tiles(reduce, c, tile)
          : convolved_in_tiles(
                reduce, c, tile,
                is_faster_from_slopes(c, usual_size(c, shape_of(reduce.src(0))), tile, target));
  return make_reduce(y, Op::Add, reduce.reduce_arg().axes);
}

}  // namespace

WinogradUse winograd_use(std::string_view text) {
  if (text == "0") return WinogradUse::Never;
  if (text == "1") return WinogradUse::WhereLegal;
  require(text == "auto" || text.empty(), Status::InvalidArgument, "wino \"", text,
          "\": known are 0, 1, auto");
  return WinogradUse::WhereFaster;
}

std::optional<WinogradTile> winograd_tile(const ConvolutionSize& size, const Machine& target,
                                          double extra_seconds) {
  if (target.lanes(kFloat32) < kLanesMin) return std::nullopt;
  if (std::min(size.channels_in, size.channels_out) < target.lanes(kFloat32)) return std::nullopt;
  std::optional<WinogradTile> best;
  double least = direct_seconds(size, target) / kGainMin;
  for (const WinogradTile& tile : kWinogradTiles) {
    if (tile.taps != size.taps) continue;
    const double seconds = tiled_seconds(size, tile, target) + extra_seconds;
    if (seconds < least) best = tile, least = seconds;
  }
  return best;
}

ChangedGraph rewrite_winograd(std::span<const UOp> roots, const Machine& target,
                              const std::vector<uint8_t>& is_constant, WinogradUse use,
                              double extra_seconds) {
  if (use == WinogradUse::Never) return unchanged(roots);
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (has_memory(node) || now.op() != Op::ReduceAxis || now.reduce_arg().op != Op::Add ||
        now.src(0).op() != Op::Mul || has_memory(now) || has_memory(now.src(0)))
      return now;
    const auto c = find_convolution(now, is_constant);
    if (!c) return now;
    auto tile = winograd_tile(usual_size(*c, shape_of(now.src(0))), target, extra_seconds);
    if (!tile && use == WinogradUse::WhereLegal) tile = WinogradTile{4, c->taps};
    return tile ? computed_in_tiles(now, with_channels_innermost(*c), *tile, target) : now;
  });
}

}  // namespace tiny

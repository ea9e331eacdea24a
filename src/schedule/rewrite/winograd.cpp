#include "schedule/rewrite/winograd.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "ir/affine.h"
#include "ir/build.h"
#include "rules/symbolic.h"
#include "schedule/decide.h"
#include "schedule/rewrite/winograd_tiles.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

constexpr int64_t kTaps = 3;
// The cost model.  Shares of the target's rates that kernels reach, and what tiles must gain.
constexpr double kSumRate = 0.8;
constexpr double kStreamRate = 0.6;
constexpr double kGainMin = 1.2;
constexpr int64_t kLanesMin = 8;
constexpr double kFilterOps = 6;  // additions and products for one point of a transformed filter
// How far movement is followed.
constexpr int kStepsMax = 64;

// A pair of axes: of the product, and of the input that the product's operand is a view of.
struct AxisPair {
  size_t product = 0;
  size_t input = 0;
};

// An axis of the input that windows of three taps slide along.
struct Window {
  size_t input = 0;
  size_t place = 0;  // axes of the product
  size_t tap = 0;
  int64_t first = 0;  // the input's position of the first tap of the first window
};

struct Convolution {
  UOp input;
  UOp filter;
  std::array<Window, 2> windows;
  std::vector<AxisPair> batch;
  std::vector<AxisPair> channels;  // reduced
  std::vector<size_t> outputs;     // axes of the product that the input repeats along
  bool filter_varies = false;
};

class Matcher {
 public:
  Matcher(const UOp& reduce, const std::vector<uint8_t>& is_constant)
      : product_(reduce.src(0)), shape_(shape_of(product_)), is_constant_(is_constant) {
    is_reduced_.resize(shape_.size());
    for (int64_t axis : reduce.reduce_arg().axes) is_reduced_[static_cast<size_t>(axis)] = true;
  }

  std::optional<Convolution> run() {
    if (!all_const(shape_) || !(product_.dtype() == kFloat32)) return std::nullopt;
    const auto taps = [&](size_t axis) { return is_reduced_[axis] && shape_[axis].is(kTaps); };
    int count = 0;
    for (size_t i = 0; i < shape_.size(); ++i) {
      if (shape_[i].is(0)) return std::nullopt;
      count += taps(i) ? 1 : 0;
    }
    if (count < 2) return std::nullopt;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const std::optional<UOp> stored = stored_filter(product_.src(side));
      auto found = stored ? match(product_.src(1 - side), product_.src(side)) : std::nullopt;
      if (!found) continue;
      found->filter_varies = !is_constant(*stored);
      return found;
    }
    return std::nullopt;
  }

 private:
  // What movement alone makes the operand of, if that is in memory; none if it is computed.
  static std::optional<UOp> stored_filter(UOp node) {
    for (int step = 0; step < kStepsMax && !has_memory(node) && node.op() != Op::After; ++step) {
      if (node.op() == Op::Contiguous) return node;
      if (!has(node.op(), kMovement)) return std::nullopt;
      node = UOp(node.src(0));
    }
    return node;
  }
  bool is_constant(const UOp& stored) const {
    return stored.id() < is_constant_.size() && is_constant_[stored.id()];
  }

  // Follows the movement of `data` down to the last value of which it is windows.
  std::optional<Convolution> match(const UOp& data, const UOp& filter) {
    Graph& graph = data.graph();
    std::vector<UOp> index;
    for (size_t i = 0; i < shape_.size(); ++i) {
      ranges_.push_back(graph.make(Op::Range, {shape_[i].uop(graph)}, static_cast<int64_t>(i)));
      index.push_back(shape_[i].is(1) ? graph.integer(0) : ranges_[i]);
    }
    std::optional<Convolution> found;
    UOp node = data;
    for (int step = 0; step < kStepsMax; ++step) {
      if (auto here = match_input(node, index)) found = std::move(here);
      if (has_memory(node) || !has(node.op(), kMovement) || node.op() == Op::AsStrided ||
          node.src().size() != 1)
        break;
      std::vector<UOp> conditions;
      index = apply_movement_op(node, index, conditions);
      for (UOp& e : index) e = simplify_(e);
      if (!conditions.empty()) break;
      node = UOp(node.src(0));
    }
    ranges_.clear();
    if (!found || !matches(filter, *found)) return std::nullopt;
    found->filter = filter;
    return found;
  }

  std::optional<size_t> axis_of(const UOp& atom) const {
    const auto at = std::ranges::find(ranges_, atom);
    if (at == ranges_.end()) return std::nullopt;
    return static_cast<size_t>(at - ranges_.begin());
  }

  // The roles of the input's axes, if every index is a range or the sum of a place and a tap.
  std::optional<Convolution> match_input(const UOp& input, const std::vector<UOp>& index) {
    const Shape& shape = shape_of(input);
    Convolution out;
    size_t windows = 0;
    std::vector<bool> used(shape_.size());
    const auto take = [&](size_t axis) {
      const bool fresh = !used[axis];
      used[axis] = true;
      return fresh;
    };
    for (size_t i = 0; i < index.size(); ++i) {
      const auto sum = affine(index[i]);
      if (!sum || !shape[i].is_const()) return std::nullopt;
      if (shape[i].is(1) && sum->terms.empty()) continue;
      std::vector<size_t> axes;
      for (const AffineTerm& term : sum->terms) {
        const auto axis = axis_of(term.atom);
        if (!axis || term.coefficient != 1 || !take(*axis)) return std::nullopt;
        axes.push_back(*axis);
      }
      if (axes.size() == 1 && sum->constant == 0 && shape[i] == shape_[axes[0]]) {
        (is_reduced_[axes[0]] ? out.channels : out.batch).push_back({axes[0], i});
        continue;
      }
      if (axes.size() != 2 || windows == 2 || sum->constant < 0) return std::nullopt;
      if (is_reduced_[axes[0]]) std::swap(axes[0], axes[1]);
      if (is_reduced_[axes[0]] || !is_reduced_[axes[1]] || !shape_[axes[1]].is(kTaps))
        return std::nullopt;
      out.windows[windows++] = {i, axes[0], axes[1], sum->constant};
    }
    if (windows != 2) return std::nullopt;
    for (size_t i = 0; i < shape_.size(); ++i) {
      if (used[i] || shape_[i].is(1)) continue;
      if (is_reduced_[i]) return std::nullopt;
      out.outputs.push_back(i);
    }
    out.input = input;
    return out;
  }

  // The same filter serves all places and all of the batch.
  bool matches(const UOp& filter, const Convolution& c) const {
    for (const Window& w : c.windows)
      if (!repeats(filter, w.place)) return false;
    return std::ranges::all_of(c.batch,
                               [&](const AxisPair& a) { return repeats(filter, a.product); });
  }

  UOp product_;
  Shape shape_;
  const std::vector<uint8_t>& is_constant_;
  std::vector<bool> is_reduced_;
  std::vector<UOp> ranges_;
  IndexSimplifier simplify_;
};

ConvolutionSize size_of(const Convolution& c, const Shape& shape) {
  const auto count = [&](const auto& axes, auto axis_of) {
    int64_t n = 1;
    for (const auto& a : axes) n *= shape[axis_of(a)].value();
    return n;
  };
  const auto paired = [](const AxisPair& a) { return a.product; };
  ConvolutionSize size;
  size.batch = count(c.batch, paired);
  size.rows = shape[c.windows[0].place].value();
  size.columns = shape[c.windows[1].place].value();
  size.channels_in = count(c.channels, paired);
  size.channels_out = count(c.outputs, [](size_t a) { return a; });
  size.filter_varies = c.filter_varies;
  return size;
}

// The elements [first, first + count) along the windows' axes, with zeros behind the end.  What
// the input is padded with becomes one with that.
UOp extended(const Convolution& c, const std::array<int64_t, 2>& counts) {
  UOp base = c.input;
  const size_t rank = shape_of(base).size();
  Ints before(rank);
  Ints after(rank);
  if (!has_memory(base) && base.op() == Op::Pad && base.src().size() == 1) {
    const Ints& pads = base.ints();
    for (size_t i = 0; i < rank; ++i) before[i] = pads[i], after[i] = pads[rank + i];
    base = UOp(base.src(0));
  }
  const Ints size = const_dims(shape_of(base));
  Ints begin(rank);
  Ints end = size;
  for (size_t k = 0; k < 2; ++k) {
    const size_t axis = c.windows[k].input;
    const int64_t from = c.windows[k].first - before[axis];
    const int64_t to = from + counts[k];
    begin[axis] = std::clamp<int64_t>(from, 0, size[axis]);
    end[axis] = std::clamp<int64_t>(to, begin[axis], size[axis]);
    before[axis] = std::clamp<int64_t>(-from, 0, counts[k]);
    after[axis] = counts[k] - before[axis] - (end[axis] - begin[axis]);
  }
  return make_pad(make_shrink(base, to_shape(begin), to_shape(end)), to_shape(before),
                  to_shape(after));
}

// The input as [n, rows, columns, channels], long enough for whole tiles.
UOp input_of(const Convolution& c, const ConvolutionSize& size, WinogradTile tile) {
  const auto length = [&](int64_t n) { return (ceil_div(n, tile.outputs) + 1) * tile.outputs; };
  const std::array<int64_t, 2> counts{length(size.rows), length(size.columns)};
  const UOp x = extended(c, counts);
  std::vector<bool> placed(shape_of(x).size());
  Ints order;
  const auto place = [&](size_t axis) {
    order.push_back(static_cast<int64_t>(axis));
    placed[axis] = true;
  };
  for (const AxisPair& a : c.batch) place(a.input);
  for (const Window& w : c.windows) place(w.input);
  for (const AxisPair& a : c.channels) place(a.input);
  for (size_t i = 0; i < placed.size(); ++i)
    if (!placed[i]) order.push_back(static_cast<int64_t>(i));
  return make_reshape(make_permute(x, order), {size.batch, counts[0], counts[1], size.channels_in});
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

// The filter as [3, 3, channels out, channels in].
UOp filter_of(const Convolution& c, const Shape& shape, const ConvolutionSize& size) {
  std::vector<bool> kept(shape.size());
  Ints order;
  const auto keep = [&](size_t axis) {
    order.push_back(static_cast<int64_t>(axis));
    kept[axis] = true;
  };
  for (const Window& w : c.windows) keep(w.tap);
  for (size_t axis : c.outputs) keep(axis);
  for (const AxisPair& a : c.channels) keep(a.product);
  Shape end = shape;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!kept[i]) {
      end[i] = 1;
      order.push_back(static_cast<int64_t>(i));
    }
  const UOp cut = make_shrink(c.filter, Shape(shape.size(), Dim(0)), end);
  return make_reshape(make_permute(cut, order),
                      {kTaps, kTaps, size.channels_out, size.channels_in});
}

// [n, rows, columns, out], cut to size, as the sum had it.
UOp placed_output(const UOp& y, const Convolution& c, const UOp& reduce,
                  const ConvolutionSize& size) {
  const Shape& shape = shape_of(reduce.src(0));
  const UOp cut =
      make_shrink(y, Shape(4, Dim(0)), {size.batch, size.rows, size.columns, size.channels_out});
  std::vector<size_t> axes;  // of the product, in the order that `cut` has them
  for (const AxisPair& a : c.batch) axes.push_back(a.product);
  for (const Window& w : c.windows) axes.push_back(w.place);
  axes.insert(axes.end(), c.outputs.begin(), c.outputs.end());
  Shape sizes;
  for (size_t axis : axes) sizes.push_back(shape[axis]);
  Ints order(axes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::ranges::sort(order, {}, [&](int64_t i) { return axes[static_cast<size_t>(i)]; });
  return make_reshape(make_permute(make_reshape(cut, sizes), order), shape_of(reduce));
}

// `x` as a sum over an axis of one element: what the scheduler does not compute twice.
UOp kept_whole(const UOp& x) {
  const Shape& shape = shape_of(x);
  Shape longer = shape;
  longer.emplace_back(1);
  const auto last = static_cast<int64_t>(shape.size());
  return make_reshape(make_reduce(make_reshape(x, longer), Op::Add, {last}), shape);
}

// The sum computed in tiles.
UOp computed_in_tiles(const UOp& reduce, const Convolution& c, WinogradTile tile) {
  const Shape& shape = shape_of(reduce.src(0));
  const ConvolutionSize size = size_of(c, shape);
  Graph& graph = reduce.graph();
  const auto stored = [&](const UOp& x) { return graph.make(Op::Contiguous, {x}); };
  const UOp v = kept_whole(winograd_input(input_of(c, size, tile), tile));
  const UOp u = stored(winograd_filter(filter_of(c, shape, size), tile));
  const UOp m = stored(winograd_product(v, u));
  // A sum as before, over axes that now have one element.
  const UOp y = placed_output(winograd_output(m, tile), c, reduce, size);
  return make_reduce(y, Op::Add, reduce.reduce_arg().axes);
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

// Of U = G g G^T in the run: each point adds up few of the nine taps, and is stored.
double filter_seconds(double filters, double points, const Machine& target) {
  return filters * points * kFilterOps / target.fma_rate +
         saved_seconds(4 * filters * (points + kTaps * kTaps), target) + target.launch_seconds;
}

double direct_seconds(const ConvolutionSize& size, const Machine& target) {
  const auto places = static_cast<double>(size.batch * size.rows * size.columns);
  const double filter = 9 * static_cast<double>(size.channels_in * size.channels_out);
  return std::max(places * filter / (target.fma_rate * kSumRate), constant_seconds(filter, target));
}

double tiled_seconds(const ConvolutionSize& size, int64_t m, const Machine& target) {
  const auto points = static_cast<double>((m + 2) * (m + 2));
  const auto tiles =
      static_cast<double>(size.batch * ceil_div(size.rows, m) * ceil_div(size.columns, m));
  const auto in = static_cast<double>(size.channels_in);
  const auto out = static_cast<double>(size.channels_out);
  const double product = points * tiles * in * out / (target.fma_rate * kSumRate * busy(tiles));
  // Both intermediate values are written and read.
  const double bytes = 4 * points * tiles * (in + out);
  const double filter = size.filter_varies ? filter_seconds(in * out, points, target) : 0;
  return std::max(product, constant_seconds(points * in * out, target)) +
         saved_seconds(bytes, target) + target.launch_seconds + filter;
}

}  // namespace

WinogradUse winograd_use(std::string_view text) {
  if (text == "0") return WinogradUse::Never;
  if (text == "1") return WinogradUse::WhereLegal;
  require(text == "auto" || text.empty(), Status::InvalidArgument, "wino \"", text,
          "\": known are 0, 1, auto");
  return WinogradUse::WhereFaster;
}

int64_t winograd_tile(const ConvolutionSize& size, const Machine& target, double extra_seconds) {
  if (target.lanes(kFloat32) < kLanesMin) return 0;
  if (std::min(size.channels_in, size.channels_out) < target.lanes(kFloat32)) return 0;
  const double direct = direct_seconds(size, target);
  int64_t best = 0;
  double least = direct / kGainMin;
  for (const int64_t m : {2, 4}) {
    const double seconds = tiled_seconds(size, m, target) + extra_seconds;
    if (seconds < least) best = m, least = seconds;
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
    const auto c = Matcher(now, is_constant).run();
    if (!c) return now;
    int64_t m = winograd_tile(size_of(*c, shape_of(now.src(0))), target, extra_seconds);
    if (m == 0 && use == WinogradUse::WhereLegal) m = 4;
    return m == 0 ? now : computed_in_tiles(now, with_channels_innermost(*c), {m});
  });
}

}  // namespace tiny

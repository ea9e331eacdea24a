#include "tests/reference/random_graph.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/window.h"

namespace tiny::testing {

namespace {

constexpr DType kDTypes[] = {kFloat32, kFloat32, kFloat32, kFloat64, kInt32,
                             kInt64,   kBool,    kInt8,    kInt16,   kUInt8,
                             kUInt16,  kUInt32,  kUInt64,  kFloat16, kBFloat16};
// Sizes that divide badly, sizes that make lanes, none and one.
constexpr int64_t kSizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 0};

int64_t count_of(const Tensor& t) {
  int64_t n = 1;
  for (const Dim& d : t.shape()) n *= d.value();
  return n;
}

Shape add_each(const Shape& a, const Ints& b) {
  Shape out = a;
  for (size_t i = 0; i < out.size(); ++i) out[i] = out[i] + b[i];
  return out;
}

}  // namespace

RandomGraph::RandomGraph(Ref<Context> context, uint64_t seed, GraphOptions options)
    : context_(std::move(context)),
      random_(seed * 0x9E3779B97F4A7C15u + 1),
      elements_(random_() + options.data_seed),
      options_(options) {
}

RandomGraph::~RandomGraph() = default;

int64_t RandomGraph::below(int64_t n) {
  return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
}

// Often the last, so that graphs grow deep.
Tensor RandomGraph::pick() {
  if (chance(55)) return pool_.back();
  return pool_[static_cast<size_t>(below(std::ssize(pool_)))];
}

DType RandomGraph::any_dtype() {
  const auto known = static_cast<int64_t>(std::size(kDTypes)) - (options_.narrow_floats ? 0 : 2);
  return kDTypes[below(known)];
}

Ints RandomGraph::any_shape() {
  Ints shape;
  int64_t n = 1;
  const int64_t rank = below(5);
  while (std::ssize(shape) < rank) {
    const int64_t d = kSizes[below(std::size(kSizes) - (chance(90) ? 1 : 0))];
    if (n * d > options_.elements_max) continue;
    n *= std::max<int64_t>(d, 1);
    shape.push_back(d);
  }
  return shape;
}

// Small numbers and eighths, so that most arithmetic is exact in every order.
int64_t RandomGraph::element_below(int64_t n) {
  return static_cast<int64_t>(elements_() % static_cast<uint64_t>(n));
}

Tensor RandomGraph::data(DType dtype, const Ints& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  std::vector<std::byte> bytes(static_cast<size_t>(n * dtype.bytes()));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t v = element_below(33) - 16;
    const uint64_t bits = dtype.is_float() ? bits_of(dtype, static_cast<double>(v) / 8)
                          : element_below(20) == 0
                              ? bits_of_int(dtype, static_cast<int64_t>(elements_()))
                              : bits_of_int(dtype, dtype.is_bool() ? element_below(2) : v);
    std::memcpy(bytes.data() + i * dtype.bytes(), &bits, static_cast<size_t>(dtype.bytes()));
  }
  return from_data(context_, dtype, shape, bytes.data(), std::ssize(bytes));
}

// Caller's memory with strides of any sign, some of them 0.
Tensor RandomGraph::wrapped(DType dtype) {
  Ints shape = any_shape();
  std::erase(shape, 0);
  Ints strides;
  int64_t low = 0;
  int64_t high = 0;
  int64_t run = 1;
  for (int64_t d : shape) {
    const int64_t stride = chance(15) ? 0 : (run + below(2)) * (chance(40) ? -1 : 1);
    strides.push_back(stride);
    run = std::max<int64_t>(run, std::abs(stride) * d);
    (stride < 0 ? low : high) += stride * (d - 1);
  }
  const int64_t count = high - low + 1;
  const Tensor source = data(dtype, {count});
  memory_.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(count * dtype.bytes())));
  for (int64_t i = 0; i < count * dtype.bytes(); i += dtype.bytes()) {
    const uint64_t bits = dtype.is_float()
                              ? bits_of(dtype, static_cast<double>(element_below(33) - 16) / 8)
                              : bits_of_int(dtype, element_below(20));
    std::memcpy(memory_.back().get() + i, &bits, static_cast<size_t>(dtype.bytes()));
  }
  return wrap(context_, dtype, shape, strides, memory_.back().get() - low * dtype.bytes(), nullptr,
              nullptr);
}

Tensor RandomGraph::leaf() {
  const DType dtype = any_dtype();
  switch (below(6)) {
    case 0:
      what_ = "wrapped";
      return wrapped(dtype);
    case 1: {
      what_ = "full";
      const Ints shape = any_shape();
      return full(context_, dtype, to_shape(shape), static_cast<double>(below(7)) - 2);
    }
    case 2:
      what_ = "arange";
      return arange(context_, dtype, 1 + below(20));
    default:
      what_ = "data";
      return data(dtype, any_shape());
  }
}

// A tensor that broadcasts with `a`.
Tensor RandomGraph::like(const Tensor& a) {
  for (int64_t tries = 0; tries < 6; ++tries) {
    const Tensor other = pick();
    try {
      const Shape both = broadcast_shape(a.shape(), other.shape());
      int64_t n = 1;
      for (const Dim& d : both) n *= d.value();
      if (n <= options_.elements_max) return other;
    } catch (const Error&) {
      // It does not fit; another may.
    }
  }
  Ints shape = const_dims(a.shape());
  for (int64_t& d : shape)
    if (chance(30)) d = 1;
  if (!shape.empty() && chance(30)) shape.erase(shape.begin());
  return data(chance(60) ? a.dtype() : any_dtype(), shape);
}

Tensor RandomGraph::cut(const Tensor& a) {
  Ints begin;
  Ints end;
  Ints step;
  for (const Dim& d : a.shape()) {
    const int64_t n = d.value();
    begin.push_back(chance(50) ? 0 : below(n + 2) - 1);
    end.push_back(chance(50) ? kSliceEnd : below(n + 2) - 1);
    step.push_back(chance(60) ? 1 : 1 + below(3));
    if (chance(25)) {
      step.back() = -step.back();
      if (chance(80)) {
        begin.back() = kSliceEnd;
        end.back() = INT64_MIN;
      }
    }
  }
  what_ = cat("slice ", list_text(begin), " ", list_text(end), " ", list_text(step));
  return slice(a, to_shape(begin), to_shape(end), step);
}

Tensor RandomGraph::regroup(const Tensor& a) {
  int64_t rest = count_of(a);
  if (rest == 0) {
    what_ = "reshape";
    return reshape(a, {3, 0, 2});
  }
  Ints shape;
  while (rest > 1) {
    int64_t part = rest;
    for (int64_t tries = 0; tries < 4; ++tries) {
      const int64_t d = 1 + below(std::min<int64_t>(rest, 17));
      if (rest % d == 0) {
        part = d;
        break;
      }
    }
    shape.push_back(part);
    rest /= part;
    if (std::ssize(shape) > 4) shape.push_back(std::exchange(rest, 1));
  }
  what_ = cat("reshape ", list_text(shape));
  return reshape(a, to_shape(shape));
}

Tensor RandomGraph::move(const Tensor& a) {
  const auto rank = static_cast<size_t>(a.rank());
  switch (below(7)) {
    case 0:
      return cut(a);
    case 1:
      return regroup(a);
    case 2: {
      Ints axes = every_axis(a.rank());
      for (size_t i = rank; i > 1; --i)
        std::swap(axes[i - 1], axes[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
      what_ = cat("permute ", list_text(axes));
      return permute(a, axes);
    }
    case 3: {
      Ints axes;
      for (int64_t i = 0; i < a.rank(); ++i)
        if (chance(50)) axes.push_back(i);
      what_ = cat("flip ", list_text(axes));
      return flip(a, axes);
    }
    case 4: {
      Ints before(rank);
      Ints after(rank);
      for (size_t i = 0; i < rank; ++i) {
        before[i] = chance(60) ? below(4) : 0;
        after[i] = chance(60) ? below(4) : 0;
      }
      const double value = chance(60) ? 0 : static_cast<double>(below(5) - 2);
      what_ = cat("pad ", list_text(before), " ", list_text(after), " with ", value);
      return pad(a, add_each(Shape(rank), before), add_each(Shape(rank), after), value);
    }
    case 5: {
      Shape shape = a.shape();
      for (Dim& d : shape)
        if (d.is(1) && chance(70)) d = 1 + below(6);
      if (chance(40)) shape.insert(shape.begin(), 1 + below(4));
      what_ = cat("expand ", to_string(shape));
      return expand(a, shape);
    }
    default:
      what_ = "contiguous";
      return contiguous(a);
  }
}

Tensor RandomGraph::unary(const Tensor& a) {
  using Function = Tensor (*)(const Tensor&);
  static constexpr std::pair<const char*, Function> kPlain[] = {
      {"neg", neg},     {"abs", abs},   {"floor", floor}, {"ceil", ceil},     {"trunc", trunc},
      {"round", round}, {"relu", relu}, {"sign", sign},   {"square", square}, {"sqrt", sqrt}};
  static constexpr std::pair<const char*, Function> kDeep[] = {
      {"exp", exp},   {"log", log}, {"sin", sin},         {"cos", cos},
      {"tanh", tanh}, {"erf", erf}, {"sigmoid", sigmoid}, {"reciprocal", reciprocal}};
  if (chance(25)) {
    const DType to = any_dtype();
    what_ = cat("cast ", to_string(to));
    return cast(a, to);
  }
  if (!a.dtype().is_float() && chance(20)) {
    what_ = "invert";
    return invert(a);
  }
  const auto& [name, function] = options_.transcendentals && chance(40)
                                     ? kDeep[below(std::size(kDeep))]
                                     : kPlain[below(std::size(kPlain))];
  what_ = name;
  return function(a);
}

Tensor RandomGraph::binary(const Tensor& a) {
  using Function = Tensor (*)(const Tensor&, const Tensor&);
  static constexpr std::pair<const char*, Function> kAny[] = {{"add", add},
                                                              {"add", add},
                                                              {"sub", sub},
                                                              {"mul", mul},
                                                              {"mul", mul},
                                                              {"div", div},
                                                              {"max", maximum},
                                                              {"min", minimum},
                                                              {"less", less},
                                                              {"equal", equal},
                                                              {"greater", greater},
                                                              {"not_equal", not_equal},
                                                              {"less_equal", less_equal},
                                                              {"floor_div", floor_div},
                                                              {"floor_mod", floor_mod},
                                                              {"trunc_div", trunc_div},
                                                              {"trunc_mod", trunc_mod}};
  static constexpr std::pair<const char*, Function> kBits[] = {
      {"and", bit_and}, {"or", bit_or}, {"xor", bit_xor}};
  static constexpr std::pair<const char*, Function> kShifts[] = {{"shl", shift_left},
                                                                 {"shr", shift_right}};
  const Tensor b = like(a);
  if (chance(12)) {
    what_ = "where";
    return where(less(a, b), a, b);
  }
  const DType meeting = promoted(a.dtype(), b.dtype());
  if (!meeting.is_float() && chance(30)) {
    const bool shift = !a.dtype().is_bool() && !b.dtype().is_bool() && chance(40);
    const auto& [name, function] = shift ? kShifts[below(2)] : kBits[below(3)];
    what_ = name;
    return function(a, b);
  }
  const auto& [name, function] = kAny[below(std::size(kAny))];
  what_ = name;
  return function(a, b);
}

Tensor RandomGraph::reduce(const Tensor& a) {
  using Function = Tensor (*)(const Tensor&, const Ints&, bool);
  static constexpr std::pair<const char*, Function> kReductions[] = {
      {"sum", sum},   {"sum", sum}, {"sum", sum}, {"max", max},  {"min", min},
      {"mean", mean}, {"any", any}, {"all", all}, {"prod", prod}};
  Ints axes;
  for (int64_t i = 0; i < a.rank(); ++i)
    if (chance(55)) axes.push_back(i);
  const bool keepdims = chance(40);
  const auto& [name, function] = kReductions[below(std::size(kReductions))];
  what_ = cat(name, " over ", list_text(axes), keepdims ? " kept" : "");
  return function(a, axes, keepdims);
}

Tensor RandomGraph::gather(const Tensor& a) {
  if (a.rank() == 0) return unary(a);
  const int64_t axis = below(a.rank());
  const int64_t n = a.shape()[static_cast<size_t>(axis)].value();
  if (n == 0) return unary(a);
  Ints shape = any_shape();
  if (shape.size() > 2) shape.resize(2);
  int64_t count = 1;
  for (int64_t& d : shape) count *= (d = std::min<int64_t>(d, 5));
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(element_below(n));
  const Tensor index = from_data(context_, kInt64, shape, values.data(), count * 8);
  what_ = cat("gather ", list_text(values), " along ", axis);
  return a.with(
      make_gather(a.node(), chance(50) ? cast(index, kInt32).node() : index.node(), axis));
}

// Places may be named twice, or be outside of the axis.
Tensor RandomGraph::scatter(const Tensor& a) {
  if (a.rank() == 0) return unary(a);
  const int64_t axis = below(a.rank());
  const int64_t n = a.shape()[static_cast<size_t>(axis)].value();
  if (n == 0) return unary(a);
  Ints shape = const_dims(a.shape());
  for (int64_t& d : shape)
    if (chance(30)) d -= below(d + 1);
  shape[static_cast<size_t>(axis)] = below(7);
  const Tensor updates = data(a.dtype(), shape);
  Ints given = shape;
  if (chance(50))
    for (size_t i = 0; i < given.size(); ++i)
      if (static_cast<int64_t>(i) != axis) given[i] = 1;
  int64_t count = 1;
  for (const int64_t d : given) count *= d;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(element_below(n + 2) - 1);
  const Tensor places =
      expand(from_data(context_, kInt64, given, values.data(), count * 8), to_shape(shape));
  constexpr Op kFolds[] = {Op::Assign, Op::Add, Op::Mul, Op::Max, Op::Min};
  constexpr Op kFoldsOfBools[] = {Op::Assign, Op::Or, Op::And, Op::Xor};
  const Op fold = a.dtype().is_bool() ? kFoldsOfBools[below(4)] : kFolds[below(5)];
  what_ = cat("scatter ", info(fold).name, " ", list_text(values), " along ", axis);
  return a.with(make_scatter(a.node(), places.node(), updates.node(), fold, axis));
}

Tensor RandomGraph::join(const Tensor& a) {
  if (a.rank() == 0) return unary(a);
  const int64_t axis = below(a.rank());
  std::vector<Tensor> parts{a};
  while (std::ssize(parts) < 4 && chance(70)) {
    Ints shape = const_dims(a.shape());
    shape[static_cast<size_t>(axis)] = below(5);
    switch (below(3)) {
      case 0:
        parts.push_back(data(chance(70) ? a.dtype() : any_dtype(), shape));
        break;
      case 1:
        parts.push_back(neg(a));
        break;
      default:
        parts.push_back(a);
    }
  }
  what_ = cat("concat of ", parts.size(), " along ", axis);
  return concat(parts, axis);
}

// Windows over the last axis or two, folded or not.
Tensor RandomGraph::window(const Tensor& a) {
  const int64_t n = std::min<int64_t>(a.rank(), 1 + below(2));
  Ints kernel, strides, dilations, counts;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t size = a.shape()[static_cast<size_t>(a.rank() - n + i)].value();
    kernel.push_back(1 + below(4));
    strides.push_back(1 + below(3));
    dilations.push_back(1 + below(3));
    counts.push_back(window_count(size, kernel.back(), strides.back(), dilations.back()).value());
    if (counts.back() == 0) return move(a);
  }
  const Tensor view = windows(a, kernel, strides, dilations, to_shape(counts));
  what_ = cat("windows ", list_text(kernel), " by ", list_text(strides), " dilated ",
              list_text(dilations));
  if (chance(30) || count_of(view) > 20 * options_.elements_max) return view;
  Ints axes;
  for (int64_t i = 0; i < n; ++i) axes.push_back(-1 - i);
  what_ += " folded";
  return chance(50) ? sum(view, axes) : max(view, axes);
}

Tensor RandomGraph::network(const Tensor& a) {
  if (a.rank() == 0) return unary(a);
  const int64_t axis = below(a.rank());
  const int64_t size = a.shape()[static_cast<size_t>(axis)].value();
  const int64_t last = a.shape().back().value();
  switch (below(7)) {
    case 0:
    case 1:
      return window(a);
    case 2: {
      what_ = "matmul";
      return matmul(a, data(chance(80) ? a.dtype() : any_dtype(), {last, 1 + below(9)}));
    }
    case 3:
      if (size == 0) return move(a);
      what_ = cat("argmax along ", axis);
      return argmax(a, axis, chance(50), chance(50));
    case 4:
      what_ = cat("cumsum along ", axis);
      return cumsum(a, axis, chance(50), chance(50));
    case 5: {
      // An embedding: a product with a one-hot mask, which the engine reads instead.
      std::vector<int64_t> values;
      for (int64_t i = 0; i < 4; ++i) values.push_back(below(last + 2) - 1);
      const Tensor index = from_data(context_, kInt64, {4}, values.data(), 32);
      const Tensor one = full(context_, a.dtype(), {}, 1);
      what_ = cat("one-hot ", list_text(values), " times matrix");
      return matmul(one_hot(index, last, one, number(one, 0)),
                    data(a.dtype(), {last, 1 + below(5)}));
    }
    default:
      if (a.rank() < 2) return unary(a);
      what_ = "triu";
      return triu(a, below(5) - 2);
  }
}

Tensor RandomGraph::step() {
  const Tensor a = pick();
  const int64_t kind = below(112);
  if (kind >= 100) return network(a);
  if (kind < 36) return move(a);
  if (kind < 52) return unary(a);
  if (kind < 76) return binary(a);
  if (kind < 88) return reduce(a);
  if (kind < 91) return scatter(a);
  return kind < 95 ? gather(a) : join(a);
}

void RandomGraph::note(const std::string& line, const Tensor& made) {
  story_ += cat("  ", line, " -> ", to_string(made.shape()), " ", to_string(made.dtype()), "\n");
}

std::vector<Tensor> RandomGraph::make() {
  for (int64_t i = 0; i < 3; ++i) {
    pool_.push_back(leaf());
    note(what_, pool_.back());
  }
  int64_t made = 0;
  while (made < options_.steps) {
    const Tensor t = step();
    if (count_of(t) > options_.elements_max || t.rank() > 7) continue;
    note(what_, t);
    pool_.push_back(t);
    ++made;
  }
  std::vector<Tensor> last(pool_.end() - std::min<int64_t>(2, std::ssize(pool_)), pool_.end());
  return last;
}

}  // namespace tiny::testing

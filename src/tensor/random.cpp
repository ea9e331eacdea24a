#include "tensor/random.h"

#include <array>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ir/build.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"
#include "tensor/scan.h"
#include "tensor/top_k.h"

namespace tiny {

namespace {

constexpr uint32_t kParity = 0x1BD11BDA;  // of the key schedule (Salmon et al., section 3.3)
// By how much the second word is turned, in two groups of four rounds that take turns.
constexpr std::array<std::array<int, 4>, 2> kRotations{{{13, 15, 26, 6}, {17, 29, 16, 24}}};
constexpr size_t kGroups = 5;

Tensor word(const Ref<Context>& context, uint32_t value) {
  return full_bits(context, kUInt32, {}, value);
}

Tensor half_of_key(const Tensor& key, int64_t half) {
  require(key.dtype() == kUInt32 && key.shape() == Shape{2}, Status::InvalidArgument, "a key of ",
          key.dtype(), " and shape ", key.shape(), "; wanted two uint32");
  return slice_axis(key, 0, half, half + 1);
}

Dim count_of(const Shape& shape) {
  check_shape(shape, kFloat64);
  return product(shape);
}

// Two words of 32 bits as one of 64.
Tensor joined(const Tensor& low, const Tensor& high) {
  const Tensor wide = cast(high, kUInt64);
  return bit_or(shift_left(wide, number_int(wide, 32)), cast(low, kUInt64));
}

// `count` elements of an unsigned type of `bits` bits.
Tensor bits_of(const Tensor& key, int bits, const Dim& count) {
  const Dim words = bits < 32 ? floor_div(count + (32 / bits - 1), 32 / bits) : count * (bits / 32);
  const Tensor all = random_bits(key, words);
  if (bits == 32) return all;
  if (bits == 64) {
    const Tensor pairs = reshape(all, {count, 2});
    return reshape(joined(slice_axis(pairs, 1, 0, 1), slice_axis(pairs, 1, 1, 2)), {count});
  }
  std::vector<Tensor> parts{bit_and(all, number_int(all, (1 << bits) - 1))};
  for (int at = bits; at < 32; at += bits) {
    const Tensor rest = shift_right(all, number_int(all, at));
    parts.push_back(at + bits < 32 ? bit_and(rest, number_int(all, (1 << bits) - 1)) : rest);
  }
  const Tensor narrow = cast(stack(parts, 1), bits == 16 ? kUInt16 : kUInt8);
  return slice_axis(reshape(narrow, {Dim(std::ssize(parts)) * words}), 0, 0, count);
}

// A polynomial, the highest coefficient first.
Tensor polynomial(const Tensor& x, std::span<const double> coefficients) {
  Tensor sum = number(x, coefficients.front());
  for (const double c : coefficients.subspan(1)) sum = sum * x + number(x, c);
  return sum;
}

// Giles 2010, "Approximating the erfinv function", to float32's precision; of float64 two steps of
// Newton's follow.
Tensor inverse_erf(const Tensor& y) {
  constexpr double kMiddle[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                -0.00417768164,  0.246640727,    1.50140941};
  constexpr double kTails[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                               -0.00367342844,  0.00573950773,  -0.0076224613,
                               0.00943887047,   1.00167406,     2.83297682};
  constexpr double kMiddleEnd = 5;
  const Tensor one = number(y, 1);
  const Tensor w = neg(log((one - y) * (one + y)));
  const Tensor middle = polynomial(w - number(y, 2.5), kMiddle);
  const Tensor tails = polynomial(sqrt(w) - number(y, 3), kTails);
  Tensor x = where(less(w, number(y, kMiddleEnd)), middle, tails) * y;
  const int steps = y.dtype() == kFloat64 ? 2 : 0;
  for (int i = 0; i < steps; ++i)
    x = x - (erf(x) - y) * exp(x * x) * number(x, std::sqrt(std::numbers::pi) / 2);
  return x;
}

}  // namespace

// Its 120 steps are made of nodes: operands of one dtype meet in one shape once, and the constants
// of the rounds are spread once each.  As many calls of tensor functions take four times as long,
// which a caller who draws small numbers (a mask of a dropout) would see.
ThreefryWords threefry2x32(const ThreefryWords& key, const ThreefryWords& counter) {
  const Tensor third =
      bit_xor(word(key.first.context_ref(), kParity), bit_xor(key.first, key.second));
  const Tensor* const words[] = {&key.first, &key.second, &third, &counter.first, &counter.second};
  const Meeting met = meet_as(words, kUInt32);
  Graph& graph = third.graph();
  std::array<UOp, 32> numbers;
  const auto number = [&](int value) -> const UOp& {
    UOp& spread = numbers[static_cast<size_t>(value)];
    if (!spread) spread = broadcast_to(graph.constant_int(kUInt32, value), met.shape);
    return spread;
  };
  // What folds to a constant still has an element for each of the operands'.
  const auto step = [&](Op op, const UOp& x, const UOp& y) {
    return broadcast_to(elementwise(op, {x, y}), met.shape);
  };
  UOp a = step(Op::Add, met.nodes[3], met.nodes[0]);
  UOp b = step(Op::Add, met.nodes[4], met.nodes[1]);
  for (size_t group = 0; group < kGroups; ++group) {
    for (const int by : kRotations[group % 2]) {
      a = step(Op::Add, a, b);
      const UOp turned =
          step(Op::Or, step(Op::Shl, b, number(by)), step(Op::Shr, b, number(32 - by)));
      b = step(Op::Xor, a, turned);
    }
    a = step(Op::Add, a, met.nodes[(group + 1) % 3]);
    b = step(Op::Add, b, met.nodes[(group + 2) % 3]);
    b = step(Op::Add, b, number(static_cast<int>(group) + 1));
  }
  return {third.with(a), third.with(b)};
}

Tensor random_key(const Ref<Context>& context, uint64_t seed) {
  const uint32_t words[] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  return from_data(context, kUInt32, {2}, words, sizeof words);
}

Tensor split_key(const Tensor& key, int64_t count) {
  require(count >= 1, Status::InvalidArgument, "a key is split into at least one; got ", count);
  return reshape(random_bits(key, 2 * count), {count, 2});
}

Tensor random_bits(const Tensor& key, const Dim& count) {
  const bool is_known = count.is_const();
  require(lower_bound(count) >= 0 && (!is_known || count.value() < int64_t{1} << 32),
          Status::InvalidArgument, "random bits for ", count, " elements; wanted less than 2^32");
  const Dim half = floor_div(count + 1, 2);
  const Tensor first = arange(key.context_ref(), kUInt32, half);
  const ThreefryWords made =
      threefry2x32({half_of_key(key, 0), half_of_key(key, 1)},
                   {first, add(first, cast(size_tensor(key.context_ref(), half), kUInt32))});
  return slice_axis(concat(std::vector{made.first, made.second}, 0), 0, 0, count);
}

Tensor random_at(const Tensor& key, const Tensor& counters) {
  require(counters.dtype() == kUInt32 && counters.rank() >= 1 && counters.shape()[0].is(2),
          Status::InvalidArgument, "counters of ", counters.dtype(), " and shape ",
          counters.shape(), "; wanted uint32 [2, ..]");
  const auto half = [&](int64_t i) { return slice_axis(counters, 0, i, i + 1); };
  const auto word = [&](int64_t i) {
    return reshape(half_of_key(key, i), Shape(static_cast<size_t>(counters.rank()), Dim(1)));
  };
  const ThreefryWords made = threefry2x32({word(0), word(1)}, {half(0), half(1)});
  return concat(std::vector{made.first, made.second}, 0);
}

Tensor random_uniform(const Tensor& key, DType dtype, const Shape& shape) {
  require(dtype.is_float(), Status::DType, "uniform numbers of ", dtype, "; wanted floats");
  const Dim count = count_of(shape);
  const auto width = static_cast<int>(dtype.bits());
  const Tensor bits = bits_of(key, width, count);
  const Tensor one = full(key.context_ref(), dtype, {}, 1);
  const Tensor exponent = bitcast(one, bits.dtype());
  const Tensor fraction = shift_right(bits, number_int(bits, width - dtype.digits() + 1));
  return reshape(sub(bitcast(bit_or(fraction, exponent), dtype), one), shape);
}

Tensor random_normal(const Tensor& key, DType dtype, const Shape& shape) {
  require(dtype.is_float(), Status::DType, "normal numbers of ", dtype, "; wanted floats");
  const DType wide = dtype == kFloat64 ? kFloat64 : kFloat32;
  Shape both{2};
  both.insert(both.end(), shape.begin(), shape.end());
  const Tensor pair = random_uniform(key, wide, both);
  const Tensor angle = squeeze(slice_axis(pair, 0, 0, 1), {0});
  const Tensor size = squeeze(slice_axis(pair, 0, 1, 2), {0});
  const Tensor one = number(pair, 1);
  const Tensor radius = sqrt(mul(log(sub(one, size)), number(pair, -2)));
  return cast(mul(cos(mul(angle, number(pair, 2 * std::numbers::pi))), radius), dtype);
}

Tensor random_integers(const Tensor& key, DType dtype, const Ints& shape, int64_t low,
                       int64_t high) {
  require(dtype.is_int(), Status::DType, "random integers of ", dtype);
  require(low < high, Status::InvalidArgument, "random integers from ", low, " to below ", high);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const Dim count = count_of(to_shape(shape));
  Tensor number;
  if (range <= uint64_t{1} << 32) {
    // The upper half of the product (Lemire 2019, "Fast random integer generation in an interval").
    const Tensor bits = cast(bits_of(key, 32, count), kUInt64);
    const Tensor product = mul(bits, full_bits(key.context_ref(), kUInt64, {}, range));
    number = shift_right(product, number_int(product, 32));
  } else {
    const Tensor bits = bits_of(key, 64, count);
    number = floor_mod(bits, full_bits(key.context_ref(), kUInt64, {}, range));
  }
  const Tensor wide = bitcast(number, kInt64);
  return reshape(cast(add(wide, number_int(wide, low)), dtype), to_shape(shape));
}

Tensor random_permutation(const Tensor& key, int64_t count) {
  require(count >= 0, Status::InvalidArgument, "a permutation of ", count, " numbers");
  if (count == 0) return arange(key.context_ref(), kInt64, 0);
  // 63 bits: equal ones are not to be expected.
  const Tensor bits = bits_of(key, 64, count);
  const Tensor order = bitcast(shift_right(bits, number_int(bits, 1)), kInt64);
  return top_k(order, count, 0, false).indices;
}

Tensor random_bernoulli(const Tensor& key, const Tensor& p) {
  require(p.dtype().is_float(), Status::DType, "a probability of ", p.dtype());
  return less(random_uniform(key, kFloat32, p.shape()), p);
}

Tensor random_truncated_normal(const Tensor& key, DType dtype, const Ints& shape, double low,
                               double high) {
  require(dtype.is_float(), Status::DType, "normal numbers of ", dtype, "; wanted floats");
  require(low < high, Status::InvalidArgument, "normal numbers from ", low, " to ", high);
  const DType wide = dtype == kFloat64 ? kFloat64 : kFloat32;
  const double from = std::erf(low / std::numbers::sqrt2);
  const double to = std::erf(high / std::numbers::sqrt2);
  const Tensor u = random_uniform(key, wide, to_shape(shape));
  const Tensor x = inverse_erf(u * number(u, to - from) + number(u, from));
  const Tensor scaled = x * number(x, std::numbers::sqrt2);
  return cast(minimum(maximum(scaled, number(x, low)), number(x, high)), dtype);
}

Tensor random_multinomial(const Tensor& key, const Tensor& weights, int64_t count,
                          bool replacement) {
  const DType dtype = weights.dtype();
  require(dtype.is_float(), Status::DType, "weights of ", dtype, "; wanted floats");
  require(weights.rank() >= 1, Status::Shape, "weights of shape []; wanted an axis of them");
  const Dim size = weights.shape().back();
  const int64_t last = weights.rank() - 1;
  require(count >= 0 && !size.is(0) && (replacement || count <= size.value()),
          Status::InvalidArgument, count, " positions of weights of shape ", weights.shape(),
          replacement ? "" : " without replacement");
  const Tensor w = cast(weights, dtype == kFloat64 ? kFloat64 : kFloat32);
  const Tensor none = number(w, 0);
  if (!replacement) {
    // Float64: which of many is first is told by small differences.
    const Tensor u = random_uniform(key, kFloat64, weights.shape());
    const Tensor time = neg(log(number(u, 1) - u));
    const Tensor speed = cast(w, kFloat64) / time;
    return top_k(where(greater(w, none), speed, number(u, -1)), count, last, true).indices;
  }
  const Tensor sums = cumsum(w, last);
  const Tensor place = arange(key.context_ref(), kInt64, size);
  const Tensor is_last = equal(place, size_tensor(key.context_ref(), size - 1));
  // Of a size that may be 0 in a run there is no last element to be read.
  const Tensor all = size.is_const() ? slice_axis(sums, last, size - 1, size)
                                     : sum(where(is_last, sums, number(w, 0)), {last}, true);
  Shape drawn = weights.shape();
  drawn.back() = count;
  const Tensor at = random_uniform(key, w.dtype(), drawn) * all;
  const Tensor before =
      cast(less_equal(unsqueeze(sums, {last}), unsqueeze(at, {last + 1})), kInt64);
  // A number that was rounded up to the sum of all is of the last that has a weight.
  const Tensor possible = where(greater(w, none), place, number_int(place, 0));
  return minimum(sum(before, {last + 1}), max(possible, {last}, true));
}

Tensor dropout(const Tensor& key, const Tensor& x, double p) {
  require(x.dtype().is_float(), Status::DType, "dropout of ", x.dtype(), "; wanted floats");
  require(p >= 0 && p <= 1, Status::InvalidArgument, "dropout with probability ", p,
          "; wanted 0 to 1");
  const Tensor u = random_uniform(key, kFloat32, x.shape());
  const Tensor kept = x * number(x, p < 1 ? 1 / (1 - p) : 0);
  return where(less(u, number(u, 1 - p)), kept, number(x, 0));
}

}  // namespace tiny

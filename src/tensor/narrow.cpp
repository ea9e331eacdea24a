#include "tensor/narrow.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"

namespace tiny {

namespace {

constexpr int kPowerBias = 127;
constexpr uint32_t kPowerNan = 0xFF;

constexpr int kMantissa = 23;  // of float32
constexpr int kBias = 127;

double power_of(uint32_t code) {
  return code == kPowerNan ? std::numeric_limits<double>::quiet_NaN()
                           : std::ldexp(1.0, static_cast<int>(code) - kPowerBias);
}

// The engine's own type of it; kVoid: it has none.
DType float8_of(Narrow type) {
  switch (type) {
    case Narrow::Float8E4M3FN:
      return kFloat8E4M3FN;
    case Narrow::Float8E4M3FNUZ:
      return kFloat8E4M3FNUZ;
    case Narrow::Float8E5M2:
      return kFloat8E5M2;
    case Narrow::Float8E5M2FNUZ:
      return kFloat8E5M2FNUZ;
    default:
      return kVoid;
  }
}

Tensor word(const Tensor& like, int64_t value) {
  return number_int(like, value);
}

Tensor to_power(const Tensor& u, bool saturate, NarrowRounding rounding) {
  const Tensor size = bit_and(u, word(u, 0x7FFFFFFF));
  const Tensor exponent = shift_right(size, word(u, kMantissa));
  const Tensor fraction = bit_and(size, word(u, (1 << kMantissa) - 1));
  const Tensor half = word(u, 1 << (kMantissa - 1));
  // The least power is a float32 below the normal ones: half of their step.
  const Tensor is_least = equal(exponent, word(u, 0));
  Tensor more = full(u.context_ref(), u.dtype(), {}, 0);
  if (rounding == NarrowRounding::Up)
    more = cast(greater(fraction, where(is_least, half, word(u, 0))), u.dtype());
  if (rounding == NarrowRounding::Nearest)
    more = cast(where(is_least, greater(fraction, bit_or(half, shift_right(half, word(u, 1)))),
                      greater_equal(fraction, half)),
                u.dtype());
  const Tensor code = exponent + more;
  const Tensor most = word(u, saturate ? kPowerNan - 1 : kPowerNan);
  const Tensor is_nan = bit_or(greater(size, word(u, 0x7F800000)), greater(u, word(u, 0x80000000)));
  return cast(where(is_nan, word(u, kPowerNan), minimum(code, most)), kUInt8);
}

// A cast saturates, and keeps infinities.
Tensor to_float8(const Tensor& real, DType t, bool saturate) {
  const uint64_t most = highest_bits(t) - (t.has_infinities() ? 1 : 0);
  const double greatest = double_of(t, most);
  if (saturate)
    return cast(maximum(minimum(real, number(real, greatest)), number(real, -greatest)), t);
  // What is half a step beyond the greatest number goes to the even one of both.
  const double edge = greatest + (greatest - double_of(t, most - 1)) / 2;
  const Tensor size = abs(real), end = number(real, edge);
  const Tensor beyond = most % 2 == 0 ? greater(size, end) : greater_equal(size, end);
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor signed_infinity =
      where(less(real, number(real, 0)), number(real, -infinity), number(real, infinity));
  return cast(where(beyond, signed_infinity, real), t);
}

// Floats of 4 bits, by the bits of float32: one is stored of the significand, the exponent is
// biased by 1, and the only denormal is 0.5.
constexpr float kFloat4s[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
constexpr int64_t kFloat4Sign = 8;

Tensor to_float4(const Tensor& real, const Tensor& u) {
  constexpr int64_t kDropped = kMantissa - 1;
  const Tensor size = bit_and(u, word(u, 0x7FFFFFFF));
  // Half of what is dropped is added, less one where what stays is even.
  const Tensor odd = bit_and(shift_right(size, word(u, kDropped)), word(u, 1));
  const Tensor rounded =
      shift_right(size + word(u, (int64_t{1} << (kDropped - 1)) - 1) + odd, word(u, kDropped));
  const Tensor normal = rounded - word(u, (kBias - 1) << 1);
  const Tensor is_small = less(abs(real), number(real, 1));
  // A large number would be no integer of 32 bits.
  const Tensor halves = where(is_small, abs(real) * number(real, 2), number(real, 0));
  const Tensor code =
      minimum(where(is_small, cast(round(halves), kUInt32), normal), word(u, kFloat4Sign - 1));
  const Tensor sign = shift_left(shift_right(u, word(u, 31)), word(u, 3));
  const Tensor is_nan = greater(size, word(u, 0x7F800000));
  return cast(where(is_nan, word(u, kFloat4Sign), bit_or(code, sign)), kUInt8);
}

std::vector<float> numbers_of(Narrow type) {
  std::vector<float> table;
  if (type == Narrow::Float8E8M0)
    for (uint32_t code = 0; code <= kPowerNan; ++code)
      table.push_back(static_cast<float>(power_of(code)));
  else
    for (const float sign : {1.0F, -1.0F})
      for (const float size : kFloat4s) table.push_back(sign * size);
  return table;
}

}  // namespace

Tensor to_narrow(const Tensor& x, Narrow type, bool saturate, NarrowRounding rounding) {
  const Tensor real = cast(x, kFloat32);
  if (const DType t = float8_of(type); t != kVoid)
    return bitcast(to_float8(real, t, saturate), kUInt8);
  const Tensor u = bitcast(real, kUInt32);
  return type == Narrow::Float8E8M0 ? to_power(u, saturate, rounding) : to_float4(real, u);
}

Tensor from_narrow(const Tensor& bits, Narrow type, DType dtype) {
  require(bits.dtype() == kUInt8, Status::DType, "from_narrow: bits in ", bits.dtype(),
          "; wanted uint8");
  if (const DType t = float8_of(type); t != kVoid) return cast(bitcast(bits, t), dtype);
  const std::vector<float> table = numbers_of(type);
  const Tensor numbers = from_data(bits.context_ref(), kFloat32, {std::ssize(table)}, table.data(),
                                   std::ssize(table) * 4);
  const Tensor place = bit_and(bits, word(bits, std::ssize(table) - 1));
  return cast(gather(numbers, cast(place, kInt64), 0), dtype);
}

}  // namespace tiny

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

// Which bits are no numbers.
enum class Special : uint8_t {
  None,          // none
  Ieee,          // the greatest exponent: infinity, and above it NaN
  Last,          // all bits but the sign: NaN
  NegativeZero,  // the sign alone: NaN
};

struct Format {
  int bits, mantissa, bias;
  Special special;
  uint32_t greatest;  // of the finite ones, without its sign
  uint32_t nan;       // without a sign, but where that is all
};

constexpr Format kFormats[] = {
    {8, 3, 7, Special::Last, 0x7E, 0x7F},           // E4M3FN
    {8, 3, 8, Special::NegativeZero, 0x7F, 0x80},   // E4M3FNUZ
    {8, 2, 15, Special::Ieee, 0x7B, 0x7E},          // E5M2
    {8, 2, 16, Special::NegativeZero, 0x7F, 0x80},  // E5M2FNUZ
    {4, 1, 1, Special::None, 0x7, 0x8},             // E2M1: what is no number is -0
};
constexpr int kPowerBias = 127;
constexpr uint32_t kPowerNan = 0xFF;

constexpr int kMantissa = 23;  // of float32
constexpr int kBias = 127;

double power_of(uint32_t code) {
  return code == kPowerNan ? std::numeric_limits<double>::quiet_NaN()
                           : std::ldexp(1.0, static_cast<int>(code) - kPowerBias);
}

double number_of(uint32_t code, const Format& f) {
  const uint32_t sign = uint32_t{1} << (f.bits - 1);
  const uint32_t rest = code & (sign - 1);
  if (f.special == Special::NegativeZero && code == f.nan)
    return std::numeric_limits<double>::quiet_NaN();
  if (f.special != Special::None && f.special != Special::NegativeZero && rest > f.greatest)
    return f.special == Special::Ieee && rest == f.greatest + 1
               ? (code & sign ? -1 : 1) * std::numeric_limits<double>::infinity()
               : std::numeric_limits<double>::quiet_NaN();
  const int exponent = static_cast<int>(rest >> f.mantissa);
  const auto fraction = static_cast<double>(rest & ((uint32_t{1} << f.mantissa) - 1));
  const double one = std::ldexp(1.0, f.mantissa);
  const double size = exponent == 0 ? std::ldexp(fraction, 1 - f.bias - f.mantissa)
                                    : std::ldexp(one + fraction, exponent - f.bias - f.mantissa);
  return code & sign ? -size : size;
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

}  // namespace

Tensor to_narrow(const Tensor& x, Narrow type, bool saturate, NarrowRounding rounding) {
  const Tensor real = cast(x, kFloat32);
  const Tensor u = bitcast(real, kUInt32);
  if (type == Narrow::Float8E8M0) return to_power(u, saturate, rounding);
  const Format& f = kFormats[static_cast<size_t>(type)];
  const int dropped = kMantissa - f.mantissa;
  const Tensor size = bit_and(u, word(u, 0x7FFFFFFF));
  // Half of what is dropped is added, less one where what stays is even.
  const Tensor odd = bit_and(shift_right(size, word(u, dropped)), word(u, 1));
  const Tensor rounded =
      shift_right(size + word(u, (1 << (dropped - 1)) - 1) + odd, word(u, dropped));
  const Tensor normal = rounded - word(u, static_cast<int64_t>(kBias - f.bias) << f.mantissa);
  const Tensor scaled = abs(real) * number(real, std::ldexp(1.0, f.bias - 1 + f.mantissa));
  const Tensor least = number(real, std::ldexp(1.0, 1 - f.bias));
  const Tensor is_small = less(abs(real), least);
  // A large number would be no integer of 32 bits.
  const Tensor small = cast(round(where(is_small, scaled, number(real, 0))), kUInt32);
  Tensor code = where(is_small, small, normal);
  const bool stays = saturate || f.special == Special::None;
  const uint32_t beyond = stays ? f.greatest : f.special == Special::Ieee ? f.greatest + 1 : f.nan;
  code = where(greater(code, word(u, f.greatest)), word(u, beyond), code);
  const Tensor sign = shift_left(shift_right(u, word(u, 31)), word(u, f.bits - 1));
  const Tensor is_nan = greater(size, word(u, 0x7F800000));
  if (f.special == Special::NegativeZero) {
    const Tensor has_sign = bit_and(not_equal(code, word(u, 0)), less(code, word(u, f.nan)));
    code = where(has_sign, bit_or(code, sign), code);
    return cast(where(is_nan, word(u, f.nan), code), kUInt8);
  }
  if (f.special == Special::None)
    return cast(where(is_nan, word(u, f.nan), bit_or(code, sign)), kUInt8);
  return cast(bit_or(where(is_nan, word(u, f.nan), code), sign), kUInt8);
}

Tensor from_narrow(const Tensor& bits, Narrow type, DType dtype) {
  require(bits.dtype() == kUInt8, Status::DType, "from_narrow: bits in ", bits.dtype(),
          "; wanted uint8");
  const bool is_power = type == Narrow::Float8E8M0;
  const uint32_t count = is_power ? 256 : uint32_t{1} << kFormats[static_cast<size_t>(type)].bits;
  std::vector<float> table;
  for (uint32_t code = 0; code < count; ++code)
    table.push_back(static_cast<float>(
        is_power ? power_of(code) : number_of(code, kFormats[static_cast<size_t>(type)])));
  const Tensor numbers = from_data(bits.context_ref(), kFloat32, {std::ssize(table)}, table.data(),
                                   std::ssize(table) * 4);
  const Tensor place = bit_and(bits, word(bits, static_cast<int64_t>(count) - 1));
  return cast(gather(numbers, cast(place, kInt64), 0), dtype);
}

}  // namespace tiny

#include "ir/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace tiny {

std::string to_string(DType dtype) {
  std::string text = dtype.info().text;
  return dtype.lanes == 1 ? text : text + "x" + std::to_string(dtype.lanes);
}

std::optional<DType> dtype_named(std::string_view text) {
  for (size_t i = 0; i < std::size(kScalars); ++i)
    if (text == kScalars[i].text) return DType(static_cast<ScalarType>(i));
  return std::nullopt;
}

std::optional<DType> dtype_numbered(int32_t number) {
  for (size_t i = 0; i < std::size(kScalars); ++i)
    if (number == kScalars[i].number && kScalars[i].kind != DTypeKind::None)
      return DType(static_cast<ScalarType>(i));
  return std::nullopt;
}

namespace {

uint64_t low_bits(uint64_t value, int64_t bits) {
  return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

uint64_t sign_bit(DType dtype) {
  return uint64_t{1} << (dtype.bits() - 1);
}

// What no value of a float format is above: infinity, or the greatest number.
uint64_t greatest_bits(DType dtype) {
  const uint64_t all = sign_bit(dtype) - 1;
  switch (dtype.info().specials) {
    case Specials::Ieee:
      return all >> dtype.info().mantissa << dtype.info().mantissa;
    case Specials::Last:
      return all - 1;
    default:
      return all;
  }
}

// The value of a float8's bits without their sign.
double magnitude_of_float8(DType dtype, uint64_t bits) {
  const uint64_t greatest = greatest_bits(dtype);
  if (dtype.has_infinities() && bits == greatest) return std::numeric_limits<double>::infinity();
  if (bits > greatest) return std::numeric_limits<double>::quiet_NaN();
  const int mantissa = dtype.info().mantissa;
  const auto exponent = static_cast<int>(bits >> mantissa);
  const uint64_t one = uint64_t{1} << mantissa;
  const uint64_t significand = bits % one + (exponent > 0 ? one : 0);
  return std::ldexp(static_cast<double>(significand),
                    std::max(exponent, 1) - dtype.exponent_bias() - mantissa);
}

double double_of_float8(DType dtype, uint64_t bits) {
  const uint64_t sign = sign_bit(dtype);
  if (!dtype.has_negative_zero() && bits == sign) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = magnitude_of_float8(dtype, bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

// Of a type that has infinities: theirs and the highest bit of the mantissa.
uint64_t quiet_nan_bits(DType dtype) {
  return greatest_bits(dtype) | uint64_t{1} << (dtype.info().mantissa - 1);
}

// A number beyond the greatest one becomes that; infinity is NaN where there is none.
uint64_t float8_bits_of(DType dtype, float value) {
  const uint64_t sign = sign_bit(dtype);
  const uint64_t signed_as = std::signbit(value) ? sign : 0;
  const uint64_t greatest = greatest_bits(dtype);
  if (!std::isfinite(value)) {
    if (!dtype.has_negative_zero()) return sign;
    if (!dtype.has_infinities()) return signed_as | (sign - 1);
    return signed_as | (std::isinf(value) ? greatest : quiet_nan_bits(dtype));
  }
  const uint64_t most = dtype.has_infinities() ? greatest - 1 : greatest;
  const double size = std::fabs(static_cast<double>(value));
  uint64_t code = 0;  // of two that are as near the even one
  for (; code < most; ++code) {
    const double between =
        (magnitude_of_float8(dtype, code) + magnitude_of_float8(dtype, code + 1)) / 2;
    if (size < between || (size == between && code % 2 == 0)) break;
  }
  return code == 0 && !dtype.has_negative_zero() ? 0 : signed_as | code;
}

}  // namespace

uint64_t lowest_bits(DType dtype) {
  if (dtype.is_float()) return sign_bit(dtype) | greatest_bits(dtype);
  if (dtype.is_signed()) return sign_bit(dtype);
  return 0;
}

uint64_t highest_bits(DType dtype) {
  if (dtype.is_float()) return greatest_bits(dtype);
  if (dtype.is_bool()) return 1;
  if (dtype.is_signed()) return sign_bit(dtype) - 1;
  return low_bits(~uint64_t{0}, dtype.bits());
}

uint64_t bits_of(DType dtype, double value) {
  switch (dtype.scalar) {
    case ScalarType::Float64:
      return std::bit_cast<uint64_t>(value);
    case ScalarType::Float32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case ScalarType::Float16:
      return half_from_float(static_cast<float>(value));
    case ScalarType::BFloat16:
      return bfloat_from_float(static_cast<float>(value));
    case ScalarType::Bool:
      return value != 0 ? 1 : 0;
    default:
      break;
  }
  if (dtype.is_float()) return float8_bits_of(dtype, static_cast<float>(value));
  invariant(dtype.is_int(), "bits_of needs a number type");
  if (std::isnan(value)) return 0;
  const double low = double_of(dtype, lowest_bits(dtype));
  const double high = double_of(dtype, highest_bits(dtype));
  if (value <= low) return lowest_bits(dtype);
  if (value >= high) return highest_bits(dtype);
  if (dtype.scalar == ScalarType::UInt64) return static_cast<uint64_t>(value);
  return low_bits(static_cast<uint64_t>(static_cast<int64_t>(value)), dtype.bits());
}

uint64_t bits_of_int(DType dtype, int64_t value) {
  if (dtype.is_float()) {
    if (dtype.info().computed == ScalarType::Float64)
      return bits_of(dtype, static_cast<double>(value));
    return bits_of(dtype, static_cast<float>(value));  // narrow formats round from float32
  }
  if (dtype.is_bool()) return value != 0 ? 1 : 0;
  return low_bits(static_cast<uint64_t>(value), dtype.bits());
}

double double_of(DType dtype, uint64_t bits) {
  switch (dtype.scalar) {
    case ScalarType::Float64:
      return std::bit_cast<double>(bits);
    case ScalarType::Float32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case ScalarType::Float16:
      return float_from_half(static_cast<uint16_t>(bits));
    case ScalarType::BFloat16:
      return float_from_bfloat(static_cast<uint16_t>(bits));
    case ScalarType::UInt64:
      return static_cast<double>(bits);
    default:
      return dtype.is_float8() ? double_of_float8(dtype, bits)
                               : static_cast<double>(int_of(dtype, bits));
  }
}

int64_t int_of(DType dtype, uint64_t bits) {
  if (!dtype.is_signed() || dtype.bits() == 64) return static_cast<int64_t>(bits);
  const auto shift = 64 - dtype.bits();
  return static_cast<int64_t>(bits << shift) >> shift;
}

}  // namespace tiny

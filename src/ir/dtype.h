// Element types, and vectors of them.  A DType is a scalar type and a lane count; tensors and
// kernels have one lane, the linear program has more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/half.h"

namespace tiny {

enum class ScalarType : uint8_t {
#define DTYPE(name, text, number, bits, kind, exponent, mantissa, specials, carrier, computed) name,
#include "ir/dtypes.def"
};

enum class DTypeKind : uint8_t { None, Bool, Signed, Unsigned, Float };
// Which bits of a float are no finite numbers.
enum class Specials : uint8_t { None, Ieee, Last, NegativeZero };

struct ScalarInfo {
  const char* text;
  int32_t number;  // in tiny.h
  uint8_t bits;
  DTypeKind kind;
  uint8_t exponent;
  uint8_t mantissa;
  Specials specials;
  ScalarType carrier;
  ScalarType computed;
};

inline constexpr ScalarInfo kScalars[] = {
#define DTYPE(name, text, number, bits, kind, exponent, mantissa, specials, carrier, computed) \
  {text,                                                                                       \
   number,                                                                                     \
   bits,                                                                                       \
   DTypeKind::kind,                                                                            \
   exponent,                                                                                   \
   mantissa,                                                                                   \
   Specials::specials,                                                                         \
   ScalarType::carrier,                                                                        \
   ScalarType::computed},
#include "ir/dtypes.def"
};

struct DType {
  ScalarType scalar = ScalarType::Void;
  uint16_t lanes = 1;

  constexpr DType() = default;
  constexpr DType(ScalarType s, uint16_t n = 1)
      : scalar(s), lanes(n) {}  // NOLINT: a scalar is a dtype.
  constexpr bool operator==(const DType&) const = default;

  constexpr const ScalarInfo& info() const { return kScalars[static_cast<size_t>(scalar)]; }
  constexpr int64_t bits() const { return info().bits; }
  constexpr int64_t bytes() const { return info().bits / 8; }  // of one lane
  constexpr bool is_float() const { return info().kind == DTypeKind::Float; }
  constexpr bool is_bool() const { return info().kind == DTypeKind::Bool; }
  constexpr bool is_signed() const { return info().kind == DTypeKind::Signed; }
  constexpr bool is_unsigned() const { return info().kind == DTypeKind::Unsigned; }
  constexpr bool is_int() const { return is_signed() || is_unsigned(); }
  // What its bits are moved and changed as, and what arithmetic on it is done in.
  constexpr DType carrier() const { return {info().carrier, lanes}; }
  constexpr DType computed() const { return {info().computed, lanes}; }
  constexpr bool is_computed_wider() const { return info().computed != scalar; }
  constexpr bool is_narrow_float() const { return is_float() && is_computed_wider(); }
  // A float of 8 bits: inside kernels its bits alone are moved (rules/narrow.h).
  constexpr bool is_float8() const { return is_float() && bits() == 8; }
  constexpr bool has_infinities() const { return info().specials == Specials::Ieee; }
  constexpr bool has_negative_zero() const { return info().specials != Specials::NegativeZero; }
  // Of a float: what its exponent is biased by, and the bits of its significand.
  constexpr int exponent_bias() const {
    return (1 << (info().exponent - 1)) - (has_negative_zero() ? 1 : 0);
  }
  constexpr int digits() const { return info().mantissa + 1; }
  constexpr DType with_lanes(int64_t n) const { return {scalar, static_cast<uint16_t>(n)}; }
  constexpr DType element() const { return {scalar, 1}; }
};

inline constexpr DType kVoid{ScalarType::Void};
inline constexpr DType kBool{ScalarType::Bool};
inline constexpr DType kInt8{ScalarType::Int8};
inline constexpr DType kInt16{ScalarType::Int16};
inline constexpr DType kInt32{ScalarType::Int32};
inline constexpr DType kInt64{ScalarType::Int64};
inline constexpr DType kUInt8{ScalarType::UInt8};
inline constexpr DType kUInt16{ScalarType::UInt16};
inline constexpr DType kUInt32{ScalarType::UInt32};
inline constexpr DType kUInt64{ScalarType::UInt64};
inline constexpr DType kFloat16{ScalarType::Float16};
inline constexpr DType kBFloat16{ScalarType::BFloat16};
inline constexpr DType kFloat32{ScalarType::Float32};
inline constexpr DType kFloat64{ScalarType::Float64};
inline constexpr DType kFloat8E4M3FN{ScalarType::Float8E4M3FN};
inline constexpr DType kFloat8E4M3FNUZ{ScalarType::Float8E4M3FNUZ};
inline constexpr DType kFloat8E5M2{ScalarType::Float8E5M2};
inline constexpr DType kFloat8E5M2FNUZ{ScalarType::Float8E5M2FNUZ};
inline constexpr DType kAddress{ScalarType::Address};

// "float32", or "float32x16" with lanes.
std::string to_string(DType dtype);

// The dtype with this text or this tiny.h number; none if there is no such.
std::optional<DType> dtype_named(std::string_view text);
std::optional<DType> dtype_numbered(int32_t number);

// The bits of the lowest and highest value: what a max or min over nothing starts from.  For floats
// -inf and +inf, where the format has them; for bool false and true.
uint64_t lowest_bits(DType dtype);
uint64_t highest_bits(DType dtype);

// A value of `dtype` as the low bits of a word, rounded to nearest even (floats) or wrapped (ints),
// and back.  Bool: any value but 0 is 1.  NaN to an integer is 0; beyond its range, the nearest
// end.  A float of 8 bits saturates: beyond its greatest number it is that one.
uint64_t bits_of(DType dtype, double value);
uint64_t bits_of_int(DType dtype, int64_t value);
double double_of(DType dtype, uint64_t bits);
// The integer in the bits of an integer or bool dtype; UInt64 above the range of int64 wraps.
int64_t int_of(DType dtype, uint64_t bits);

}  // namespace tiny

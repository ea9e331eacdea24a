// Floats of PTX in slots, and rounding to any format in any direction.
//
// A slot has 64 bits; a value of fewer has zeros above.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tiny::emulation {

enum class Rounding : uint8_t { NearestEven, Zero, Down, Up };

// A binary format of at most 32 bits.
struct Format {
  int exponent_bits;
  int mantissa_bits;
};
inline constexpr Format kHalf{5, 10};
inline constexpr Format kBfloat{8, 7};
inline constexpr Format kSingle{8, 23};

// The value nearest in that direction, as bits. A NaN becomes the canonical one, all ones but the
// sign. Exact where `value` is what is to be rounded, or was rounded to odd.
uint32_t round_to(Format format, double value, Rounding rounding);
double value_of(Format format, uint32_t bits);

// Sums, products and quotients of doubles rounded to odd: rounding these again to a format with two
// bits less or more below rounds the exact result once.
double add_to_odd(double a, double b);
double multiply_to_odd(double a, double b);
double divide_to_odd(double a, double b);
double sqrt_to_odd(double a);
double fma_to_odd(double a, double b, double c);
double integer_to_odd(uint64_t magnitude, bool is_negative);

struct Half {
  uint16_t bits;
  static constexpr Format format = kHalf;
};
struct Bfloat {
  uint16_t bits;
  static constexpr Format format = kBfloat;
};
template <class T>
concept NarrowFloat = std::same_as<T, Half> || std::same_as<T, Bfloat>;
template <class T>
concept AnyFloat = std::floating_point<T> || NarrowFloat<T>;

template <class T>
T from_slot(uint64_t slot) {
  if constexpr (std::same_as<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(slot));
  else if constexpr (std::same_as<T, double>)
    return std::bit_cast<double>(slot);
  else if constexpr (NarrowFloat<T>)
    return T{static_cast<uint16_t>(slot)};
  else
    return static_cast<T>(slot);
}

// A float's NaN is stored as the canonical one.
template <class T>
uint64_t to_slot(T value) {
  if constexpr (std::same_as<T, float>)
    return std::isnan(value) ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(value);
  else if constexpr (std::same_as<T, double>)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (NarrowFloat<T>)
    return value.bits;
  else
    return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
}

template <AnyFloat T>
double as_double(T value) {
  if constexpr (NarrowFloat<T>)
    return value_of(T::format, value.bits);
  else
    return value;
}

}  // namespace tiny::emulation

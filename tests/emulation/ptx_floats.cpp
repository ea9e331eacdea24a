#include "tests/emulation/ptx_floats.h"

#include <algorithm>

namespace tiny::emulation {

uint32_t round_to(Format format, double value, Rounding rounding) {
  const uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
  const uint32_t sign =
      std::signbit(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0;
  if (std::isnan(value)) return (1u << (format.exponent_bits + format.mantissa_bits)) - 1;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  // The place of the last bit that is kept, which for denormals is the lowest there is.
  const int last = std::max(exponent - 1 - format.mantissa_bits, 1 - bias - format.mantissa_bits);
  // As a multiple of that bit.
  const double scaled = std::ldexp(fraction, std::max(exponent - last, -60));
  auto kept = static_cast<uint64_t>(scaled);
  const double rest = scaled - static_cast<double>(kept);
  const bool is_away =
      (rounding == Rounding::Up && sign == 0) || (rounding == Rounding::Down && sign != 0);
  if (rounding == Rounding::NearestEven)
    kept += rest > 0.5 || (rest == 0.5 && (kept & 1) != 0) ? 1 : 0;
  else
    kept += is_away && rest > 0 ? 1 : 0;
  // The bits of consecutive floats are consecutive: a carry goes into the exponent.
  const int biased = last + format.mantissa_bits + bias;  // of a normal number with that last bit
  const uint64_t bits = (static_cast<uint64_t>(biased - 1) << format.mantissa_bits) + kept;
  const bool stays_finite = rounding == Rounding::Zero || (rounding == Rounding::Up && sign != 0) ||
                            (rounding == Rounding::Down && sign == 0);
  if (bits >= infinity) return sign | (stays_finite ? infinity - 1 : infinity);
  return sign | static_cast<uint32_t>(bits);
}

double value_of(Format format, uint32_t bits) {
  const uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const uint32_t exponent = (bits >> format.mantissa_bits) & ((1u << format.exponent_bits) - 1);
  const bool is_negative = ((bits >> (format.mantissa_bits + format.exponent_bits)) & 1) != 0;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  double magnitude = 0;
  if (exponent == (1u << format.exponent_bits) - 1)
    magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    magnitude = std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  else
    magnitude = std::ldexp((1u << format.mantissa_bits) + mantissa,
                           static_cast<int>(exponent) - bias - format.mantissa_bits);
  return is_negative ? -magnitude : magnitude;
}

namespace {

// `rounded` is the nearest to `rounded` + `error`: an even one that is not exact gives way to its
// neighbour on the error's side.
double to_odd(double rounded, double error) {
  if (error == 0 || !std::isfinite(rounded) || !std::isfinite(error)) return rounded;
  if ((std::bit_cast<uint64_t>(rounded) & 1) != 0) return rounded;
  return std::nextafter(rounded, error > 0 ? HUGE_VAL : -HUGE_VAL);
}

// What a rounded sum has lost, exactly.
double sum_error(double a, double b, double sum) {
  const double of_b = sum - a;
  const double of_a = sum - of_b;
  return (a - of_a) + (b - of_b);
}

}  // namespace

double add_to_odd(double a, double b) {
  const double sum = a + b;
  return to_odd(sum, sum_error(a, b, sum));
}

double multiply_to_odd(double a, double b) {
  const double product = a * b;
  return to_odd(product, std::fma(a, b, -product));
}

double divide_to_odd(double a, double b) {
  const double quotient = a / b;
  const double rest = std::fma(-quotient, b, a);
  return to_odd(quotient, std::signbit(b) ? -rest : rest);
}

double sqrt_to_odd(double a) {
  const double root = std::sqrt(a);
  return to_odd(root, std::fma(-root, root, a));
}

double fma_to_odd(double a, double b, double c) {
  // Exact for factors of at most 26 bits.
  return add_to_odd(a * b, c);
}

double integer_to_odd(uint64_t magnitude, bool is_negative) {
  const int lost = std::max(0, static_cast<int>(std::bit_width(magnitude)) - 53);
  uint64_t kept = magnitude >> lost;
  if (kept << lost != magnitude) kept |= 1;
  const double value = std::ldexp(static_cast<double>(kept), lost);
  return is_negative ? -value : value;
}

}  // namespace tiny::emulation

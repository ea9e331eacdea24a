// Elementwise ops on one lane, with the bound of the result's error.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "tests/reference/reference.h"

namespace tiny::reference {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

int mantissa_bits(DType dtype) {
  switch (dtype.scalar) {
    case ScalarType::Float16:
      return 11;
    case ScalarType::BFloat16:
      return 8;
    case ScalarType::Float32:
      return 24;
    default:
      return 53;
  }
}

int exponent_min(DType dtype) {
  switch (dtype.scalar) {
    case ScalarType::Float16:
      return -14;
    case ScalarType::BFloat16:
    case ScalarType::Float32:
      return -126;
    default:
      return -1022;
  }
}

double round_even(double v) {
  const double low = std::floor(v);
  const double rest = v - low;
  if (rest < 0.5) return low;
  if (rest > 0.5) return low + 1;
  return std::fmod(low, 2) == 0 ? low : low + 1;
}

double real_function(Op op, double a) {
  switch (op) {
    case Op::Sqrt:
      return std::sqrt(a);
    case Op::Floor:
      return std::floor(a);
    case Op::Ceil:
      return std::ceil(a);
    case Op::Trunc:
      return std::trunc(a);
    case Op::Round:
      return std::copysign(round_even(a), a);
    case Op::Exp:
      return std::exp(a);
    case Op::Log:
      return std::log(a);
    case Op::Sin:
      return std::sin(a);
    case Op::Cos:
      return std::cos(a);
    case Op::Tanh:
      return std::tanh(a);
    case Op::Erf:
      return std::erf(a);
    default:
      throw Error(Status::Internal, cat("the reference knows no function ", info(op).name));
  }
}

// How far f moves when its operand moves within its error.
double spread(Op op, double a, double e, double v) {
  if (e == 0) return 0;
  if (op == Op::Sin || op == Op::Cos) return std::min(e, 2.0);
  const double low = real_function(op, a - e);
  const double high = real_function(op, a + e);
  if (std::isnan(low) || std::isnan(high)) return kUnknown;
  return std::max(std::abs(low - v), std::abs(high - v)) * 1.01;
}

Lane unary_real(Op op, DType dtype, const Lane& a) {
  if (op == Op::Neg) return {-a.real, 0, a.error};
  if (op == Op::Abs) return {std::abs(a.real), 0, a.error};
  const double exact = real_function(op, a.real);
  Lane out{round_to(dtype, exact), 0, 0};
  if (std::isnan(out.real)) {
    out.error = a.error > 0 ? kUnknown : 0;
    return out;
  }
  out.error = spread(op, a.real, a.error, exact);
  // Polynomials are good to some units in the last place; angles far out lose more.
  if (has(op, kTranscendental)) {
    out.error += 16 * spacing(dtype, out.real);
    // docs/semantics.md: one of at most 1 may be 0 where it would be less than this.
    if (op == Op::Exp) out.error += std::exp(dtype == kFloat64 ? -708 : -87);
    if (op == Op::Sin || op == Op::Cos)
      out.error +=
          (1 + std::abs(a.real)) * 4 * spacing(dtype, 1) + (std::abs(a.real) > 1e4 ? kUnknown : 0);
  } else if (out.error > 0) {
    out.error += spacing(dtype, out.real);
  }
  return out;
}

Lane product(DType dtype, const Lane& a, const Lane& b) {
  Lane out{round_to(dtype, a.real * b.real), 0, 0};
  out.error = a.error > 0 || b.error > 0
                  ? std::abs(a.real) * b.error + std::abs(b.real) * a.error + a.error * b.error
                  : 0;
  if (std::isnan(out.error)) out.error = kUnknown;
  // A product that is rounded may be part of an FMA, where it is not.
  const bool inexact = out.real != a.real * b.real || std::fma(a.real, b.real, -out.real) != 0;
  if (out.error > 0 || inexact) out.error += spacing(dtype, out.real);
  return out;
}

Lane quotient(DType dtype, const Lane& a, const Lane& b) {
  Lane out{round_to(dtype, a.real / b.real), 0, 0};
  if (a.error == 0 && b.error == 0) return out;
  out.error = std::abs(b.real) <= b.error
                  ? kUnknown
                  : (a.error + std::abs(out.real) * b.error) / (std::abs(b.real) - b.error) +
                        spacing(dtype, out.real);
  return out;
}

Lane power(DType dtype, const Lane& a, const Lane& b) {
  const double exact = std::pow(a.real, b.real);
  Lane out{round_to(dtype, exact), 0, 0};
  if (a.error > 0 || b.error > 0) {
    for (const double x : {a.real - a.error, a.real + a.error})
      for (const double y : {b.real - b.error, b.real + b.error})
        out.error = std::max(out.error, std::abs(std::pow(x, y) - exact));
    if (std::isnan(out.error) || std::isnan(out.real)) out.error = kUnknown;
  }
  if (!std::isnan(out.real)) out.error += 32 * spacing(dtype, out.real);
  return out;
}

// Max(a, b) = (b > a or isnan(b)) ? b : a, and Min mirrored.
Lane extreme(Op op, const Lane& a, const Lane& b) {
  const bool second = op == Op::Max ? b.real > a.real : b.real < a.real;
  Lane out = second || std::isnan(b.real) ? b : a;
  out.error = std::max(a.error, b.error);
  return out;
}

Lane binary_real(Op op, DType dtype, const Lane& a, const Lane& b) {
  switch (op) {
    case Op::Add: {
      Lane out{round_to(dtype, a.real + b.real), 0, a.error + b.error};
      if (out.error > 0) out.error += spacing(dtype, out.real);
      return out;
    }
    case Op::Mul:
      return product(dtype, a, b);
    case Op::Div:
      return quotient(dtype, a, b);
    case Op::Pow:
      return power(dtype, a, b);
    case Op::Max:
    case Op::Min:
      return extreme(op, a, b);
    default:
      throw Error(Status::Internal, cat("the reference knows no ", info(op).name, " of floats"));
  }
}

template <class T>
bool compared(Op op, T a, T b) {
  switch (op) {
    case Op::Less:
      return a < b;
    case Op::LessEqual:
      return a <= b;
    case Op::Equal:
      return a == b;
    default:
      return a != b;
  }
}

Lane comparison(Op op, DType operand, const Lane& a, const Lane& b) {
  Lane out;
  if (operand.is_float()) {
    out.whole = compared(op, a.real, b.real);
    const double e = a.error + b.error;
    if (e > 0 && !(std::abs(a.real - b.real) > e)) out.error = kUnknown;
    return out;
  }
  out.whole = operand == kUInt64
                  ? compared(op, static_cast<uint64_t>(a.whole), static_cast<uint64_t>(b.whole))
                  : compared(op, a.whole, b.whole);
  out.error = a.error + b.error;
  return out;
}

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideBits;

Wide wide(DType dtype, int64_t v) {
  return dtype == kUInt64 ? static_cast<Wide>(static_cast<uint64_t>(v)) : static_cast<Wide>(v);
}

Wide divided(Op op, Wide a, Wide b) {
  if (b == 0) return 0;
  const Wide q = a / b;
  const Wide r = a % b;
  const bool floors = op == Op::FloorDiv || op == Op::FloorMod;
  const bool adjust = floors && r != 0 && ((r < 0) != (b < 0));
  if (op == Op::FloorDiv || op == Op::TruncDiv) return q - (adjust ? 1 : 0);
  return r + (adjust ? b : 0);
}

Wide shifted(Op op, DType dtype, Wide a, int64_t n) {
  const bool over = n < 0 || n >= dtype.bits();
  if (op == Op::Shl) return over ? 0 : static_cast<Wide>(static_cast<WideBits>(a) << n);
  return over ? (a < 0 ? -1 : 0) : a >> n;
}

Wide whole_function(Op op, DType dtype, Wide a, Wide b, int64_t raw_b) {
  switch (op) {
    case Op::Neg:
      return dtype.is_bool() ? a : -a;
    case Op::Abs:
      return a < 0 ? -a : a;
    case Op::Not:
      return dtype.is_bool() ? (a == 0 ? 1 : 0) : ~a;
    case Op::Add:
      return a + b;
    case Op::Mul:
      return static_cast<Wide>(static_cast<WideBits>(a) * static_cast<WideBits>(b));
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::TruncDiv:
    case Op::TruncMod:
      return divided(op, a, b);
    case Op::Max:
      return a < b ? b : a;
    case Op::Min:
      return b < a ? b : a;
    case Op::And:
      return a & b;
    case Op::Or:
      return a | b;
    case Op::Xor:
      return a ^ b;
    case Op::Shl:
    case Op::Shr:
      return shifted(op, dtype, a, raw_b);
    default:
      throw Error(Status::Internal, cat("the reference knows no ", info(op).name, " of integers"));
  }
}

Lane whole_op(Op op, DType dtype, const Lane& a, const Lane& b) {
  const Wide v = whole_function(op, dtype, wide(dtype, a.whole), wide(dtype, b.whole),
                                dtype == kUInt64 && b.whole < 0 ? INT64_MAX : b.whole);
  Lane out;
  out.whole = dtype.is_bool() ? v != 0 : wrap_to(dtype, static_cast<int64_t>(v));
  out.error = a.error + b.error > 0 ? kUnknown : 0;
  return out;
}

// The nearest integer of `dtype` towards zero; NaN is 0.
int64_t saturated(DType dtype, double v) {
  if (std::isnan(v)) return 0;
  const double t = std::trunc(v);
  if (dtype == kUInt64) {
    if (t <= 0) return 0;
    return static_cast<int64_t>(t >= 0x1p64 ? UINT64_MAX : static_cast<uint64_t>(t));
  }
  const auto bits = static_cast<int>(dtype.bits());
  const double high = std::ldexp(1.0, dtype.is_signed() ? bits - 1 : bits);
  const double low = dtype.is_signed() ? -high : 0;
  if (t >= high)
    return dtype.is_signed() ? static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1)
                             : static_cast<int64_t>((uint64_t{1} << bits) - 1);
  return t <= low ? static_cast<int64_t>(low) : static_cast<int64_t>(t);
}

Lane cast_lane(DType to, DType from, const Lane& a) {
  Lane out;
  if (to.is_float()) {
    if (from.is_float()) {
      out.real = round_to(to, a.real);
      out.error = a.error + (a.error > 0 ? spacing(to, out.real) : 0);
    } else {
      // One rounding to the wide floats, two to the narrow ones.
      const float narrow = from == kUInt64 ? static_cast<float>(static_cast<uint64_t>(a.whole))
                                           : static_cast<float>(a.whole);
      const double full = from == kUInt64 ? static_cast<double>(static_cast<uint64_t>(a.whole))
                                          : static_cast<double>(a.whole);
      out.real = to == kFloat64 ? full : round_to(to, static_cast<double>(narrow));
      out.error = a.error > 0 ? kUnknown : 0;
    }
    return out;
  }
  if (from.is_float()) {
    const auto converted = [&](double v) -> int64_t {
      return to.is_bool() ? !(v == 0) : saturated(to, v);
    };
    out.whole = converted(a.real);
    if (a.error > 0 &&
        (!(a.error < kUnknown) || converted(a.real - a.error) != converted(a.real + a.error) ||
         (to.is_bool() && std::abs(a.real) <= a.error)))
      out.error = kUnknown;
    return out;
  }
  out.whole = to.is_bool() ? a.whole != 0 : wrap_to(to, a.whole);
  out.error = a.error;
  return out;
}

Lane bitcast_lane(DType to, DType from, const Lane& a) {
  const uint64_t bits = from.is_float() ? bits_of(from, a.real) : bits_of_int(from, a.whole);
  Lane out;
  if (to.is_float())
    out.real = double_of(to, bits);
  else
    out.whole = int_of(to, bits);
  out.error = a.error > 0 ? kUnknown : 0;
  // The bits of a NaN are not defined.
  if (from.is_float() && std::isnan(a.real)) out.error = kUnknown;
  return out;
}

Lane choice(DType dtype, const Lane& c, const Lane& a, const Lane& b) {
  Lane out = c.whole ? a : b;
  if (c.error > 0)
    out.error = dtype.is_float() ? std::abs(a.real - b.real) + a.error + b.error : kUnknown;
  if (std::isnan(out.error)) out.error = kUnknown;
  return out;
}

}  // namespace

double round_to(DType dtype, double value) {
  return dtype == kFloat64 ? value : double_of(dtype, bits_of(dtype, value));
}

int64_t wrap_to(DType dtype, int64_t value) {
  const auto unused = static_cast<int>(64 - dtype.bits());
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  return dtype.is_signed() ? static_cast<int64_t>(high) >> unused
                           : static_cast<int64_t>(high >> unused);
}

double spacing(DType dtype, double value) {
  if (!std::isfinite(value)) return 0;
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = value == 0 ? exponent_min(dtype) : std::max(exponent - 1, exponent_min(dtype));
  return std::ldexp(1.0, exponent - mantissa_bits(dtype) + 1);
}

Lane apply(Op op, DType result, DType operand, const Lane* src) {
  switch (op) {
    case Op::Cast:
      return cast_lane(result, operand, src[0]);
    case Op::Bitcast:
      return bitcast_lane(result, operand, src[0]);
    case Op::Where:
      return choice(result, src[0], src[1], src[2]);
    case Op::Less:
    case Op::LessEqual:
    case Op::Equal:
    case Op::NotEqual:
      return comparison(op, operand, src[0], src[1]);
    default:
      break;
  }
  if (!result.is_float())
    return whole_op(op, result, src[0], info(op).arity == 2 ? src[1] : Lane());
  return info(op).arity == 1 ? unary_real(op, result, src[0])
                             : binary_real(op, result, src[0], src[1]);
}

}  // namespace tiny::reference

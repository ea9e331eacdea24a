// How far a computed float32 or float64 is from the true value.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/dtype.h"

namespace tiny {

// |got - exact| in units of the last place of `t` at `exact`; denormals count in their fixed unit.
inline double ulp_error(DType t, double got, long double exact) {
  const long double greatest = t == kFloat32 ? static_cast<long double>(0x1.fffffep127f)
                                             : static_cast<long double>(0x1.fffffffffffffp1023);
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) == std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  const int digits = t == kFloat32 ? 24 : 53, lowest = t == kFloat32 ? -149 : -1074;
  if (std::isinf(got) || std::isinf(exact)) {
    if (got == static_cast<double>(exact)) return 0;
    // Past the greatest number inf is right; from half an ulp below that on it is one ulp off.
    if (!std::isinf(got) || std::signbit(got) != std::signbit(exact))
      return std::numeric_limits<double>::infinity();
    const long double past = std::fabs(exact) / greatest - 1;
    return past > std::ldexp(1.0L, -digits)    ? 0
           : past > -std::ldexp(1.0L, -digits) ? 1
                                               : std::numeric_limits<double>::infinity();
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent - digits, lowest));
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / unit);
}

}  // namespace tiny

#include "rules/constant_quotient.h"

#include <cmath>

#include "ir/build.h"
#include "rules/float_code.h"

namespace tiny {

UOp quotient_before_rounding(const UOp& x, double divisor, bool is_finite) {
  const float reciprocal = 1 / static_cast<float>(divisor);
  if (x.dtype() != kFloat32 || !std::isnormal(divisor) || !std::isnormal(reciprocal)) return {};
  const FloatCode k(x);
  const UOp first = k.times(x, reciprocal);
  const UOp rest = k.fma(neg(first), divisor, x);
  const UOp corrected = k.fma(rest, reciprocal, first);
  if (is_finite) return corrected;
  // An infinite quotient has no rest.
  return where(elementwise(Op::Equal, {corrected, corrected}), corrected, first);
}

}  // namespace tiny

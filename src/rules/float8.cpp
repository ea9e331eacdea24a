#include "rules/float8.h"

#include <cmath>

#include "ir/build.h"

namespace tiny {

namespace {

constexpr int64_t kInfinityBits = 0x7F800000;  // of float32
constexpr int64_t kNanBits = 0x7FC00000;
constexpr int64_t kMagnitude = 0x7FFFFFFF;

// Bits are int32, which every target converts to floats.
UOp word(const UOp& like, int64_t value) {
  return like.graph().constant_int(kInt32, value);
}
UOp op(Op which, const UOp& a, int64_t b) {
  return elementwise(which, {a, word(a, b)});
}
UOp number(const UOp& like, double value) {
  return like.graph().constant(kFloat32, value);
}

// A float8's format beside float32's.
struct Format {
  explicit Format(DType t)
      : mantissa(t.info().mantissa),
        dropped(kFloat32.info().mantissa - mantissa),
        bias(t.exponent_bias()),
        rebias(int64_t{kFloat32.exponent_bias() - bias} << kFloat32.info().mantissa),
        sign(int64_t{1} << (t.bits() - 1)),
        greatest(static_cast<int64_t>(highest_bits(t)) - (t.has_infinities() ? 1 : 0)) {}

  int64_t mantissa, dropped, bias, rebias, sign;
  int64_t greatest;  // the bits of the greatest number
};

}  // namespace

UOp float_of_float8(const UOp& x) {
  const DType t = x.dtype();
  const Format f(t);
  const UOp bits = cast(bitcast(x, kUInt8), kInt32);
  const UOp rest = op(Op::And, bits, f.sign - 1);
  const UOp normal = add(op(Op::Shl, rest, f.dropped), word(rest, f.rebias));
  const UOp small = mul(cast(rest, kFloat32),
                        number(x, std::ldexp(1.0, static_cast<int>(1 - f.bias - f.mantissa))));
  UOp magnitude =
      where(less(rest, word(rest, int64_t{1} << f.mantissa)), bitcast(small, kInt32), normal);
  if (!t.has_negative_zero())
    magnitude = where(equal(bits, word(bits, f.sign)), word(bits, kNanBits), magnitude);
  else  // of infinity nothing is left of the mantissa
    magnitude = where(less(word(rest, f.greatest), rest),
                      t.has_infinities() ? op(Op::Or, op(Op::Shl, rest, f.dropped), kInfinityBits)
                                         : word(rest, kNanBits),
                      magnitude);
  const UOp sign = op(Op::Shl, op(Op::And, bits, f.sign), kFloat32.bits() - t.bits());
  return bitcast(elementwise(Op::Or, {magnitude, sign}), kFloat32);
}

UOp float8_of_float(const UOp& x, DType to) {
  const Format f(to);
  const UOp bits = bitcast(x, kInt32);
  const UOp magnitude = op(Op::And, bits, kMagnitude);
  // Half of what is dropped is added, less one where what stays is even.
  const UOp odd = op(Op::And, op(Op::Shr, magnitude, f.dropped), 1);
  const UOp half = word(bits, (int64_t{1} << (f.dropped - 1)) - 1 - f.rebias);
  const UOp normal = op(Op::Shr, add(add(magnitude, odd), half), f.dropped);
  // A sum with a number whose last bit is the least value of the format rounds to such.
  const UOp magic = number(x, std::ldexp(1.0, static_cast<int>(1 - f.bias + f.dropped)));
  const UOp small =
      add(bitcast(add(bitcast(magnitude, kFloat32), magic), kInt32), neg(bitcast(magic, kInt32)));
  const UOp least = bitcast(number(x, std::ldexp(1.0, static_cast<int>(1 - f.bias))), kInt32);
  UOp code = where(less(magnitude, least), small, normal);
  code = minimum(code, word(code, f.greatest));
  const UOp sign = op(Op::And, op(Op::Shr, bits, kFloat32.bits() - to.bits()), f.sign);
  const UOp infinite = word(bits, kInfinityBits);
  if (!to.has_negative_zero()) {
    code = where(equal(code, word(code, 0)), code, elementwise(Op::Or, {code, sign}));
    code = where(less(magnitude, infinite), code, word(code, f.sign));
  } else {
    UOp other = word(code, f.sign - 1);
    if (to.has_infinities()) {
      const int64_t endless = f.greatest + 1, quiet = int64_t{1} << (to.info().mantissa - 1);
      other = where(equal(magnitude, infinite), word(code, endless), word(code, endless | quiet));
    }
    code = elementwise(Op::Or, {where(less(magnitude, infinite), code, other), sign});
  }
  return bitcast(cast(code, kUInt8), to);
}

}  // namespace tiny

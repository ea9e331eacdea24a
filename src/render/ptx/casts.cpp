// Conversions.
#include "base/error.h"
#include "base/text.h"
#include "render/ptx/arithmetic.h"

namespace tiny::ptx {
namespace {

Operand int_to_int(Writer& out, DType from, DType to, const Operand& x) {
  if (to.bits() == 64 && from.bits() < 64)
    return out.convert("", from.is_signed() ? "s64" : "u64", int_type(from), x);
  const Operand low = from.bits() == 64 && to.bits() < 64 ? out.convert("", "u32", "u64", x) : x;
  const bool fits = to.bits() >= from.bits() && to.bits() >= 32;
  // What is extended by its own sign or by zeros stays so in a wider type, but for the sign that an
  // unsigned one has no room for.
  if (fits || (to.bits() > from.bits() && (to.is_signed() || from.is_unsigned())) ||
      (to.bits() == from.bits() && to.is_signed() == from.is_signed()))
    return low;
  return narrowed(out, to, low);
}

// Beyond the ends the nearest end, of NaN 0: PTX clamps to the ends of its own types, and gives
// something else for NaN where either has 64 bits.
Operand float_to_int(Writer& out, DType from, DType to, const Operand& x) {
  const std::string_view type = to.bits() < 32 ? "s32" : int_type(to), source = float_type(from);
  Operand result = out.convert("rzi.", type, source, x);
  if (from.bits() == 64 || to.bits() == 64) {
    const Operand is_nan = out.compare("nan", source, {x, x});
    result = out.choose(to, is_nan, constant(to, 0), result);
  }
  if (to.bits() >= 32) return result;
  const auto end = [&](uint64_t bits) {
    return constant(kInt32, static_cast<uint64_t>(int_of(to, bits)));
  };
  return out.make("min", "s32",
                  {out.make("max", "s32", {result, end(lowest_bits(to))}), end(highest_bits(to))});
}

Operand from_half(Writer& out, DType from, const Operand& x) {
  if (from == kBFloat16) return out.make("shl", "b32", {x, word(16)});
  return out.convert("", "f32", "f16", out.convert("", "u16", "u32", x));
}

// As base/half.h: the upper half, rounded to nearest even; a NaN stays one.  Where there is an
// instruction it takes the place of six.
Operand to_bfloat(Writer& out, const Operand& x) {
  if (out.has_bfloat) return out.convert("", "u32", "u16", out.convert("rn.", "bf16", "f32", x));
  const Operand odd = out.make("bfe", "u32", {x, word(16), word(1)});
  const Operand more = out.make("add", "u32", {odd, word(0x7FFF)});
  const Operand rounded = out.make("add", "u32", {x, more});
  const Operand quiet = out.make("or", "b32", {x, word(0x400000)});
  const Operand is_nan = out.compare("nan", "f32", {x, x});
  return out.make("shr", "u32", {out.choose_bits("b32", is_nan, quiet, rounded), word(16)});
}

Operand to_half(Writer& out, DType to, const Operand& x) {
  if (to == kBFloat16) return to_bfloat(out, x);
  return out.convert("", "u32", "u16", out.convert("rn.", "f16", "f32", x));
}

}  // namespace

Operand cast(Writer& out, DType from, DType to, const Operand& x) {
  if (from == to) return x;
  if (from.is_narrow_float()) return cast(out, kFloat32, to, from_half(out, from, x));
  if (to.is_narrow_float()) return to_half(out, to, cast(out, from, kFloat32, x));
  if (to.is_bool())
    return from.is_float() ? out.compare("neu", float_type(from), {x, constant(from, 0)})
                           : out.compare("ne", int_type(from), {x, constant(from, 0)});
  if (from.is_bool()) return out.choose(to, x, constant(to, bits_of_int(to, 1)), constant(to, 0));
  if (from.is_int() && to.is_int()) return int_to_int(out, from, to, x);
  if (from.is_int()) return out.convert("rn.", float_type(to), int_type(from), x);
  if (to.is_int()) return float_to_int(out, from, to, x);
  return out.convert(to.bits() < from.bits() ? "rn." : "", float_type(to), float_type(from), x);
}

Operand bitcast(Writer& out, DType from, DType to, const Operand& x) {
  if (to.is_int() && from.is_int() && to.is_signed() == from.is_signed()) return x;
  if (to.bits() >= 32) return x;
  // The bits of a half are extended by zeros.
  return to.is_signed() || from.is_signed() ? narrowed(out, to.carrier(), x) : x;
}

}  // namespace tiny::ptx

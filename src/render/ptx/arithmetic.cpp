#include "render/ptx/arithmetic.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace tiny::ptx {
namespace {

[[noreturn]] void refuse(Op op, DType dtype) {
  throw_error(Status::Unsupported, "PTX: no ", info(op).name, " of ", to_string(dtype));
}

Operand opposite(Writer& out, const Operand& p) {
  return out.make("not", "pred", {p});
}

Operand of_bools(Writer& out, Op op, const Operand& a, const Operand& b) {
  const auto both = [&](const char* opcode, const Operand& x) {
    return out.make(opcode, "pred", {x, b});
  };
  switch (op) {
    case Op::Neg:
    case Op::Abs:
      return a;
    case Op::Not:
      return opposite(out, a);
    case Op::Add:
    case Op::Max:
    case Op::Or:
      return both("or", a);
    case Op::Mul:
    case Op::Min:
    case Op::And:
      return both("and", a);
    case Op::Sub:
    case Op::Xor:
    case Op::NotEqual:
      return both("xor", a);
    case Op::Less:
      return both("and", opposite(out, a));
    case Op::LessEqual:
      return both("or", opposite(out, a));
    case Op::Equal:
      return opposite(out, both("xor", a));
    default:
      refuse(op, kBool);
  }
}

const char* comparison_of(Op op, bool is_float) {
  switch (op) {
    case Op::Less:
      return "lt";
    case Op::LessEqual:
      return "le";
    case Op::Equal:
      return "eq";
    case Op::NotEqual:
      return is_float ? "neu" : "ne";
    default:
      return nullptr;
  }
}

// PTX clamps an amount, which has 32 bits and no sign, to the width.
Operand amount(Writer& out, DType dtype, const Operand& n) {
  if (n.is_constant)
    return word(static_cast<uint32_t>(std::min<uint64_t>(n.value, static_cast<uint64_t>(64))));
  if (dtype.bits() < 64) return n;
  return out.convert("", "u32", "u64", out.make("min", "u64", {n, number(64)}));
}

Operand of_ints(Writer& out, Op op, DType t, const Operand& a, const Operand& b) {
  const std::string_view type = int_type(t), with_sign = t.bits() == 64 ? "s64" : "s32";
  if (const char* how = comparison_of(op, false)) return out.compare(how, type, {a, b});
  switch (op) {
    case Op::Neg:
      return narrowed(out, t, out.make("neg", with_sign, {a}));
    case Op::Abs:
      if (t.is_unsigned()) return a;
      return narrowed(out, t, out.make("max", type, {a, out.make("neg", with_sign, {a})}));
    case Op::Not:
      return narrowed(out, t, out.make("not", bits_type(t), {a}));
    case Op::Add:
      return narrowed(out, t, out.make("add", type, {a, b}));
    case Op::Sub:
      return narrowed(out, t, out.make("sub", type, {a, b}));
    case Op::Mul:
      return narrowed(out, t, out.make("mul.lo", type, {a, b}));
    case Op::Max:
      return out.make("max", type, {a, b});
    case Op::Min:
      return out.make("min", type, {a, b});
    case Op::And:
      return out.make("and", bits_type(t), {a, b});
    case Op::Or:
      return out.make("or", bits_type(t), {a, b});
    case Op::Xor:
      return out.make("xor", bits_type(t), {a, b});
    case Op::Shl:
      return narrowed(out, t, out.make("shl", bits_type(t), {a, amount(out, t, b)}));
    case Op::Shr:
      return out.make("shr", type, {a, amount(out, t, b)});
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::TruncDiv:
    case Op::TruncMod:
      return division(out, op, t, a, b);
    default:
      refuse(op, t);
  }
}

// PTX orders zeros, and its own minimum and maximum change NaN; we choose.
Operand extremum(Writer& out, Op op, DType t, const Operand& a, const Operand& b) {
  const std::string_view type = float_type(t), how = op == Op::Max ? "gt" : "lt";
  if (b.is_constant && !std::isnan(double_of(t, b.value)))
    return out.choose(t, out.compare(how, type, {b, a}), b, a);
  const Operand is_nan = out.compare("nan", type, {b, b});
  return out.choose(t, out.compare(cat(how, ".or"), type, {b, a, is_nan}), b, a);
}

Operand of_floats(Writer& out, Op op, DType t, const Operand& a, const Operand& b,
                  const Operand& c) {
  const std::string_view type = float_type(t), bits = bits_type(t);
  const uint64_t sign = uint64_t{1} << (t.bits() - 1);
  const auto rounded = [&](const char* how) { return out.convert(how, type, type, a); };
  if (const char* how = comparison_of(op, true)) return out.compare(how, type, {a, b});
  switch (op) {
    case Op::Neg:  // PTX's own says nothing of NaN
      return out.make("xor", bits, {a, {file_of(t), true, false, sign}});
    case Op::Abs:
      return out.make("and", bits, {a, {file_of(t), true, false, sign - 1}});
    case Op::Sqrt:
      return out.make("sqrt.rn", type, {a});
    case Op::Floor:
      return rounded("rmi.");
    case Op::Ceil:
      return rounded("rpi.");
    case Op::Trunc:
      return rounded("rzi.");
    case Op::Round:
      return rounded("rni.");
    case Op::Add:
      return out.make("add.rn", type, {a, b});
    case Op::Sub:
      return out.make("sub.rn", type, {a, b});
    case Op::Mul:
      return out.make("mul.rn", type, {a, b});
    case Op::Div:
      return out.make("div.rn", type, {a, b});
    case Op::Fma:
      return out.make("fma.rn", type, {a, b, c});
    case Op::Max:
    case Op::Min:
      return extremum(out, op, t, a, b);
    default:
      refuse(op, t);
  }
}

constexpr uint32_t kSignBit = 0x80000000u;
constexpr uint32_t kLowestNormal = 0x00800000u;  // the bits of 2^-126

// Zero of its sign in the place of a denormal.
Operand flushed(Writer& out, const Operand& x) {
  const Operand magnitude = out.make("and", "b32", {x, word(~kSignBit)});
  const Operand is_denormal = out.compare("lt", "u32", {magnitude, word(kLowestNormal)});
  return out.choose_bits("b32", is_denormal, out.make("and", "b32", {x, word(kSignBit)}), x);
}

// A product added with one rounding, where denormals count as zero.  In float64 the product is
// exact, and so is the sum where it decides whether it rounds to a normal number.
Operand flushed_fma(Writer& out, const Operand& a, const Operand& b, const Operand& c) {
  constexpr uint64_t kLeast = 0x380FFFFFF0000000u;  // 2^-126 - 2^-151, of float64
  constexpr uint64_t kMagnitude = ~uint64_t{0} >> 1;
  const auto wide = [&](const Operand& x) { return out.convert("", "f64", "f32", x); };
  const Operand sum = out.make("fma.rn", "f64", {wide(a), wide(b), wide(c)});
  const Operand magnitude = out.make("and", "b64", {sum, number(kMagnitude)});
  const Operand is_denormal =
      out.compare("lt", "f64", {magnitude, {File::Double, true, false, kLeast}});
  const Operand high = out.convert("", "u32", "u64", out.make("shr", "u64", {sum, word(32)}));
  return out.choose_bits("b32", is_denormal, out.make("and", "b32", {high, word(kSignBit)}),
                         out.make("fma.rn", "f32", {a, b, c}));
}

}  // namespace

Operand narrowed(Writer& out, DType dtype, const Operand& wide) {
  if (dtype.bits() >= 32) return wide;
  return out.convert("", int_type(dtype), cat(dtype.is_signed() ? "s" : "u", dtype.bits()), wide);
}

Operand arithmetic(Writer& out, Op op, DType operand, const Operand& a, const Operand& b,
                   const Operand& c) {
  if (operand.is_bool()) return of_bools(out, op, a, b);
  return operand.is_float() ? of_floats(out, op, operand, a, b, c)
                            : of_ints(out, op, operand, a, b);
}

Operand dot(Writer& out, DotKind kind, const Operand& a, const Operand& b, const Operand& sum) {
  if (kind != DotKind::Bf16) {
    const char* first = kind == DotKind::S8S8 ? "s32" : "u32";
    return out.make(cat("dp4a.", first), kind == DotKind::U8U8 ? "u32" : "s32", {a, b, sum});
  }
  const auto high = [&](const Operand& x) {
    return flushed(out, out.make("and", "b32", {x, word(0xFFFF0000u)}));
  };
  const auto low = [&](const Operand& x) {
    return flushed(out, out.make("shl", "b32", {x, word(16)}));
  };
  const Operand first = flushed_fma(out, high(a), high(b), flushed(out, sum));
  return flushed_fma(out, low(a), low(b), first);
}

}  // namespace tiny::ptx

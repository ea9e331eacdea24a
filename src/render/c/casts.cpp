// The conversions of the C renderer.
#include "base/error.h"
#include "base/text.h"
#include "render/c/helpers.h"
#include "render/c/natives.h"
#include "render/c/types.h"

namespace tiny::c {
namespace {

// As base/half.h.
constexpr const char* kFloatOfHalf =
    "INLINE f32 f32_of_h16(h16 bits) {\n"
    "  u32 sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;\n"
    "  if (magnitude >= 0x7c00u) return f32_of_bits(sign | 0x7f800000u | (magnitude << 13));\n"
    "  if (magnitude < 0x400u) return f32_of_bits(sign | bits_of_f32((f32)magnitude * 0x1p-24f));\n"
    "  return f32_of_bits(sign | ((magnitude << 13) + 0x38000000u));\n"
    "}";
constexpr const char* kHalfOfFloat =
    "INLINE h16 h16_of_f32(f32 value) {\n"
    "  u32 u = bits_of_f32(value), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;\n"
    "  if (magnitude > 0x7f800000u) return (h16)(sign | 0x7e00u | ((u >> 13) & 0x3ffu));\n"
    "  if (magnitude >= 0x477ff000u) return (h16)(sign | 0x7c00u);\n"
    "  if (magnitude < 0x38800000u)\n"
    "    return (h16)(sign | (bits_of_f32(f32_of_bits(magnitude) + 0.5f) - 0x3f000000u));\n"
    "  return (h16)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> "
    "13));\n"
    "}";
constexpr const char* kFloatOfBFloat =
    "INLINE f32 f32_of_bf16(bf16 bits) { return f32_of_bits((u32)bits << 16); }";
constexpr const char* kBFloatOfFloat =
    "INLINE bf16 bf16_of_f32(f32 value) {\n"
    "  u32 u = bits_of_f32(value);\n"
    "  if ((u & 0x7fffffffu) > 0x7f800000u) return (bf16)((u >> 16) | 0x40u);\n"
    "  return (bf16)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);\n"
    "}";

// What gcc 12 must pass through, since it converts integers by lanes where they become more than
// twice or less than half as wide; nothing where there is one step.
DType middle_of(DType from, DType to) {
  if (!from.is_int() || !(to.is_int() || to.is_float()) || to.is_narrow_float()) return to;
  if (to.is_float()) return from.bits() < 32 ? kInt32.with_lanes(from.lanes) : to;
  if (to.bits() > 2 * from.bits()) {
    if (from.is_signed()) return (from.bits() == 8 ? kInt16 : kInt32).with_lanes(from.lanes);
    return (from.bits() == 8 ? kUInt16 : kUInt32).with_lanes(from.lanes);
  }
  if (2 * to.bits() >= from.bits()) return to;
  return (from.bits() == 64 ? kInt32 : kInt16).with_lanes(from.lanes);
}

bool is_half(DType dtype) {
  return dtype.is_narrow_float();
}

}  // namespace

void Helpers::bits_of_float() {
  constant(kFloat32, 0x7FC00000u);  // brings f32_of_bits
  if (first("bits_of_f32")) write(same_bits("u32", "bits_of_f32", "f32"));
}

std::string Helpers::half_cast(DType from, DType to) {
  const std::string name = cat(type_name(to), "_of_", type_name(from));
  bits_of_float();
  if (from == kFloat32 && first(name))
    write(to == kFloat16 ? kHalfOfFloat : kBFloatOfFloat);
  else if (to == kFloat32 && first(name))
    write(from == kFloat16 ? kFloatOfHalf : kFloatOfBFloat);
  if (from == kFloat32 || to == kFloat32) return name;
  const std::string outer = scalar_cast(kFloat32, to), inner = scalar_cast(from, kFloat32);
  if (first(name))
    write(fill("INLINE $0 $1($2 x) { return $3($4(x)); }",
               {type_name(to), name, type_name(from), outer, inner}));
  return name;
}

std::string Helpers::scalar_cast(DType from, DType to) {
  const std::string t = type_name(to), f = type_name(from);
  if (from == to) return "";
  if (is_half(from) || is_half(to)) return half_cast(from, to);
  const std::string name = cat(t, "_of_", f);
  if (to.is_bool()) {
    if (first(name)) write(fill("INLINE b8 $0($1 x) { return x != 0; }", {name, f}));
    return name;
  }
  if (!from.is_float() || to.is_float()) return cat("(", t, ")");
  // The least float above the range is a power of two; the lowest value is a float, too.
  const int64_t exponent = to.bits() - (to.is_signed() ? 1 : 0);
  if (first(name))
    write(
        fill("INLINE $0 $1($2 x) {\n"
             "  if (x >= 0x1p$3) return $4;\n"
             "  if (x <= $5) return $6;\n"
             "  return x == x ? ($0)x : 0;\n"
             "}",
             {t, name, f, cat(exponent, from == kFloat32 ? "f" : ""),
              literal(dialect_, to, highest_bits(to)),
              to.is_signed() ? cat("-0x1p", exponent, from == kFloat32 ? "f" : "") : "0",
              literal(dialect_, to, lowest_bits(to))}));
  return name;
}

std::string Helpers::cast(DType from, DType to) {
  if (from.lanes == 1) return scalar_cast(from, to);
  if (from == to) return "";
  if (to.is_bool())  // a mask as wide as the lanes
    return by_lane(cat("mask_of_", type(from)), mask_of(from), cat(type(from), " a"),
                   cat("-", scalar_cast(from.element(), kBool), "(AT(a, l))"));
  const std::string t = type(to), f = type(from), name = cat(t, "_of_", f);
  if (const DType middle = dialect_.is_gnu ? middle_of(from, to) : to; middle != to) {
    const std::string inner = cast(from, middle), outer = cast(middle, to);
    const std::string steps =
        fill("INLINE $0 $1($2 a) { return $3($4(a)); }", {t, name, f, outer, inner});
    if (first(name)) write_native(native_cast(from, to), name, t, cat(f, " a"), steps);
    return name;
  }
  const std::string lane = cat(scalar_cast(from.element(), to.element()), "(AT(a, l))");
  const std::string otherwise = lanes_text(name, to, cat(f, " a"), lane);
  if (!dialect_.is_gnu) {
    if (first(name)) write(otherwise);
    return name;
  }
  if (from.is_float() && !is_half(from) && to.is_int()) return saturated(name, from, to, otherwise);
  Natives natives = native_cast(from, to);
  if (!is_half(from) && !is_half(to))
    natives.push_back({"1", cat("__builtin_convertvector(a, ", t, ")")});
  if (first(name)) write_native(natives, name, t, cat(f, " a"), otherwise);
  return name;
}

// What is outside is converted as 0 and chosen afterwards; so is NaN.
std::string Helpers::saturated(const std::string& name, DType from, DType to,
                               const std::string& lanes) {
  const std::string t = type(to), f = type(from), m = type(mask_of(from));
  const std::string suffix = from.scalar == ScalarType::Float32 ? "f" : "";
  const std::string high = cat("0x1p", to.bits() - (to.is_signed() ? 1 : 0), suffix);
  const std::string low = to.is_signed() ? "-" + high : "0";
  const std::string most = splat(to), choose = where(to);
  const std::string above = resize_mask(mask_of(from), mask_of(to));
  const DType direct = to.bits() < 32 ? kInt32.with_lanes(to.lanes) : to;
  const std::string converted = type(direct), narrow = cast(direct, to);
  if (!first(name)) return name;
  const std::string portable =
      fill(
          "INLINE $0 $1($2 a) {\n"
          "  const $3 inside = ($3)((a > $4) & (a < $5));\n"
          "  const $2 kept = ($2)(($3)a & inside);\n"
          "  const $0 numbers = $6(__builtin_convertvector(kept, $7));\n",
          {t, name, f, m, low, high, narrow, converted}) +
      fill(
          "  const $0 r = $1($2(($3)(a >= $4)), $5($6), numbers);\n"
          "  return $1($2(($3)(a <= $7)), $5($8), r);\n"
          "}",
          {t, choose, above, m, high, most, literal(dialect_, to, highest_bits(to)), low,
           literal(dialect_, to, lowest_bits(to))});
  write_native(native_cast(from, to), name, t, cat(f, " a"),
               cat("#ifdef VECTORS\n", portable, "\n#else\n", lanes, "\n#endif"));
  return name;
}

std::string Helpers::cast_of_mask(DType mask, DType to) {
  return by_lane(cat(type(to), "_of_bools_", type(mask)), to, cat(type(mask), " a"),
                 cat(scalar_cast(kBool, to.element()), "((b8)(AT(a, l) & 1))"));
}

std::string Helpers::bitcast(DType from, DType to) {
  if (from == to) return "";
  if (from.is_bool() || to.is_bool()) return cast(from, to);
  const std::string t = type(to), f = type(from), name = cat(t, "_bits_of_", f);
  if (first(name)) write(same_bits(t, name, f));
  return name;
}

}  // namespace tiny::c

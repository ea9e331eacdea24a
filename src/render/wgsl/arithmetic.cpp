#include "render/wgsl/arithmetic.h"

#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "render/c/types.h"

namespace tiny::wgsl {
namespace {

using c::fill;
using c::symbol_of;
using c::word_of;

// Divisions of integers, for `$0` the type; what WGSL says of 0 and -1 is said again where ours is
// another, and nothing is left that it would compute early and refuse.
const char* division(Op op, bool is_signed) {
  switch (op) {
    case Op::TruncDiv:
      return "fn trunc_div_$0(a: $0, b: $0) -> $0 { return select(a / b, 0, b == 0); }";
    case Op::TruncMod:
      return "fn trunc_mod_$0(a: $0, b: $0) -> $0 { return select(a % b, 0, b == 0); }";
    case Op::FloorDiv:
      return is_signed ? "fn floor_div_$0(a: $0, b: $0) -> $0 {\n"
                         "  if (b == 0) { return 0; }\n"
                         "  if (b == -1) { return 0 - a; }\n"
                         "  return a / b - select(0, 1, a % b != 0 && (a < 0) != (b < 0));\n"
                         "}"
                       : "fn floor_div_$0(a: $0, b: $0) -> $0 { return select(a / b, 0, b == 0); }";
    case Op::FloorMod:
      return is_signed ? "fn floor_mod_$0(a: $0, b: $0) -> $0 {\n"
                         "  if (b == 0 || b == -1) { return 0; }\n"
                         "  return a % b + select(0, b, a % b != 0 && (a < 0) != (b < 0));\n"
                         "}"
                       : "fn floor_mod_$0(a: $0, b: $0) -> $0 { return select(a % b, 0, b == 0); }";
    default:
      return nullptr;
  }
}

// As base/half.h.
constexpr const char* kFloatOfHalf =
    "fn f32_of_h16(bits: u32) -> f32 {\n"
    "  let sign = (bits & 0x8000u) << 16u;\n"
    "  let magnitude = bits & 0x7fffu;\n"
    "  if (magnitude >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | (magnitude << 13u)); "
    "}\n"
    "  if (magnitude < 0x400u) {\n"
    "    return bitcast<f32>(sign | bitcast<u32>(f32(magnitude) * 0x1p-24f));\n"
    "  }\n"
    "  return bitcast<f32>(sign | ((magnitude << 13u) + 0x38000000u));\n"
    "}";
constexpr const char* kHalfOfFloat =
    "fn h16_of_f32(value: f32) -> u32 {\n"
    "  let u = bitcast<u32>(value);\n"
    "  let sign = (u >> 16u) & 0x8000u;\n"
    "  let magnitude = u & 0x7fffffffu;\n"
    "  if (magnitude > 0x7f800000u) { return sign | 0x7e00u | ((u >> 13u) & 0x3ffu); }\n"
    "  if (magnitude >= 0x477ff000u) { return sign | 0x7c00u; }\n"
    "  if (magnitude < 0x38800000u) {\n"
    "    return sign | (bitcast<u32>(bitcast<f32>(magnitude) + 0.5f) - 0x3f000000u);\n"
    "  }\n"
    "  return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);\n"
    "}";
constexpr const char* kFloatOfBFloat =
    "fn f32_of_bf16(bits: u32) -> f32 { return bitcast<f32>(bits << 16u); }";
constexpr const char* kBFloatOfFloat =
    "fn bf16_of_f32(value: f32) -> u32 {\n"
    "  let u = bitcast<u32>(value);\n"
    "  if ((u & 0x7fffffffu) > 0x7f800000u) { return (u >> 16u) | 0x40u; }\n"
    "  return (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;\n"
    "}";

constexpr const char* kCheck =
    "/* The first check that fails is kept: its number, from 1, and behind it its position. */\n"
    "fn check(holds: bool, number: i32, position: i32) {\n"
    "  if (holds) { return; }\n"
    "  loop {\n"
    "    let found = atomicCompareExchangeWeak(&status[0], 0, number + 1);\n"
    "    if (found.exchanged) {\n"
    "      atomicStore(&status[2], position);\n"
    "      atomicStore(&status[3], position >> 31u);\n"
    "      return;\n"
    "    }\n"
    "    if (found.old_value != 0) { return; }\n"
    "  }\n"
    "}";

bool is_signed_int(DType dtype) {
  return dtype.is_int() && dtype.is_signed();
}

// What arithmetic on 32 bits left, as a value of the dtype.
std::string narrowed(DType dtype, const std::string& x) {
  const int64_t bits = dtype.bits();
  if (dtype.is_bool() || bits >= 32) return x;
  if (is_signed_int(dtype)) return cat("extractBits(", x, ", 0u, ", bits, "u)");
  return cat("(", x, " & ", (1 << bits) - 1, "u)");
}

}  // namespace

const char* type_of(DType dtype) {
  if (dtype.is_bool()) return "bool";
  if (dtype.scalar == ScalarType::Float32) return "f32";
  return is_signed_int(dtype) ? "i32" : "u32";
}

std::string Functions::define(const std::string& name, const std::string& definition) {
  if (known_.insert(name).second) text_ += definition + "\n";
  return name;
}

// A function hides from the compiler what it would refuse to compute: NaN and infinities.
std::string Functions::literal(DType dtype, uint64_t bits) {
  if (dtype.is_bool()) return bits ? "true" : "false";
  if (dtype.scalar == ScalarType::Float32) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isnormal(value) && bits != 0)
      return cat(define("f32_of_bits", "fn f32_of_bits(x: u32) -> f32 { return bitcast<f32>(x); }"),
                 "(", static_cast<uint32_t>(bits), "u)");
    const std::string text = cat(shortest(std::fabs(value)), "f");
    return value < 0 ? cat("(-", text, ")") : text;
  }
  if (!is_signed_int(dtype)) return cat(bits, "u");
  const int64_t value = int_of(dtype, bits);
  return value < 0 ? cat("i32(", value, ")") : cat(value, "i");
}

std::string Functions::of_bools(Op op, const std::string& a, const std::string& b) {
  switch (op) {
    case Op::Neg:
    case Op::Abs:
      return a;
    case Op::Not:
      return cat("!", a);
    case Op::Add:
    case Op::Max:
    case Op::Or:
      return cat(a, " | ", b);
    case Op::Mul:
    case Op::Min:
    case Op::And:
      return cat(a, " & ", b);
    case Op::Less:
      return cat("!", a, " & ", b);
    case Op::LessEqual:
      return cat("!", a, " | ", b);
    case Op::Equal:
      return cat(a, " == ", b);
    default:  // Sub, Xor, NotEqual
      return cat(a, " != ", b);
  }
}

std::string Functions::of_floats(Op op, const std::string& a, const std::string& b,
                                 const std::string& c) {
  switch (op) {
    case Op::Neg:
      return cat("-", a);
    case Op::Max:
      return cat("select(", a, ", ", b, ", ", b, " > ", a, " || ", b, " != ", b, ")");
    case Op::Min:
      return cat("select(", a, ", ", b, ", ", b, " < ", a, " || ", b, " != ", b, ")");
    case Op::Fma:
      return cat("fma(", a, ", ", b, ", ", c, ")");
    default:  // Abs, Sqrt, Floor, Ceil, Trunc, Round: by the same names
      require(info(op).arity == 1, Status::Unsupported, "WGSL has no ", info(op).name,
              " of floats");
      return cat(word_of(op), "(", a, ")");
  }
}

std::string Functions::of_integers(Op op, DType dtype, const std::string& a, const std::string& b) {
  const std::string t = type_of(dtype);
  const bool is_signed = is_signed_int(dtype);
  switch (op) {
    case Op::Neg:
      return narrowed(dtype, is_signed ? cat("(-", a, ")") : cat("(0u - ", a, ")"));
    case Op::Abs:
      return narrowed(dtype, cat("abs(", a, ")"));
    case Op::Not:
      return narrowed(dtype, cat("(~", a, ")"));
    case Op::Max:
    case Op::Min:
      return cat(word_of(op), "(", a, ", ", b, ")");
    case Op::Shl:
      return narrowed(
          dtype,
          cat(define("shl_" + t, fill("fn shl_$0(a: $0, b: $0) -> $0 {\n"
                                      "  return select(a << (u32(b) & 31u), 0, u32(b) > 31u);\n"
                                      "}",
                                      {t})),
              "(", a, ", ", b, ")"));
    case Op::Shr:
      return cat(define("shr_" + t,
                        is_signed ? "fn shr_i32(a: i32, b: i32) -> i32 { return a >> min(u32(b), "
                                    "31u); }"
                                  : "fn shr_u32(a: u32, b: u32) -> u32 {\n"
                                    "  return select(a >> (b & 31u), 0u, b > 31u);\n"
                                    "}"),
                 "(", a, ", ", b, ")");
    default:
      break;
  }
  const char* divided = division(op, is_signed);
  invariant(divided != nullptr, "WGSL has a spelling for each op of integers");
  return narrowed(dtype,
                  cat(define(cat(word_of(op), "_", t), fill(divided, {t})), "(", a, ", ", b, ")"));
}

std::string Functions::arithmetic(Op op, DType operand, const std::string& a, const std::string& b,
                                  const std::string& c) {
  if (operand.is_bool()) return of_bools(op, a, b);
  if (const char* symbol = symbol_of(op)) {
    const std::string infix = cat(a, " ", symbol, " ", b);
    const bool wraps = op == Op::Add || op == Op::Sub || op == Op::Mul;
    return wraps && operand.is_int() ? narrowed(operand, cat("(", infix, ")")) : infix;
  }
  return operand.is_float() ? of_floats(op, a, b, c) : of_integers(op, operand, a, b);
}

std::string Functions::cast(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (from.is_narrow_float()) {
    const bool is_half = from == kFloat16;
    const std::string name =
        define(is_half ? "f32_of_h16" : "f32_of_bf16", is_half ? kFloatOfHalf : kFloatOfBFloat);
    return cast(kFloat32, to, cat(name, "(", x, ")"));
  }
  if (to.is_narrow_float()) {
    const bool is_half = to == kFloat16;
    const std::string name =
        define(is_half ? "h16_of_f32" : "bf16_of_f32", is_half ? kHalfOfFloat : kBFloatOfFloat);
    return cat(name, "(", cast(from, kFloat32, x), ")");
  }
  const std::string t = type_of(to);
  if (to.is_bool()) return cat(x, " != ", literal(from, 0));
  if (!from.is_float() || to.is_float()) return narrowed(to, cat(t, "(", x, ")"));
  // The least float above the range is a power of two; the lowest value is a float, too.
  const int64_t bits = std::min<int64_t>(to.bits(), 32);
  const std::string name = cat(to.is_signed() ? "i" : "u", bits, "_of_f32");
  const DType as = to.bits() > 32 ? kInt32 : to;
  return cat(define(name, fill("fn $0(x: f32) -> $1 {\n"
                               "  if (x >= 0x1p$2f) { return $3; }\n"
                               "  if (x <= $4) { return $5; }\n"
                               "  if (x != x) { return 0; }\n"
                               "  return $1(x);\n"
                               "}",
                               {name, t, std::to_string(bits - (to.is_signed() ? 1 : 0)),
                                literal(as, highest_bits(as)),
                                to.is_signed() ? cat("-0x1p", bits - 1, "f") : std::string("0"),
                                literal(as, lowest_bits(as))})),
             "(", x, ")");
}

std::string Functions::bitcast(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (from.is_bool() || to.is_bool()) return cast(from, to, x);
  const std::string t = type_of(to);
  return to.bits() < 32 ? narrowed(to, cat(t, "(", x, ")")) : cat("bitcast<", t, ">(", x, ")");
}

std::string Functions::of_word(DType dtype, const std::string& word, const std::string& address) {
  const std::string t = type_of(dtype);
  if (dtype.bytes() == 4) return t == "u32" ? word : cat("bitcast<", t, ">(", word, ")");
  const std::string part =
      cat("extractBits(", is_signed_int(dtype) ? cat("bitcast<i32>(", word, ")") : word, ", (",
          address, dtype.bytes() == 1 ? " & 3u) * 8u, 8u)" : " & 2u) * 8u, 16u)");
  return dtype.is_bool() ? cat(part, " != 0u") : part;
}

std::string Functions::to_word(DType dtype, const std::string& x) {
  if (dtype.is_bool()) return cat("u32(", x, ")");
  if (dtype.bytes() == 4) return cat("bitcast<u32>(", x, ")");
  return is_signed_int(dtype) ? cat("(u32(", x, ") & ", (1 << dtype.bits()) - 1, "u)") : x;
}

// Through words that the module has: halves are combined.
std::string Functions::group_fold(Op op, DType dtype) {
  const std::string t = type_of(dtype);
  const auto value = [&](const std::string& word) {
    return dtype.is_bool() ? cat(word, " != 0u") : cat("bitcast<", t, ">(", word, ")");
  };
  const std::string step = arithmetic(op, dtype, "a", "b", "");
  const std::string name = cat("group_fold_", word_of(op), "_", c::type_name(dtype));
  const auto word = [&](const char* x) {
    return dtype.is_bool() ? cat("u32(", x, ")") : cat("bitcast<u32>(", x, ")");
  };
  return define(
      name, fill("fn $0(x: $1, thread: u32, apart: u32, size: u32) -> $1 {\n"
                 "  let place = thread / apart % size;\n"
                 "  workgroupBarrier(); /* the fold before has been read */\n"
                 "  folds[thread] = $2;\n"
                 "  workgroupBarrier();\n"
                 "  for (var n = size / 2u; n > 0u; n = n / 2u) {\n"
                 "    if (place < n) {\n"
                 "      let a = $3;\n"
                 "      let b = $4;\n"
                 "      let both = $5;\n"
                 "      folds[thread] = $6;\n"
                 "    }\n"
                 "    workgroupBarrier();\n"
                 "  }\n"
                 "  return $7;\n"
                 "}",
                 {name, t, word("x"), value("folds[thread]"), value("folds[thread + n * apart]"),
                  step, word("both"), value("folds[thread - place * apart]")}));
}

std::string Functions::check() {
  return define("check", kCheck);
}

std::string Functions::first_bytes() {
  return define("first_bytes",
                "fn first_bytes(word: u32, count: i32) -> u32 {\n"
                "  return extractBits(word, 0u, 8u * u32(clamp(count, 0, 4)));\n"
                "}");
}

}  // namespace tiny::wgsl

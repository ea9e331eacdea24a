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

// Of integers, for `$0` the type; what WGSL says of 0, -1 and long shifts is said again where ours
// is another, and nothing is left that it would compute early and refuse.
const char* definition_of(Op op, bool is_signed) {
  switch (op) {
    case Op::Shl:
      return "fn shl_$0(a: $0, b: $0) -> $0 {\n"
             "  return select(a << (u32(b) & 31u), 0, u32(b) > 31u);\n"
             "}";
    case Op::Shr:
      return is_signed ? "fn shr_$0(a: $0, b: $0) -> $0 { return a >> min(u32(b), 31u); }"
                       : "fn shr_$0(a: $0, b: $0) -> $0 {\n"
                         "  return select(a >> (b & 31u), 0, b > 31u);\n"
                         "}";
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

// A comparison says anything of NaN, which WGSL lets a device take to be nowhere.
constexpr const char* kIsNan =
    "fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }";
constexpr const char* kLessFloat =
    "fn less_f32(x: f32, y: f32) -> bool { return x < y && !is_nan(x) && !is_nan(y); }";

bool is_comparison(Op op) {
  return op == Op::Less || op == Op::LessEqual || op == Op::Equal || op == Op::NotEqual;
}

// Expressions of the operands $0, $1 and $2; $3 is the op's word, $4 the type.
const char* of_bools(Op op) {
  switch (op) {
    case Op::Neg:
    case Op::Abs:
      return "$0";
    case Op::Not:
      return "!$0";
    case Op::Add:
    case Op::Max:
    case Op::Or:
      return "$0 | $1";
    case Op::Mul:
    case Op::Min:
    case Op::And:
      return "$0 & $1";
    case Op::Less:
      return "!$0 & $1";
    case Op::LessEqual:
      return "!$0 | $1";
    case Op::Equal:
      return "$0 == $1";
    default:  // Sub, Xor, NotEqual
      return "$0 != $1";
  }
}

const char* of_floats(Op op) {
  switch (op) {
    case Op::Neg:
      return "-$0";
    case Op::Max:
      return "select($0, $1, less_f32($0, $1) || is_nan($1))";
    case Op::Min:
      return "select($0, $1, less_f32($1, $0) || is_nan($1))";
    case Op::Less:
      return "less_f32($0, $1)";
    case Op::LessEqual:
      return "($0 <= $1 && !is_nan($0) && !is_nan($1))";
    case Op::Equal:
      return "($0 == $1 && !is_nan($0) && !is_nan($1))";
    case Op::NotEqual:
      return "($0 != $1 || is_nan($0) || is_nan($1))";
    case Op::Fma:
      return "fma($0, $1, $2)";
    case Op::Scale:
      return nullptr;
    default:  // Abs, Sqrt, Floor, Ceil, Trunc, Round: by the same names
      return "$3($0)";
  }
}

const char* of_integers(Op op, bool is_signed) {
  switch (op) {
    case Op::Neg:
      return is_signed ? "(-$0)" : "(0u - $0)";
    case Op::Abs:
      return "abs($0)";
    case Op::Not:
      return "(~$0)";
    case Op::Max:
    case Op::Min:
      return "$3($0, $1)";
    default:  // what is defined
      return "$3_$4($0, $1)";
  }
}

// What arithmetic on 32 bits left, as a value of the dtype.
std::string narrowed(DType dtype, const std::string& x) {
  if (dtype.is_bool() || dtype.bits() >= 32) return x;
  const bool is_byte = dtype.bits() == 8;
  if (is_signed_int(dtype)) return fill("extractBits($0, 0u, $1u)", {x, is_byte ? "8" : "16"});
  return fill("($0 & $1u)", {x, is_byte ? "255" : "65535"});
}

}  // namespace

const char* type_of(DType dtype) {
  if (dtype.is_bool()) return "bool";
  if (dtype.scalar == ScalarType::Float32) return "f32";
  return is_signed_int(dtype) ? "i32" : "u32";
}

namespace {

std::string called(std::string_view function, const std::string& x) {
  return fill("$0($1)", {function, x});
}

}  // namespace

std::string Functions::define(std::string_view name, std::string_view definition) {
  std::string called(name);
  if (known_.insert(called).second) text_.append(definition) += '\n';
  return called;
}

// A function hides from the compiler what it would refuse to compute: NaN and infinities.
std::string Functions::literal(DType dtype, uint64_t bits) {
  if (dtype.is_bool()) return bits ? "true" : "false";
  if (dtype.scalar == ScalarType::Float32) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isnormal(value) || bits == 0)
      return fill(value < 0 ? "(-$0f)" : "$0f", {shortest(std::fabs(value))});
    define("f32_of_bits", "fn f32_of_bits(x: u32) -> f32 { return bitcast<f32>(x); }");
    return fill("f32_of_bits($0u)", {std::to_string(static_cast<uint32_t>(bits))});
  }
  if (!is_signed_int(dtype)) return fill("$0u", {std::to_string(bits)});
  const int64_t value = int_of(dtype, bits);
  return fill(value < 0 ? "i32($0)" : "$0i", {std::to_string(value)});
}

std::string Functions::arithmetic(Op op, DType operand, const std::string& a, const std::string& b,
                                  const std::string& c) {
  const bool compares_floats = operand.is_float() && is_comparison(op);
  const char* symbol = operand.is_bool() || compares_floats ? nullptr : symbol_of(op);
  const std::string t = type_of(operand), called = symbol ? symbol : word_of(op);
  const bool is_signed = is_signed_int(operand);
  const bool wraps = operand.is_int() && (op == Op::Add || op == Op::Sub || op == Op::Mul);
  const char* pattern = operand.is_bool()  ? of_bools(op)
                        : symbol           ? wraps ? "($0 $3 $1)" : "$0 $3 $1"
                        : operand.is_int() ? of_integers(op, is_signed)
                                           : of_floats(op);
  require(pattern != nullptr, Status::Unsupported, "WGSL has no ", called, " of floats");
  if (operand.is_int() && !symbol)
    if (const char* definition = definition_of(op, is_signed))
      define(cat(called, "_", t), fill(definition, {t}));
  if (compares_floats || (operand.is_float() && (op == Op::Max || op == Op::Min))) {
    define("is_nan", kIsNan);
    define("less_f32", kLessFloat);
    return fill(pattern, {a, b});
  }
  const std::string text = fill(pattern, {a, b, c, called, t});
  return symbol && !wraps ? text : narrowed(operand, text);
}

std::string Functions::cast(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (from.is_narrow_float()) {
    const std::string name = from == kFloat16 ? define("f32_of_h16", kFloatOfHalf)
                                              : define("f32_of_bf16", kFloatOfBFloat);
    return cast(kFloat32, to, called(name, x));
  }
  if (to.is_narrow_float()) {
    const std::string name =
        to == kFloat16 ? define("h16_of_f32", kHalfOfFloat) : define("bf16_of_f32", kBFloatOfFloat);
    return called(name, cast(from, kFloat32, x));
  }
  const std::string t = type_of(to);
  if (to.is_bool()) return arithmetic(Op::NotEqual, from, x, literal(from, 0), "");
  if (!from.is_float() || to.is_float()) return narrowed(to, called(t, x));
  // The least float above the range is a power of two; the lowest value is a float, too.
  const DType as = to.bits() > 32 ? kInt32 : to;
  const std::string above = std::to_string(as.bits() - (as.is_signed() ? 1 : 0));
  const std::string name = fill("$0_of_f32", {c::type_name(as)});
  define("is_nan", kIsNan);
  define(name,
         fill("fn $0(x: f32) -> $1 {\n"
              "  if (is_nan(x)) { return 0; }\n"
              "  if (x >= 0x1p$2f) { return $3; }\n"
              "  if (x <= $4) { return $5; }\n"
              "  return $1(x);\n"
              "}",
              {name, t, above, literal(as, highest_bits(as)),
               as.is_signed() ? fill("-0x1p$0f", {above}) : "0", literal(as, lowest_bits(as))}));
  return called(name, x);
}

std::string Functions::bitcast(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (from.is_bool() || to.is_bool()) return cast(from, to, x);
  const std::string t = type_of(to);
  return to.bits() < 32 ? narrowed(to, called(t, x)) : fill("bitcast<$0>($1)", {t, x});
}

std::string Functions::of_word(DType dtype, const std::string& word, const std::string& address) {
  const char* t = type_of(dtype);
  if (dtype.bytes() == 4) return fill("bitcast<$0>($1)", {t, word});
  return fill(is_signed_int(dtype) ? "extractBits(bitcast<i32>($0), ($1 & $2"
              : dtype.is_bool()    ? "extractBits($0, ($1 & $2 != 0u"
                                   : "extractBits($0, ($1 & $2",
              {word, address, dtype.bytes() == 1 ? "3u) * 8u, 8u)" : "2u) * 8u, 16u)"});
}

std::string Functions::to_word(DType dtype, const std::string& x) {
  if (dtype.is_bool()) return called("u32", x);
  if (dtype.bytes() == 4) return called("bitcast<u32>", x);
  return is_signed_int(dtype) ? fill("(u32($0) & $1u)", {x, dtype.bytes() == 1 ? "255" : "65535"})
                              : x;
}

// Through words that the module has: halves are combined.
std::string Functions::group_fold(Op op, DType dtype) {
  const std::string t = type_of(dtype),
                    name = fill("group_fold_$0_$1", {word_of(op), c::type_name(dtype)});
  const std::string both = arithmetic(op, dtype, "a", "b", "");
  const char* text =
      "fn $0(x: $1, thread: u32, apart: u32, size: u32) -> $1 {\n"
      "  let place = thread / apart % size;\n"
      "  workgroupBarrier(); /* the fold before has been read */\n"
      "  folds[thread] = $3(x);\n"
      "  workgroupBarrier();\n"
      "  for (var n = size / 2u; n > 0u; n = n / 2u) {\n"
      "    if (place < n) {\n"
      "      let a = $4(folds[thread]);\n"
      "      let b = $4(folds[thread + n * apart]);\n"
      "      let both = $2;\n"
      "      folds[thread] = $3(both);\n"
      "    }\n"
      "    workgroupBarrier();\n"
      "  }\n"
      "  return $4(folds[thread - place * apart]);\n"
      "}";
  return define(name, fill(text, {name, t, both, dtype.is_bool() ? "u32" : "bitcast<u32>",
                                  dtype.is_bool() ? "bool" : fill("bitcast<$0>", {t})}));
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

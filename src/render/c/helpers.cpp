#include "render/c/helpers.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "render/c/types.h"

namespace tiny::c {
namespace {

std::string lower(const char* name) {
  std::string out;
  for (const char* p = name; *p; ++p) {
    const bool upper = *p >= 'A' && *p <= 'Z';
    if (upper && p != name) out += '_';
    out += upper ? static_cast<char>(*p - 'A' + 'a') : *p;
  }
  return out;
}

DType unsigned_of(DType dtype) {
  const int64_t bits = dtype.bits();
  return (bits == 8    ? kUInt8
          : bits == 16 ? kUInt16
          : bits == 32 ? kUInt32
                       : kUInt64)
      .with_lanes(dtype.lanes);
}

// The integers that a comparison of such vectors gives, and that a selection works in.
DType signed_of(DType dtype) {
  const int64_t bits = dtype.bits();
  return (bits == 8    ? kInt8
          : bits == 16 ? kInt16
          : bits == 32 ? kInt32
                       : kInt64)
      .with_lanes(dtype.lanes);
}

const char* infix(Op op) {
  switch (op) {
    case Op::Add:
      return "+";
    case Op::Sub:
      return "-";
    case Op::Mul:
      return "*";
    case Op::Div:
      return "/";
    case Op::And:
      return "&";
    case Op::Or:
      return "|";
    case Op::Xor:
      return "^";
    case Op::Less:
      return "<";
    case Op::LessEqual:
      return "<=";
    case Op::Equal:
      return "==";
    case Op::NotEqual:
      return "!=";
    default:
      return nullptr;
  }
}

// A function of libm that is a builtin of the compilers.
const char* builtin(Op op) {
  switch (op) {
    case Op::Sqrt:
      return "sqrt";
    case Op::Floor:
      return "floor";
    case Op::Ceil:
      return "ceil";
    case Op::Trunc:
      return "trunc";
    case Op::Round:
      return "rint";
    case Op::Fma:
      return "fma";
    default:
      return nullptr;
  }
}

// A definition in C, for `$0` the type, `$1` its unsigned type and `$2` its bits; null if the op
// has an expression of its own.  Division of signed integers by 0 and -1 is undefined in C.
const char* scalar_definition(Op op, DType dtype) {
  const bool is_signed = dtype.is_signed();
  switch (op) {
    case Op::Abs:
      return "INLINE $0 abs_$0($0 a) { return a < 0 ? ($0)-a : a; }";
    case Op::Max:
      return dtype.is_float() ? "INLINE $0 max_$0($0 a, $0 b) { return b > a || b != b ? b : a; }"
                              : "INLINE $0 max_$0($0 a, $0 b) { return b > a ? b : a; }";
    case Op::Min:
      return dtype.is_float() ? "INLINE $0 min_$0($0 a, $0 b) { return b < a || b != b ? b : a; }"
                              : "INLINE $0 min_$0($0 a, $0 b) { return b < a ? b : a; }";
    case Op::Scale:
      return dtype.bits() == 32 ? "INLINE $0 scale_$0($0 a, $0 b) {\n"
                                  "  if (b - b != 0) return b < 0 ? a * 0 : a * b;\n"
                                  "  if (b > 5000 || b < -5000) b = b < 0 ? -5000 : 5000;\n"
                                  "  return __builtin_ldexpf(a, (int)__builtin_floorf(b));\n"
                                  "}"
                                : "INLINE $0 scale_$0($0 a, $0 b) {\n"
                                  "  if (b - b != 0) return b < 0 ? a * 0 : a * b;\n"
                                  "  if (b > 5000 || b < -5000) b = b < 0 ? -5000 : 5000;\n"
                                  "  return __builtin_ldexp(a, (int)__builtin_floor(b));\n"
                                  "}";
    case Op::TruncDiv:
      return is_signed ? "INLINE $0 trunc_div_$0($0 a, $0 b) {\n"
                         "  return b == 0 ? 0 : b == -1 ? ($0)-a : ($0)(a / b);\n"
                         "}"
                       : "INLINE $0 trunc_div_$0($0 a, $0 b) { return b == 0 ? 0 : ($0)(a / b); }";
    case Op::TruncMod:
      return is_signed ? "INLINE $0 trunc_mod_$0($0 a, $0 b) {\n"
                         "  return b == 0 || b == -1 ? 0 : ($0)(a % b);\n"
                         "}"
                       : "INLINE $0 trunc_mod_$0($0 a, $0 b) { return b == 0 ? 0 : ($0)(a % b); }";
    case Op::FloorDiv:
      return is_signed ? "INLINE $0 floor_div_$0($0 a, $0 b) {\n"
                         "  if (b == 0) return 0;\n"
                         "  if (b == -1) return ($0)-a;\n"
                         "  return ($0)(a / b - (a % b != 0 && (a < 0) != (b < 0)));\n"
                         "}"
                       : "INLINE $0 floor_div_$0($0 a, $0 b) { return b == 0 ? 0 : ($0)(a / b); }";
    case Op::FloorMod:
      return is_signed ? "INLINE $0 floor_mod_$0($0 a, $0 b) {\n"
                         "  if (b == 0 || b == -1) return 0;\n"
                         "  return ($0)(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0));\n"
                         "}"
                       : "INLINE $0 floor_mod_$0($0 a, $0 b) { return b == 0 ? 0 : ($0)(a % b); }";
    case Op::Shl:
      return "INLINE $0 shl_$0($0 a, $0 b) { return ($1)b < $2 ? ($0)(($1)a << b) : 0; }";
    case Op::Shr:
      return is_signed
                 ? "INLINE $0 shr_$0($0 a, $0 b) { return ($0)(a >> (($1)b < $2 ? b : $2 - 1)); }"
                 : "INLINE $0 shr_$0($0 a, $0 b) { return b < $2 ? ($0)(a >> b) : 0; }";
    default:
      return nullptr;
  }
}

// Of a vector; a lane of a mask is 0 or -1.
std::string lane_type(DType dtype) {
  return dtype.is_bool() ? "i8" : type_name(dtype.element());
}

bool is_arithmetic(DType dtype) {
  return dtype.is_bool() || dtype.is_int() || dtype.scalar == ScalarType::Float32 ||
         dtype.scalar == ScalarType::Float64;
}

}  // namespace

std::string Helpers::type(DType dtype) {
  const std::string name = type_name(dtype);
  if (dtype.lanes > 1 && first(name)) {
    write(fill("typedef $0 $1 __attribute__((vector_size($2)));",
               {lane_type(dtype), name, std::to_string(padded_lanes(dtype) * dtype.bytes())}));
  }
  return name;
}

std::string Helpers::constant(DType dtype, uint64_t bits) {
  const std::string one =
      dtype.is_bool() && dtype.lanes > 1 ? (bits ? "-1" : "0") : literal(dtype.element(), bits);
  const size_t call = one.find("_of_bits");
  if (call != std::string::npos && first(one.substr(0, call) + "_of_bits")) {
    const bool wide = dtype.scalar == ScalarType::Float64;
    write(
        fill("INLINE $0 $0_of_bits($1 bits) {\n"
             "  $0 x;\n"
             "  __builtin_memcpy(&x, &bits, sizeof x);\n"
             "  return x;\n"
             "}",
             {wide ? "f64" : "f32", wide ? "u64" : "u32"}));
  }
  return dtype.lanes == 1 ? one : cat(splat(dtype), "(", one, ")");
}

// Compilers make vector instructions of such loops.  The lanes are put into an array first: gcc 12
// confuses bools with masks where a vector is made lane by lane.
std::string Helpers::by_lane(const std::string& name, DType result, const std::string& parameters,
                             const std::string& lane, const std::string& condition,
                             const std::string& before) {
  const std::string t = type(result), one = lane_type(result);
  if (first("pack_" + t))
    write(
        fill("INLINE $0 pack_$0(const $1 *lanes) {\n"
             "  $0 x;\n"
             "  __builtin_memcpy(&x, lanes, sizeof x);\n"
             "  return x;\n"
             "}",
             {t, one}));
  const bool partly = !condition.empty() || padded_lanes(result) > result.lanes;
  const std::string size = std::to_string(padded_lanes(result));
  if (first(name))
    write(
        fill("INLINE $0 $1($2) {\n"
             "$3"
             "  $4 r[$5$9;\n"
             "  for (int l = 0; l < $6; ++l)\n"
             "    $7r[l] = $8;\n"
             "  return pack_$0(r);\n"
             "}",
             {t, name, parameters, before, one, size, std::to_string(result.lanes), condition, lane,
              partly ? "] = {0}" : "]"}));
  return name;
}

// The op of one lane on all.
std::string Helpers::each_lane(const std::string& name, DType dtype, int operands,
                               const std::string& function) {
  const std::string t = type(dtype);
  static constexpr const char* kNames[] = {"a", "b", "c"};
  std::string parameters, arguments;
  for (int i = 0; i < operands; ++i) {
    parameters += cat(i ? ", " : "", t, " ", kNames[i]);
    arguments += cat(i ? ", " : "", kNames[i], "[l]");
  }
  return by_lane(name, dtype, parameters, cat(function, "(", arguments, ")"));
}

std::string Helpers::scalar_function(Op op, DType dtype) {
  const bool narrow = dtype.scalar == ScalarType::Float32;
  if (const char* function = builtin(op)) return cat("__builtin_", function, narrow ? "f" : "");
  if (op == Op::Abs && dtype.is_float()) return narrow ? "__builtin_fabsf" : "__builtin_fabs";
  const char* definition = scalar_definition(op, dtype);
  invariant(definition != nullptr, "C has a spelling for each op of the linear program");
  const std::string name = cat(lower(info(op).name), "_", type_name(dtype));
  if (first(name))
    write(fill(definition,
               {type_name(dtype), type_name(unsigned_of(dtype)), std::to_string(dtype.bits())}));
  return name;
}

std::string Helpers::vector_shift(Op op, DType dtype) {
  const std::string name = cat(lower(info(op).name), "_", type(dtype));
  const std::string t = type(dtype), u = type(unsigned_of(dtype));
  if (!first(name)) return name;
  const std::string last = std::to_string(dtype.bits() - 1);
  if (op == Op::Shl || dtype.is_unsigned()) {
    write(
        fill("INLINE $0 $1($0 a, $0 b) {\n"
             "  $2 inside = ($2)(($2)b <= $3);\n"
             "  return ($0)((($2)a $4 (($2)b & $3)) & inside);\n"
             "}",
             {t, name, u, last, op == Op::Shl ? "<<" : ">>"}));
  } else {
    write(
        fill("INLINE $0 $1($0 a, $0 b) {\n"
             "  $0 inside = ($0)(($2)b <= $3);\n"
             "  return a >> ((b & inside) | ($3 & ~inside));\n"
             "}",
             {t, name, u, last}));
  }
  return name;
}

std::string Helpers::vector_function(Op op, DType dtype) {
  if (op == Op::Shl || op == Op::Shr) return vector_shift(op, dtype);
  const std::string name = cat(lower(info(op).name), "_", type(dtype));
  if (op == Op::Max || op == Op::Min) {
    const std::string wide = type(signed_of(dtype));
    if (first(name))
      write(
          fill("INLINE $0 $1($0 a, $0 b) {\n"
               "  $2 second = $3;\n"
               "  return ($0)((($2)b & second) | (($2)a & ~second));\n"
               "}",
               {type(dtype), name, wide,
                op == Op::Max ? (dtype.is_float() ? "(b > a) | (b != b)" : "b > a")
                              : (dtype.is_float() ? "(b < a) | (b != b)" : "b < a")}));
    return name;
  }
  return each_lane(name, dtype, info(op).arity, scalar_function(op, dtype.element()));
}

// Bools compute alike whether they are 0 and 1 or the lanes 0 and -1 of a mask, but for "not".
std::string Helpers::mask_expression(Op op, const std::string& a, const std::string& b) {
  switch (op) {
    case Op::Neg:
    case Op::Abs:
      return a;
    case Op::Add:
    case Op::Max:
    case Op::Or:
      return cat(a, " | ", b);
    case Op::Mul:
    case Op::Min:
    case Op::And:
      return cat(a, " & ", b);
    case Op::Sub:
    case Op::Xor:
    case Op::NotEqual:
      return cat(a, " ^ ", b);
    default:
      return "";
  }
}

std::string Helpers::comparison(Op op, DType operand) {
  const std::string t = type(operand), wide = type(signed_of(operand));
  return by_lane(cat(lower(info(op).name), "_", t), kBool.with_lanes(operand.lanes),
                 cat(t, " a, ", t, " b"), "wide[l]", "",
                 cat("  ", wide, " wide = a ", infix(op), " b;\n"));
}

std::string Helpers::arithmetic(Op op, DType operand, const std::string& a, const std::string& b,
                                const std::string& c) {
  invariant(is_arithmetic(operand), "half types are not computed with in a linear program");
  const bool vector = operand.lanes > 1;
  if (operand.is_bool()) {
    if (std::string text = mask_expression(op, a, b); !text.empty()) return text;
    if (op == Op::Not) return cat(vector ? "~" : "!", a);
    if (vector && op == Op::Less) return cat("~", a, " & ", b);
    if (vector && op == Op::LessEqual) return cat("~", a, " | ", b);
    if (vector && op == Op::Equal) return cat("~(", a, " ^ ", b, ")");
    return cat(a, " ", infix(op), " ", b);
  }
  if (op == Op::Neg && operand.is_float()) return cat(flip_sign(operand), "(", a, ")");
  if (op == Op::Neg) return cat("-", a);
  if (op == Op::Not) return cat("~", a);
  if (op == Op::Abs && operand.is_unsigned()) return a;
  const char* symbol = infix(op);
  if (symbol && vector && info(op).result == OpResult::Bool)
    return cat(comparison(op, operand), "(", a, ", ", b, ")");
  if (symbol) return cat(a, " ", symbol, " ", b);
  const std::string function = vector ? vector_function(op, operand) : scalar_function(op, operand);
  std::string arguments = a;
  if (!b.empty()) arguments += ", " + b;
  if (!c.empty()) arguments += ", " + c;
  return cat(function, "(", arguments, ")");
}

// Not C's minus: gcc 12 makes one instruction of -fma(a, b, c), which gives 0 for -0.
std::string Helpers::flip_sign(DType dtype) {
  const DType word = unsigned_of(dtype);
  const std::string t = type(dtype), name = cat("neg_", t);
  const std::string to = bitcast(dtype, word), back = bitcast(word, dtype);
  if (first(name))
    write(fill("INLINE $0 $1($0 x) { return $2($3(x) ^ $4); }",
               {t, name, back, to, dtype.bits() == 32 ? "0x80000000u" : "0x8000000000000000ull"}));
  return name;
}

std::string Helpers::where(DType dtype) {
  const DType mask = kBool.with_lanes(dtype.lanes), integers = signed_of(dtype);
  const std::string t = type(dtype), m = type(mask), w = type(integers);
  const std::string widen = cat("widen_", m, "_to_", w), name = cat("where_", t);
  if (dtype.bits() > 8) by_lane(widen, integers, cat(m, " condition"), "condition[l]");
  if (first(name))
    write(
        fill("INLINE $0 $1($2 condition, $0 a, $0 b) {\n"
             "  $3 wide = $4(condition);\n"
             "  return ($0)((($3)a & wide) | (($3)b & ~wide));\n"
             "}",
             {t, name, m, w, dtype.bits() > 8 ? widen : cat("(", w, ")")}));
  return name;
}

std::string Helpers::splat(DType dtype) {
  const std::string name = cat("splat_", type(dtype));
  if (!first(name)) return name;
  std::string lanes;
  for (int64_t l = 0; l < padded_lanes(dtype); ++l) lanes += l ? ", x" : "x";
  write(fill("INLINE $0 $1($2 x) { return ($0){$3}; }",
             {type(dtype), name, lane_type(dtype), lanes}));
  return name;
}

std::string Helpers::ramp(DType dtype) {
  const std::string name = cat("ramp_", type(dtype)), spread = splat(dtype);
  if (!first(name)) return name;
  std::string lanes;
  for (int64_t l = 0; l < padded_lanes(dtype); ++l)
    lanes += cat(l ? ", " : "",
                 static_cast<int64_t>(int_of(dtype.element(), bits_of_int(dtype.element(), l))));
  write(fill("INLINE $0 $1($2 first, $2 step) { return $3(first) + $3(step) * ($0){$4}; }",
             {type(dtype), name, type_name(dtype.element()), spread, lanes}));
  return name;
}

std::string Helpers::lane_range(DType dtype) {
  return by_lane(cat("lane_range_", dtype.lanes), dtype, "i64 low, i64 high",
                 "-(low <= l && l < high)");
}

std::string Helpers::fold(Op op, DType dtype) {
  const std::string name = cat("fold_", lower(info(op).name), "_", type(dtype));
  // Lanes of a mask combine as bools of one lane do.
  const std::string step = arithmetic(op, dtype.element(), "lane[l]", "lane[l + half]");
  if (first(name))
    write(
        fill("INLINE $0 $1($2 v) {\n"
             "  $3 lane[$4];\n"
             "  __builtin_memcpy(lane, &v, sizeof lane);\n"
             "  for (int half = $4 / 2; half > 0; half /= 2)\n"
             "    for (int l = 0; l < half; ++l) lane[l] = $5;\n"
             "  return lane[0]$6;\n"
             "}",
             {type_name(dtype.element()), name, type(dtype), lane_type(dtype),
              std::to_string(dtype.lanes), step, dtype.is_bool() ? " & 1" : ""}));
  return name;
}

std::string Helpers::check(DType condition) {
  const std::string one = "check_b8";
  if (first(one))
    write(
        "/* The first check that fails is kept: its number and position in one word. */\n"
        "INLINE void check_b8(i64 *status, b8 holds, u64 number, i64 position) {\n"
        "  i64 none = 0, failed = (i64)((number + 1) << 47 | ((u64)position & ((1ull << 47) - "
        "1)));\n"
        "  if (!holds)\n"
        "    __atomic_compare_exchange_n(status, &none, failed, 0, __ATOMIC_RELAXED, "
        "__ATOMIC_RELAXED);\n"
        "}");
  if (condition.lanes == 1) return one;
  const std::string name = cat("check_", type(condition));
  if (first(name))
    write(
        fill("INLINE void $0(i64 *status, $1 holds, u64 number, i64 position) {\n"
             "  b8 all = 1;\n"
             "  for (int l = 0; l < $2; ++l) all &= holds[l] != 0;\n"
             "  check_b8(status, all, number, position);\n"
             "}",
             {name, type(condition), std::to_string(condition.lanes)}));
  return name;
}

}  // namespace tiny::c

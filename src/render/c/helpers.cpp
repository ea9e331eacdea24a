#include "render/c/helpers.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "render/c/natives.h"
#include "render/c/types.h"

namespace tiny::c {
namespace {

// A function of libm that the compilers know.
const char* libm(Op op) {
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
      return "INLINE $0 abs_$0($0 a) { return a < 0 ? ($0)(0u - ($1)a) : a; }";
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
                                  "  return ldexpf(a, (int)floorf(b));\n"
                                  "}"
                                : "INLINE $0 scale_$0($0 a, $0 b) {\n"
                                  "  if (b - b != 0) return b < 0 ? a * 0 : a * b;\n"
                                  "  if (b > 5000 || b < -5000) b = b < 0 ? -5000 : 5000;\n"
                                  "  return ldexp(a, (int)floor(b));\n"
                                  "}";
    case Op::TruncDiv:
      return is_signed ? "INLINE $0 trunc_div_$0($0 a, $0 b) {\n"
                         "  return b == 0 ? 0 : b == -1 ? ($0)(0u - ($1)a) : ($0)(a / b);\n"
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
                         "  if (b == -1) return ($0)(0u - ($1)a);\n"
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

// The integers in which sums and products wrap: as wide, or as wide as C computes in.
DType wrapping(DType dtype) {
  const DType as = unsigned_of(dtype);
  return as.bits() < 32 && as.lanes == 1 ? kUInt32 : as;
}

bool is_arithmetic(DType dtype) {
  return dtype.is_bool() || dtype.is_int() || dtype.scalar == ScalarType::Float32 ||
         dtype.scalar == ScalarType::Float64;
}

bool wraps(Op op) {
  return op == Op::Add || op == Op::Sub || op == Op::Mul;
}

}  // namespace

std::string Helpers::type(DType dtype) {
  const std::string name = type_name(dtype);
  if (dtype.lanes > 1 && first(name))
    write(fill("VECTOR($0, $1, $2)", {dtype.is_bool() ? "i8" : type_name(dtype.element()), name,
                                      std::to_string(padded_lanes(dtype))}));
  return name;
}

// A function of x.
std::string Helpers::same_bits(const std::string& to, const std::string& name,
                               const std::string& from) const {
  return fill(dialect_.is_gnu ? "INLINE $0 $1($2 x) {\n"
                                "  $0 r;\n"
                                "  memcpy(&r, &x, sizeof r);\n"
                                "  return r;\n"
                                "}"
                              : "INLINE $0 $1($2 x) {\n"
                                "  union {\n"
                                "    $2 from;\n"
                                "    $0 to;\n"
                                "  } bits;\n"
                                "  bits.from = x;\n"
                                "  return bits.to;\n"
                                "}",
              {to, name, from});
}

void Helpers::write_both(const std::string& with_vectors, const std::string& without) {
  write(dialect_.is_gnu ? cat("#ifdef VECTORS\n", with_vectors, "\n#else\n", without, "\n#endif")
                        : without);
}

std::string Helpers::constant(DType dtype, uint64_t bits) {
  const std::string one = dtype.is_bool() && dtype.lanes > 1
                              ? (bits ? "-1" : "0")
                              : literal(dialect_, dtype.element(), bits);
  const size_t call = one.find("_of_bits");
  if (call != std::string::npos && first(one.substr(0, call) + "_of_bits")) {
    const bool wide = dtype.scalar == ScalarType::Float64;
    write(same_bits(wide ? "f64" : "f32", wide ? "f64_of_bits" : "f32_of_bits",
                    wide ? "u64" : "u32"));
  }
  return dtype.lanes == 1 ? one : cat(splat(dtype), "(", one, ")");
}

std::string Helpers::scalar_function(Op op, DType dtype) {
  const bool narrow = dtype.scalar == ScalarType::Float32;
  if (const char* function = libm(op)) return cat(function, narrow ? "f" : "");
  if (op == Op::Abs && dtype.is_float()) return narrow ? "fabsf" : "fabs";
  const bool is_defined = wraps(op) || op == Op::Neg;
  const bool is_compared = info(op).result == OpResult::Bool;
  const char* definition =
      is_defined    ? op == Op::Neg ? "INLINE $0 $3_$0($0 a) { return ($0)(0u - ($1)a); }"
                                    : "INLINE $0 $3_$0($0 a, $0 b) { return ($0)(($1)a $4 ($1)b); }"
      : is_compared ? "INLINE b8 $3_$0($0 a, $0 b) { return a $4 b; }"
                    : scalar_definition(op, dtype);
  invariant(definition != nullptr, "C has a spelling for each op of the linear program");
  const std::string called = word_of(op), name = cat(called, "_", type_name(dtype));
  const char* symbol = symbol_of(op);
  if (first(name))
    write(fill(definition,
               {type_name(dtype), type_name(is_defined ? wrapping(dtype) : unsigned_of(dtype)),
                std::to_string(dtype.bits()), called, symbol ? symbol : ""}));
  return name;
}

std::string Helpers::arithmetic(Op op, DType operand, const std::string& a, const std::string& b,
                                const std::string& c) {
  invariant(is_arithmetic(operand), "half types are not computed with in a linear program");
  const bool vector = operand.lanes > 1;
  const char* symbol = symbol_of(op);
  if (operand.is_bool()) return mask_arithmetic(op, operand, a, b);
  if (op == Op::Abs && operand.is_unsigned()) return a;
  std::string function;
  if (op == Op::Div && operand.element() == kFloat32 && dialect_.divide_f32)
    function = vector ? each_lane_of(op, operand, dialect_.divide_f32) : dialect_.divide_f32;
  else if (op == Op::Neg && operand.is_float())
    function = flip_sign(operand);
  else if (vector && symbol)
    function = info(op).result == OpResult::Bool ? comparison(op, operand) : infix(op, operand);
  else if (vector)
    function = vector_function(op, operand);
  else if (op == Op::Not)
    return cat("(", type_name(operand), ")~", a);
  else if (symbol && !(a == b && info(op).result == OpResult::Bool) &&
           !(wraps(op) && operand.is_int() && (operand.is_signed() || operand.bits() < 32)))
    return cat(a, " ", symbol, " ", b);
  else
    function = scalar_function(op, operand);
  std::string arguments = a;
  if (!b.empty()) arguments += ", " + b;
  if (!c.empty()) arguments += ", " + c;
  return cat(function, "(", arguments, ")");
}

// Bools compute alike whether they are 0 and 1 or the lanes 0 and -1 of a mask, but for "not".
std::string Helpers::mask_arithmetic(Op op, DType mask, const std::string& a,
                                     const std::string& b) {
  const bool vector = mask.lanes > 1;
  const auto both = [&](Op with, const std::string& x) {
    return vector ? cat(infix(with, mask), "(", x, ", ", b, ")")
                  : cat(x, " ", symbol_of(with), " ", b);
  };
  const auto inverse = [&](const std::string& x) {
    return vector ? cat(complement(mask), "(", x, ")") : cat("(!", x, ")");
  };
  switch (op) {
    case Op::Neg:
    case Op::Abs:
      return a;
    case Op::Not:
      return inverse(a);
    case Op::Add:
    case Op::Max:
    case Op::Or:
      return both(Op::Or, a);
    case Op::Mul:
    case Op::Min:
    case Op::And:
      return both(Op::And, a);
    case Op::Sub:
    case Op::Xor:
    case Op::NotEqual:
      return both(Op::Xor, a);
    case Op::Less:
      return both(Op::And, inverse(a));
    case Op::LessEqual:
      return both(Op::Or, inverse(a));
    case Op::Equal:
      return inverse(vector ? both(Op::Xor, a) : cat("(", both(Op::Xor, a), ")"));
    default:
      throw_error(Status::Internal, "bools have no ", info(op).name);
  }
}

// Not C's minus: gcc 12 makes one instruction of -fma(a, b, c), which gives 0 for -0.
std::string Helpers::flip_sign(DType dtype) {
  const DType word = unsigned_of(dtype);
  const std::string t = type(dtype), name = cat("neg_", t);
  const std::string bits =
      dtype.bits() == 32 ? "0x80000000u" : cat("0x8000000000000000u", dialect_.long_suffix);
  const std::string to = bitcast(dtype, word), back = bitcast(word, dtype);
  const std::string one = dtype.lanes > 1 ? flip_sign(dtype.element()) : "";
  if (!first(name)) return name;
  const std::string text =
      fill("INLINE $0 $1($0 x) { return $2($3(x) ^ $4); }", {t, name, back, to, bits});
  if (dtype.lanes == 1)
    write(text);
  else
    write_both(text, lanes_text(name, dtype, cat(t, " x"), cat(one, "(AT(x, l))")));
  return name;
}

// By one lane of words: bytes are extended by their sign; of bfloat16 the upper half comes first,
// each product is added with one rounding and denormals count as zero.
std::string Helpers::dot(DotKind kind, DType sum) {
  const DType one = sum.element();
  const std::string t = type(one), name = cat("dot_", to_string(kind), "_", t);
  if (kind == DotKind::Bf16) constant(kFloat32, 0x7FC00000u);  // brings f32_of_bits
  if (kind == DotKind::Bf16 && first(name)) {
    write(
        "INLINE f32 dot_flushed(f32 x) {\n"
        "  return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;\n"
        "}\n"
        "INLINE f32 dot_half(u32 bits) { return dot_flushed(f32_of_bits(bits)); }\n"
        "INLINE f32 dot_add(f32 a, f32 b, f32 c) {\n"
        "  f64 exact = (f64)a * b + c;\n"
        "  if (fabs(exact) < 0x1p-126 - 0x1p-151)\n"
        "    return (f32)copysign(0, exact);\n"
        "  return fmaf(a, b, c);\n"
        "}");
    write(
        fill("INLINE f32 $0(u32 a, u32 b, f32 c) {\n"
             "  c = dot_add(dot_half(a & 0xffff0000u), dot_half(b & 0xffff0000u), "
             "dot_flushed(c));\n"
             "  return dot_add(dot_half(a << 16), dot_half(b << 16), c);\n"
             "}",
             {name}));
  } else if (kind != DotKind::Bf16 && first(name)) {
    const char* a = kind == DotKind::S8S8 ? "i8" : "u8";
    const char* b = kind == DotKind::U8U8 ? "u8" : "i8";
    write(
        fill("INLINE $0 $1(u32 a, u32 b, $0 c) {\n"
             "  u32 sum = (u32)c;\n"
             "  for (int s = 0; s < 32; s += 8) sum += (u32)(($2)(a >> s) * ($3)(b >> s));\n"
             "  return ($0)sum;\n"
             "}",
             {t, name, a, b}));
  }
  if (sum.lanes == 1) return name;
  const std::string words = type(kUInt32.with_lanes(sum.lanes)), vectors = type(sum);
  const std::string all = cat("dot_", to_string(kind), "_", vectors);
  if (!first(all)) return all;
  const std::string parameters = cat(words, " a, ", words, " b, ", vectors, " c");
  write_native(native_dot(kind, sum), all, vectors, parameters,
               lanes_text(all, sum, parameters, cat(name, "(AT(a, l), AT(b, l), AT(c, l))")));
  return all;
}

std::string Helpers::group_fold(Op op, DType dtype, bool of_bools) {
  const std::string t = type(dtype);
  const std::string name = cat(of_bools ? "group_fold_bools_" : "group_fold_", word_of(op), "_", t);
  const std::string step =
      of_bools ? mask_arithmetic(op, dtype, "a", "b") : arithmetic(op, dtype, "a", "b");
  const Pointer& shared = dialect_.pointer(Space::Shared);
  if (first(name))
    write(
        fill("INLINE $0 $1($0 x, $2folds, int self, int apart, int size) {\n"
             "  $5$0 *values = ($5$0 *)folds;\n"
             "  const int place = self / apart % size;\n"
             "  $3 /* the fold before has been read */\n"
             "  values[self] = x;\n"
             "  $3\n"
             "  for (int n = size / 2; n > 0; n /= 2) {\n"
             "    if (place < n) {\n"
             "      const $0 a = values[self], b = values[self + n * apart];\n"
             "      values[self] = $4;\n"
             "    }\n"
             "    $3\n"
             "  }\n"
             "  return values[self - place * apart];\n"
             "}",
             {t, name, shared.type, dialect_.barrier, step, shared.word}));
  return name;
}

std::string Helpers::check() {
  if (first("check_b8")) write(dialect_.check);
  return "check_b8";
}

std::string Helpers::check_of_mask(DType mask) {
  const std::string one = check(), t = type(mask), name = cat("check_", t);
  if (first(name))
    write(
        fill("INLINE void $0($4status, $1 holds, u64 number, i64 position) {\n"
             "  b8 all = 1;\n"
             "  for (int l = 0; l < $2; ++l) all = (b8)(all & (AT(holds, l) != 0));\n"
             "  $3(status, all, number, position);\n"
             "}",
             {name, t, std::to_string(mask.lanes), one, dialect_.status}));
  return name;
}

}  // namespace tiny::c

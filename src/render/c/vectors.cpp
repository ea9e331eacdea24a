// What the C renderer does with vectors, lane by lane and at once.
#include "base/error.h"
#include "base/text.h"
#include "render/c/helpers.h"
#include "render/c/natives.h"
#include "render/c/types.h"

namespace tiny::c {
namespace {

std::string lane_type(DType dtype) {
  return dtype.is_bool() ? "i8" : type_name(dtype.element());
}

}  // namespace

// Compilers make vector instructions of such loops.  The lanes are put into an array first: gcc 12
// confuses bools with masks where a vector is made lane by lane.
std::string Helpers::lanes_text(const std::string& name, DType result,
                                const std::string& parameters, const std::string& lane,
                                const std::string& condition, const std::string& before) {
  const std::string t = type(result), one = lane_type(result);
  const bool partly = !condition.empty() || padded_lanes(result) > result.lanes;
  if (!dialect_.is_gnu)
    return fill(
        "INLINE $0 $1($2) {\n"
        "$3"
        "  $0 r$4;\n"
        "  for (int l = 0; l < $5; ++l)\n"
        "    $6AT(r, l) = ($7)($8);\n"
        "  return r;\n"
        "}",
        {t, name, parameters, before, partly ? " = {{0}}" : "", std::to_string(result.lanes),
         condition, one, lane});
  if (first("pack_" + t))
    write(
        fill("INLINE $0 pack_$0(const $1 *lanes) {\n"
             "  $0 x;\n"
             "  memcpy(&x, lanes, sizeof x);\n"
             "  return x;\n"
             "}",
             {t, one}));
  const std::string size = std::to_string(padded_lanes(result));
  return fill(
      "INLINE $0 $1($2) {\n"
      "$3"
      "  $4 r[$5$9;\n"
      "  for (int l = 0; l < $6; ++l)\n"
      "    $7r[l] = ($4)($8);\n"
      "  return pack_$0(r);\n"
      "}",
      {t, name, parameters, before, one, size, std::to_string(result.lanes), condition, lane,
       partly ? "] = {0}" : "]"});
}

std::string Helpers::by_lane(const std::string& name, DType result, const std::string& parameters,
                             const std::string& lane, const std::string& condition,
                             const std::string& before) {
  const std::string text = lanes_text(name, result, parameters, lane, condition, before);
  if (first(name)) write(text);
  return name;
}

// The op of one lane on all.
std::string Helpers::each_lane_text(const std::string& name, DType dtype, int operands,
                                    const std::string& function) {
  const std::string t = type(dtype);
  static constexpr const char* kNames[] = {"a", "b", "c"};
  std::string parameters, arguments;
  for (int i = 0; i < operands; ++i) {
    parameters += cat(i ? ", " : "", t, " ", kNames[i]);
    arguments += cat(i ? ", " : "", "AT(", kNames[i], ", l)");
  }
  return lanes_text(name, dtype, parameters, cat(function, "(", arguments, ")"));
}

void Helpers::write_native(const Natives& natives, const std::string& name, const std::string& type,
                           const std::string& parameters, const std::string& otherwise) {
  if (natives.empty() || !dialect_.is_gnu) return write(otherwise);
  std::string text;
  for (const Native& native : natives)
    text += cat(text.empty() ? "#if" : "#elif", " defined(VECTORS) && ", native.guard, "\nINLINE ",
                type, " ", name, "(", parameters, ") { ",
                type == "void" ? "" : cat("return (", type, ")"), native.body, "; }\n");
  write(cat(text, "#else\n", otherwise, "\n#endif"));
}

// Integers wrap: they are computed without a sign.
std::string Helpers::infix(Op op, DType dtype) {
  const bool is_signed = dtype.is_signed();
  const DType as = is_signed ? unsigned_of(dtype) : dtype;
  const DType one = as.element();
  const std::string t = type(dtype), name = cat(word_of(op), "_", t), with = type(as);
  if (first(name))
    write(fill(
        "INFIX($0, $1, $2, $3, $4, $5, $6)",
        {name, t, lane_type(dtype), with, one.is_int() && one.bits() < 32 ? "u32" : type_name(one),
         std::to_string(padded_lanes(dtype)), symbol_of(op)}));
  return name;
}

std::string Helpers::complement(DType dtype) {
  const std::string t = type(dtype), name = cat("not_", t);
  if (first(name))
    write_both(fill("INLINE $0 $1($0 a) { return ~a; }", {t, name}),
               lanes_text(name, dtype, cat(t, " a"), "~AT(a, l)"));
  return name;
}

std::string Helpers::vector_shift(Op op, DType dtype) {
  const std::string t = type(dtype), u = type(unsigned_of(dtype));
  const std::string name = cat(word_of(op), "_", t);
  const std::string one = scalar_function(op, dtype.element());
  if (!first(name)) return name;
  const std::string last = std::to_string(dtype.bits() - 1);
  const std::string without = each_lane_text(name, dtype, 2, one);
  if (op == Op::Shl || dtype.is_unsigned()) {
    write_both(fill("INLINE $0 $1($0 a, $0 b) {\n"
                    "  $2 inside = ($2)(($2)b <= $3);\n"
                    "  return ($0)((($2)a $4 (($2)b & $3)) & inside);\n"
                    "}",
                    {t, name, u, last, op == Op::Shl ? "<<" : ">>"}),
               without);
  } else {
    write_both(fill("INLINE $0 $1($0 a, $0 b) {\n"
                    "  $0 inside = ($0)(($2)b <= $3);\n"
                    "  return a >> ((b & inside) | ($3 & ~inside));\n"
                    "}",
                    {t, name, u, last}),
               without);
  }
  return name;
}

std::string Helpers::vector_maximum(Op op, DType dtype) {
  const std::string t = type(dtype), wide = type(mask_of(dtype));
  const std::string name = cat(word_of(op), "_", t);
  const std::string one = scalar_function(op, dtype.element());
  if (!first(name)) return name;
  const std::string is_second = op == Op::Max ? "b > a" : "b < a";
  write_both(
      fill("INLINE $0 $1($0 a, $0 b) {\n"
           "  $2 second = ($2)($3);\n"
           "  return ($0)((($2)b & second) | (($2)a & ~second));\n"
           "}",
           {t, name, wide, dtype.is_float() ? cat("(", is_second, ") | (b != b)") : is_second}),
      each_lane_text(name, dtype, 2, one));
  return name;
}

std::string Helpers::vector_function(Op op, DType dtype) {
  if (op == Op::Not) return complement(dtype);
  if (op == Op::Shl || op == Op::Shr) return vector_shift(op, dtype);
  if (op == Op::Max || op == Op::Min) return vector_maximum(op, dtype);
  return each_lane_of(op, dtype, scalar_function(op, dtype.element()));
}

// The processor's instruction, or the function of one lane on all.
std::string Helpers::each_lane_of(Op op, DType dtype, const std::string& one) {
  const std::string t = type(dtype), name = cat(word_of(op), "_", t);
  if (!first(name)) return name;
  const int operands = info(op).arity;
  const std::string parameters =
      cat(t, " a", operands > 1 ? cat(", ", t, " b") : "", operands > 2 ? cat(", ", t, " c") : "");
  write_native(native(op, dtype), name, t, parameters, each_lane_text(name, dtype, operands, one));
  return name;
}

std::string Helpers::comparison(Op op, DType operand) {
  const DType mask = mask_of(operand);
  const std::string t = type(operand), m = type(mask), name = cat(word_of(op), "_", t);
  if (first(name))
    write_both(
        fill("INLINE $0 $1($2 a, $2 b) { return ($0)(a $3 b); }", {m, name, t, symbol_of(op)}),
        lanes_text(name, mask, cat(t, " a, ", t, " b"),
                   cat("-(AT(a, l) ", symbol_of(op), " AT(b, l))")));
  return name;
}

std::string Helpers::where(DType dtype) {
  const DType mask = mask_of(dtype);
  const std::string t = type(dtype), m = type(mask), name = cat("where_", t);
  if (first(name))
    write_both(fill("INLINE $0 $1($2 condition, $0 a, $0 b) {\n"
                    "  return ($0)((($2)a & condition) | (($2)b & ~condition));\n"
                    "}",
                    {t, name, m}),
               lanes_text(name, dtype, cat(m, " condition, ", t, " a, ", t, " b"),
                          "AT(condition, l) ? AT(a, l) : AT(b, l)"));
  return name;
}

std::string Helpers::resize_mask(DType from, DType to) {
  return cast(from, to);
}

std::string Helpers::splat(DType dtype) {
  const std::string t = type(dtype), name = cat("splat_", t);
  if (!first(name)) return name;
  std::string lanes;
  for (int64_t l = 0; l < padded_lanes(dtype); ++l) lanes += l ? ", x" : "x";
  write_both(fill("INLINE $0 $1($2 x) { return ($0){$3}; }", {t, name, lane_type(dtype), lanes}),
             lanes_text(name, dtype, cat(lane_type(dtype), " x"), "x"));
  return name;
}

std::string Helpers::ramp(DType dtype) {
  const std::string one = type_name(dtype.element());
  const std::string as = dtype.bits() == 64 ? "u64" : "u32";
  return by_lane(cat("ramp_", type(dtype)), dtype, cat(one, " first, ", one, " step"),
                 fill("($0)first + ($0)step * ($0)l", {as}));
}

std::string Helpers::lane_range(DType mask) {
  return by_lane(cat("lane_range_", type(mask)), mask, "i64 low, i64 high",
                 "-(low <= l && l < high)");
}

// Halves are combined, down to two lanes.
std::string Helpers::halving(const std::string& name, DType dtype, const std::string& half,
                             const std::string& step, const std::string& last) {
  const std::string t = type(dtype);
  if (dtype.lanes == 2)
    return fill("INLINE $0 $1($2 v) { return $3; }", {type_name(dtype.element()), name, t, last});
  std::string low, high;
  for (int64_t l = 0; l < dtype.lanes / 2; ++l) {
    low += cat(", ", l);
    high += cat(", ", dtype.lanes / 2 + l);
  }
  const std::string one = type_name(dtype.element()),
                    halves = type(dtype.with_lanes(dtype.lanes / 2));
  if (!dialect_.is_gnu)
    return fill(
        "INLINE $0 $1($2 v) {\n"
        "  $3 a, b;\n"
        "  for (int l = 0; l < $6; ++l) {\n"
        "    AT(a, l) = AT(v, l);\n"
        "    AT(b, l) = AT(v, l + $6);\n"
        "  }\n"
        "  return $4($5);\n"
        "}",
        {one, name, t, halves, half, step, std::to_string(dtype.lanes / 2)});
  return fill(
      "INLINE $0 $1($2 v) {\n"
      "#ifdef SHUFFLES\n"
      "  const $3 a = __builtin_shufflevector(v, v$6);\n"
      "  const $3 b = __builtin_shufflevector(v, v$7);\n"
      "#else\n"
      "  $3 a, b;\n"
      "  memcpy(&a, &v, sizeof a);\n"
      "  memcpy(&b, (const char *)&v + sizeof a, sizeof b);\n"
      "#endif\n"
      "  return $4($5);\n"
      "}",
      {one, name, t, halves, half, step, low, high});
}

std::string Helpers::fold(Op op, DType dtype) {
  const std::string name = cat("fold_", word_of(op), "_", type(dtype));
  if (known_.contains(name)) return name;
  const DType half = dtype.with_lanes(dtype.lanes / 2);
  const bool is_last = dtype.lanes == 2;
  const std::string rest = is_last ? "" : fold(op, half);
  const std::string step = is_last ? "" : arithmetic(op, half, "a", "b");
  const std::string last = arithmetic(op, dtype.element(), "AT(v, 0)", "AT(v, 1)");
  const std::string text = halving(name, dtype, rest, step, last);
  if (first(name)) write(text);
  return name;
}

// One lane: 0 or 1 of the last mask's.
std::string Helpers::fold_of_mask(Op op, DType mask) {
  const std::string name = cat("fold_bools_", word_of(op), "_", type(mask));
  if (known_.contains(name)) return name;
  const DType half = mask.with_lanes(mask.lanes / 2);
  const bool is_last = mask.lanes == 2;
  const std::string rest = is_last ? "" : fold_of_mask(op, half);
  const std::string step = is_last ? "" : mask_arithmetic(op, half, "a", "b");
  const std::string last = mask_arithmetic(op, kBool, "(AT(v, 0) & 1)", "(AT(v, 1) & 1)");
  const std::string text = halving(name, mask, rest, step, last);
  if (first(name)) write(text);
  return name;
}

}  // namespace tiny::c

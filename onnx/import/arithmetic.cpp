// Arithmetic, comparisons, logic and choice of several operands; conversions.
#include "base/error.h"
#include "onnx/import/complex.h"
#include "onnx/import/functions.h"
#include "onnx/import/narrow.h"
#include "onnx/import/table.h"
#include "onnx/import/text_function.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"

namespace tiny::onnx {

namespace {

using BinaryFunction = Tensor (*)(const Tensor&, const Tensor&);

template <BinaryFunction kFunction>
Tensors import_binary(Call& c) {
  const Tensor& a = c.in(0);
  return {kFunction(a, aligned(c, a, c.in(1)))};
}

// ONNX divides integers towards zero.
Tensor quotient(const Tensor& a, const Tensor& b) {
  return a.dtype().is_int() ? trunc_div(a, b) : div(a, b);
}

// The result has the base's type whatever the exponent's.
Tensor power(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return pow(a, b);
  if (a.dtype().is_float()) return pow(a, cast(b, a.dtype()));
  if (b.dtype().is_float()) return cast(pow(cast(a, kFloat64), cast(b, kFloat64)), a.dtype());
  return cast(pow(cast(a, kInt64), cast(b, kInt64)), a.dtype());
}

Tensors import_mod(Call& c) {
  const bool truncating = c.flag("fmod", false);
  c.check(truncating || !c.in(0).dtype().is_float(), "floats need the attribute fmod = 1");
  return {truncating ? trunc_mod(c.in(0), c.in(1)) : floor_mod(c.in(0), c.in(1))};
}

// Before version 8 the operands had one shape, which broadcasting leaves as it is.
template <BinaryFunction kFunction>
Tensors import_variadic(Call& c) {
  const Tensors operands = c.all();
  Tensor out = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) out = kFunction(out, operands[i]);
  return {out};
}

Tensors import_mean(Call& c) {
  const Tensor total = import_variadic<add>(c)[0];
  return {total / number(total, static_cast<double>(c.inputs()))};
}

Tensors import_bit_shift(Call& c) {
  const std::string direction = c.text_attr("direction", "");
  c.check(direction == "LEFT" || direction == "RIGHT", "the attribute direction is \"", direction,
          "\" and must be LEFT or RIGHT");
  return {direction == "LEFT" ? shift_left(c.in(0), c.in(1)) : shift_right(c.in(0), c.in(1))};
}

Tensors import_where(Call& c) {
  c.set_carried(0, c.carried(1));
  return {where(c.in(0), c.in(1), c.in(2))};
}

Tensors import_clip_attributes(Call& c) {
  const Tensor& a = c.in(0);
  const auto end = [&](const char* name) {
    return c.has_attribute(name) ? number(a, c.real_attr(name, 0)) : Tensor();
  };
  return {clip(a, end("min"), end("max"))};
}

Tensors import_clip(Call& c) {
  return {clip(c.in(0), c.in_or(1, Tensor()), c.in_or(2, Tensor()))};
}

// ---- Conversions.

// Before version 6 the type was a text.
Tensors import_cast_text(Call& c) {
  const std::string name = c.text_attr("to", "");
  for (int32_t n = 1; tensor_type(n); ++n)
    if (name == tensor_type(n)->name)
      return {cast(c.in(0), dtype_of_tensor_type(n, "the attribute", "to"))};
  c.check(false, "the attribute to is \"", name, "\", which is no type");
  return {};
}

// How what a type of 8 bits or fewer cannot hold is rounded, where the result is none.
constexpr auto kNarrowRounding = {"saturate", "round_mode"};

Tensors converted(Call& c, int32_t narrow, DType dtype) {
  c.pass_over(kNarrowRounding);
  if (narrow == kTextType) {
    c.set_carried(0, narrow);
    return {is_text(c, 0) ? c.in(0) : text_of_numbers(c, widened(c.in(0), c.carried(0)))};
  }
  if (is_text(c, 0)) {
    const Tensor numbers = numbers_of_text(c, c.in(0), narrow == 0 ? dtype : kFloat32);
    c.set_carried(0, narrow);
    return {narrow == 0 ? numbers : narrowed(c, numbers, narrow)};
  }
  const Tensor x = widened(c.in(0), c.carried(0));
  if (narrow == 0) return {cast(x, dtype)};
  c.set_carried(0, narrow);
  return {narrowed(c, x, narrow)};
}

Tensors import_cast(Call& c) {
  const int64_t type = c.type_attr("to", 0);
  if (is_complex(type)) c.unsupported("it casts to no ", tensor_type_name(type));
  const TensorTypeInfo* info = tensor_type(type);
  if (info && (is_carried(*info) || type == kTextType)) return converted(c, info->number, kVoid);
  return converted(c, 0, c.dtype_attr("to"));
}

Tensors import_cast_like(Call& c) {
  return converted(c, c.carried(1), c.in(1).dtype());
}

// The bits of an element, as its type says or, where the tensor carries another, that.
int64_t element_bits(const Tensor& x, int32_t carried) {
  return carried == 0 ? x.dtype().bits() : tensor_type(carried)->bits;
}

Tensors import_bit_cast(Call& c) {
  const int64_t type = c.type_attr("to", 0);
  const TensorTypeInfo* info = tensor_type(type);
  const bool is_carried_there = info && is_carried(*info);
  const int64_t from_bits = element_bits(c.in(0), c.carried(0));
  const int64_t to_bits = is_carried_there ? info->bits : c.dtype_attr("to").bits();
  c.check(from_bits == to_bits, "from elements of ", from_bits, " bits to such of ", to_bits);
  if (is_carried_there) c.set_carried(0, info->number);
  if (is_carried_there && c.carried(0) == info->number) return {c.in(0)};
  const Tensor bits = is_complex(c.carried(0)) ? bits_of_complex(c.in(0)) : c.in(0);
  if (is_complex(type)) return {complex_of_bits(bits)};
  if (is_carried_there) return {narrow_of_bits(bits, info->number)};
  const DType to = c.dtype_attr("to");
  // A bool is a byte that is 0 or 1.
  if (bits.dtype().is_bool() && to.bits() == 8) return {cast(bits, to)};
  return {bitcast(bits, to)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Add",            1,  kNow, import_binary<add>},
    {"Sub",            1,  kNow, import_binary<sub>},
    {"Mul",            1,  kNow, import_binary<mul>},
    {"Div",            1,  kNow, import_binary<quotient>},
    {"Pow",            1,  kNow, import_binary<power>},
    {"Mod",            10, kNow, import_mod},
    {"Sum",            1,  kNow, import_variadic<add>},
    {"Mean",           1,  kNow, import_mean},
    {"Max",            1,  kNow, import_variadic<maximum>},
    {"Min",            1,  kNow, import_variadic<minimum>},
    {"And",            1,  kNow, import_binary<bit_and>},
    {"Or",             1,  kNow, import_binary<bit_or>},
    {"Xor",            1,  kNow, import_binary<bit_xor>},
    {"BitwiseAnd",     18, kNow, import_binary<bit_and>},
    {"BitwiseOr",      18, kNow, import_binary<bit_or>},
    {"BitwiseXor",     18, kNow, import_binary<bit_xor>},
    {"BitShift",       11, kNow, import_bit_shift},
    {"Equal",          1,  kNow, import_binary<equal>},
    {"Less",           1,  kNow, import_binary<less>},
    {"LessOrEqual",    12, kNow, import_binary<less_equal>},
    {"Greater",        1,  kNow, import_binary<greater>},
    {"GreaterOrEqual", 12, kNow, import_binary<greater_equal>},
    {"Where",          9,  kNow, import_where},
    {"Clip",           1,  10,   import_clip_attributes},
    {"Clip",           11, kNow, import_clip},
    {"Cast",           1,  5,    import_cast_text},
    {"Cast",           6,  kNow, import_cast},
    {"CastLike",       15, kNow, import_cast_like},
    {"BitCast",        26, kNow, import_bit_cast},
};
// clang-format on

}  // namespace

std::span<const Row> arithmetic_rows() {
  return kRows;
}

}  // namespace tiny::onnx

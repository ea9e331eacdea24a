// Rows of operators of elements: arithmetic, comparisons, functions of one number.
#include <ATen/native/BinaryOps.h>
#include <ATen/ops/result_type.h>
#include <torch/csrc/api/include/torch/version.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "pointwise.h"

namespace tiny_torch {

namespace {

using V = Value;
using Given = const Operands&;

constexpr double kLn2 = std::numbers::ln2;
constexpr double kLn10 = std::numbers::ln10;

bool is_bool(Given o) {
  return o.dtype == TINY_BOOL;
}
V nan_of(Given o) {
  return constant(o.dtype, std::numeric_limits<double>::quiet_NaN());
}
V truth(const V& a) {
  return cast(a, TINY_BOOL);
}
V is_nan(const V& a) {
  return unary(TINY_IS_NAN, a);
}
V negated(const V& a) {
  return unary(TINY_NOT, a);
}
V either(const V& a, const V& b) {
  return binary(TINY_OR, a, b);
}

using Tensors = std::span<const at::Tensor>;
// The factor of a sum's second operand.
void refuse_factor(Tensors given, Given o) {
  const at::Scalar factor = o.parameters[0]->toScalar();
  if (factor.isIntegral(/*includeBool=*/false)) return;  // most often 1: right for every dtype
  at::native::alpha_check(at::result_type(given[0], given[1]), factor);
}
void refuse_difference(Tensors given, Given o) {
  at::native::sub_check(given[0], given[1]);
  refuse_factor(given, o);
}
void refuse_negated_bool(Tensors given, Given) {
  constexpr bool kIsUnimplemented = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14;
  if (given[0].scalar_type() != at::kBool) return;
  const char* const words =
      "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert "
      "a mask, use the `~` or `logical_not()` operator instead.";
  if (kIsUnimplemented) C10_THROW_ERROR(NotImplementedError, words);  // what PyTorch throws since
  C10_THROW_ERROR(Error, words);
}
void refuse_condition(Tensors given, Given) {
  const at::ScalarType type = given[0].scalar_type();
  TORCH_CHECK(type == at::kBool || type == at::kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ",
              type);
}

V scaled(Given o, const V& a, size_t parameter) {
  if (o.is_one(parameter)) return a;
  return is_bool(o) ? logical_and(a, o.number(parameter)) : a * o.number(parameter);
}
V add(Given o) {
  const V second = scaled(o, o[1], 0);
  return is_bool(o) ? either(o[0], second) : o[0] + second;
}
V sub(Given o) {
  return o[0] - scaled(o, o[1], 0);
}
V rsub(Given o) {
  return o[1] - scaled(o, o[0], 0);
}
V mul(Given o) {
  return is_bool(o) ? logical_and(o[0], o[1]) : o[0] * o[1];
}
V floor_div(const V& a, const V& b) {
  return binary(TINY_FLOOR_DIV, a, b);
}
V div_mode(Given o) {
  if (!o.has(0)) return o[0] / o[1];
  if (o.text(0) == "floor") return floor_div(o[0], o[1]);
  return o[0].is_float() ? unary(TINY_TRUNC, o[0] / o[1]) : binary(TINY_TRUNC_DIV, o[0], o[1]);
}

template <tiny_compare_op op>
V comparison(Given o) {
  return compare(op, o[0], o[1]);
}
template <tiny_unary_op op>
V function(Given o) {
  return unary(op, o[0]);
}
template <tiny_binary_op op>
V pair(Given o) {
  return binary(op, o[0], o[1]);
}
// A function that only ONNX's table has, of at least 32 bits.
V named(const char* name, Given o) {
  const bool narrow = o.dtype == TINY_FLOAT16 || o.dtype == TINY_BFLOAT16;
  return onnx(name, {narrow ? cast(o[0], TINY_FLOAT32) : o[0]});
}
V whole(Given o, tiny_unary_op op) {
  return o[0].is_float() ? unary(op, o[0]) : o[0];
}

V greater(const V& a, const V& b, bool is_bool) {
  return is_bool ? either(a, b) : binary(TINY_MAX, a, b);
}
V less(const V& a, const V& b, bool is_bool) {
  return is_bool ? logical_and(a, b) : binary(TINY_MIN, a, b);
}
V clamp(Given o) {
  TORCH_CHECK(o[1] || (o.x.size() > 2 && o[2]),
              "torch.clamp: At least one of 'min' or 'max' must not be None");
  V value = o[0];
  if (o[1]) value = greater(value, o[1], is_bool(o));
  if (o.x.size() > 2 && o[2]) value = less(value, o[2], is_bool(o));
  return value;
}
// What is a NaN counts for nothing.
V without_nan(Given o, tiny_binary_op op) {
  if (!o[0].is_float()) return binary(op, o[0], o[1]);
  return where(is_nan(o[0]), o[1], where(is_nan(o[1]), o[0], binary(op, o[0], o[1])));
}
V power(Given o) {
  return is_bool(o) ? either(o[0], negated(o[1])) : binary(TINY_POW, o[0], o[1]);
}
V power_of_number(Given o) {
  return power(o);
}
V signed_bit(const V& a) {
  if (!a.is_float()) return compare(TINY_LT, a, 0);
  // 1 / x of -0 is below 0 too.
  return either(compare(TINY_LT, a, 0),
                logical_and(compare(TINY_EQ, a, 0), compare(TINY_LT, 1.0 / a, 0)));
}
V copysign(Given o) {
  const V size = unary(TINY_ABS, o[0]);
  return where(signed_bit(o[1]), -size, size);
}
V atan2(Given o) {
  const V y = o[0];
  const V x = o[1];
  const V angle = onnx("Atan", {y / x});
  const V side = where(signed_bit(y), constant(o.dtype, -std::numbers::pi),
                       constant(o.dtype, std::numbers::pi));
  const V turned = where(signed_bit(x), angle + side, angle);
  const V both_zero = logical_and(compare(TINY_EQ, x, 0), compare(TINY_EQ, y, 0));
  const V infinite = logical_and(compare(TINY_EQ, unary(TINY_ABS, x), INFINITY),
                                 compare(TINY_EQ, unary(TINY_ABS, y), INFINITY));
  const V at_zero = where(signed_bit(x), side, y);
  const V diagonal = where(signed_bit(x), side * 0.75, side * 0.25);
  return where(both_zero, at_zero, where(infinite, diagonal, turned));
}
V log_add(Given o, double base) {
  const V top = binary(TINY_MAX, o[0], o[1]);
  const V apart = unary(TINY_ABS, o[0] - o[1]);
  const V more = unary(TINY_LOG1P, unary(TINY_EXP, apart * -base)) * (1 / base);
  return where(compare(TINY_EQ, unary(TINY_ABS, top), INFINITY),
               where(compare(TINY_EQ, o[0], o[1]), top, top + more), top + more);
}
V xlogy(Given o) {
  const V product = o[0] * unary(TINY_LOG, o[1]);
  return where(is_nan(o[1]), nan_of(o),
               where(compare(TINY_EQ, o[0], 0), constant(o.dtype, 0), product));
}
V sinc(Given o) {
  const V x = o[0] * std::numbers::pi;
  return where(compare(TINY_EQ, o[0], 0), constant(o.dtype, 1), unary(TINY_SIN, x) / x);
}
V heaviside(Given o) {
  const V step = where(compare(TINY_EQ, o[0], 0), o[1], cast(compare(TINY_GT, o[0], 0), o.dtype));
  return o[0].is_float() ? where(is_nan(o[0]), nan_of(o), step) : step;
}
V lerp(const V& from, const V& to, const V& weight) {
  const V ahead = from + weight * (to - from);
  const V back = to - (to - from) * (1.0 - weight);
  return where(compare(TINY_LT, unary(TINY_ABS, weight), 0.5), ahead, back);
}
V add_quotient(Given o) {
  TORCH_CHECK(o.dtype >= TINY_FLOAT16,
              "Integer division with addcdiv is no longer supported, and in a "
              "future release addcdiv will perform a true division of tensor1 and tensor2.");
  return o[0] + scaled(o, o[1] / o[2], 0);
}
V remainder(Given o) {
  return binary(TINY_FLOOR_MOD, o[0], o[1]);
}
V logical(const V& a, const V& b, tiny_binary_op op) {
  return binary(op, truth(a), truth(b));
}

constexpr PointwiseRow kArithmetic[] = {
    {"add.Tensor", Types::Same, add, refuse_factor},
    {"sub.Tensor", Types::Same, sub, refuse_difference},
    {"rsub.Tensor", Types::Same, rsub, refuse_difference},
    {"mul.Tensor", Types::Same, mul},
    {"div.Tensor", Types::Float, [](Given o) { return o[0] / o[1]; }},
    {"div.Tensor_mode", Types::Division, div_mode},
    {"floor_divide", Types::Same, pair<TINY_FLOOR_DIV>},
    {"remainder.Tensor", Types::Same, remainder},
    {"fmod.Tensor", Types::Same, pair<TINY_TRUNC_MOD>},
    {"pow.Tensor_Tensor", Types::Same, power},
    {"pow.Tensor_Scalar", Types::Same, power_of_number},
    {"pow.Scalar", Types::Same, power_of_number},
    {"maximum", Types::Same, [](Given o) { return greater(o[0], o[1], is_bool(o)); }},
    {"minimum", Types::Same, [](Given o) { return less(o[0], o[1], is_bool(o)); }},
    {"fmax", Types::Same, [](Given o) { return without_nan(o, TINY_MAX); }},
    {"fmin", Types::Same, [](Given o) { return without_nan(o, TINY_MIN); }},
    {"clamp", Types::Same, clamp},
    {"clamp.Tensor", Types::Same, clamp},
    {"clamp_min", Types::Same, clamp},
    {"clamp_min.Tensor", Types::Same, clamp},
    {"clamp_max", Types::Same, [](Given o) { return less(o[0], o[1], is_bool(o)); }},
    {"clamp_max.Tensor", Types::Same, [](Given o) { return less(o[0], o[1], is_bool(o)); }},
    {"copysign.Tensor", Types::Float, copysign},
    {"heaviside", Types::Same, heaviside},
    {"where.self", Types::Condition, [](Given o) { return where(truth(o[0]), o[1], o[2]); },
     refuse_condition},
};

constexpr PointwiseRow kLogic[] = {
    {"eq.Tensor", Types::Compare, comparison<TINY_EQ>},
    {"eq.Scalar", Types::Compare, comparison<TINY_EQ>},
    {"ne.Tensor", Types::Compare, comparison<TINY_NE>},
    {"ne.Scalar", Types::Compare, comparison<TINY_NE>},
    {"lt.Tensor", Types::Compare, comparison<TINY_LT>},
    {"lt.Scalar", Types::Compare, comparison<TINY_LT>},
    {"le.Tensor", Types::Compare, comparison<TINY_LE>},
    {"le.Scalar", Types::Compare, comparison<TINY_LE>},
    {"gt.Tensor", Types::Compare, comparison<TINY_GT>},
    {"gt.Scalar", Types::Compare, comparison<TINY_GT>},
    {"ge.Tensor", Types::Compare, comparison<TINY_GE>},
    {"ge.Scalar", Types::Compare, comparison<TINY_GE>},
    {"logical_and", Types::Own, [](Given o) { return logical(o[0], o[1], TINY_AND); }},
    {"logical_or", Types::Own, [](Given o) { return logical(o[0], o[1], TINY_OR); }},
    {"logical_xor", Types::Own, [](Given o) { return logical(o[0], o[1], TINY_XOR); }},
    {"logical_not", Types::Own, [](Given o) { return negated(truth(o[0])); }},
    {"isnan", Types::Own, [](Given o) { return compare(TINY_NE, o[0], o[0]); }},
    {"isposinf", Types::Own,
     [](Given o) {
       return o[0].is_float() ? compare(TINY_EQ, o[0], INFINITY) : full(TINY_BOOL, o[0].shape(), 0);
     }},
    {"isneginf", Types::Own,
     [](Given o) {
       return o[0].is_float() ? compare(TINY_EQ, o[0], -INFINITY)
                              : full(TINY_BOOL, o[0].shape(), 0);
     }},
    {"signbit", Types::Own,
     [](Given o) { return is_bool(o) ? full(TINY_BOOL, o[0].shape(), 0) : signed_bit(o[0]); }},
    {"bitwise_not", Types::Same, function<TINY_NOT>},
    {"bitwise_and.Tensor", Types::Same, pair<TINY_AND>},
    {"bitwise_or.Tensor", Types::Same, pair<TINY_OR>},
    {"bitwise_xor.Tensor", Types::Same, pair<TINY_XOR>},
    {"bitwise_left_shift.Tensor", Types::Same, pair<TINY_SHL>},
    {"bitwise_right_shift.Tensor", Types::Same, pair<TINY_SHR>},
    {"__lshift__.Tensor", Types::Same, pair<TINY_SHL>},
    {"__lshift__.Scalar", Types::Same, pair<TINY_SHL>},
    {"__ilshift__.Tensor", Types::Same, pair<TINY_SHL>},
    {"__ilshift__.Scalar", Types::Same, pair<TINY_SHL>},
    {"__rshift__.Tensor", Types::Same, pair<TINY_SHR>},
    {"__rshift__.Scalar", Types::Same, pair<TINY_SHR>},
    {"__irshift__.Tensor", Types::Same, pair<TINY_SHR>},
    {"__irshift__.Scalar", Types::Same, pair<TINY_SHR>},
};

constexpr PointwiseRow kFunctions[] = {
    {"abs", Types::Same, [](Given o) { return is_bool(o) ? o[0] : unary(TINY_ABS, o[0]); }},
    {"neg", Types::Same, function<TINY_NEG>, refuse_negated_bool},
    {"sign", Types::Same,
     [](Given o) {
       return is_bool(o) ? o[0]
                         : where(compare(TINY_NE, o[0], o[0]), constant(o.dtype, 0),
                                 unary(TINY_SIGN, o[0]));
     }},
    {"sgn", Types::Same,
     [](Given o) {
       return is_bool(o) ? o[0]
                         : where(compare(TINY_NE, o[0], o[0]), constant(o.dtype, 0),
                                 unary(TINY_SIGN, o[0]));
     }},
    {"floor", Types::Same, [](Given o) { return whole(o, TINY_FLOOR); }},
    {"ceil", Types::Same, [](Given o) { return whole(o, TINY_CEIL); }},
    {"trunc", Types::Same, [](Given o) { return whole(o, TINY_TRUNC); }},
    {"round", Types::Same, [](Given o) { return whole(o, TINY_ROUND); }},
    {"frac", Types::Same, [](Given o) { return o[0] - unary(TINY_TRUNC, o[0]); }},
    {"relu", Types::Same, function<TINY_RELU>},
    {"sqrt", Types::Float, function<TINY_SQRT>},
    {"rsqrt", Types::Float, function<TINY_RSQRT>},
    {"reciprocal", Types::Float, [](Given o) { return 1.0 / o[0]; }},
    {"exp", Types::Float, function<TINY_EXP>},
    {"exp2", Types::Float, [](Given o) { return binary(TINY_POW, constant(o.dtype, 2), o[0]); }},
    {"expm1", Types::Float, function<TINY_EXPM1>},
    {"log", Types::Float, function<TINY_LOG>},
    {"log1p", Types::Float, function<TINY_LOG1P>},
    {"sin", Types::Float, function<TINY_SIN>},
    {"cos", Types::Float, function<TINY_COS>},
    {"tanh", Types::Float, function<TINY_TANH>},
    {"sinh", Types::Float, [](Given o) { return named("Sinh", o); }},
    {"cosh", Types::Float, [](Given o) { return named("Cosh", o); }},
    {"asin", Types::Float, [](Given o) { return named("Asin", o); }},
    {"acos", Types::Float, [](Given o) { return named("Acos", o); }},
    {"atan", Types::Float, [](Given o) { return named("Atan", o); }},
    {"asinh", Types::Float, [](Given o) { return named("Asinh", o); }},
    {"acosh", Types::Float, [](Given o) { return named("Acosh", o); }},
    {"atanh", Types::Float, [](Given o) { return named("Atanh", o); }},
    {"erf", Types::Float, function<TINY_ERF>},
};

// What is calculated in several steps.
constexpr PointwiseRow kCompound[] = {
    {"atan2", Types::Float, atan2},
    {"hypot", Types::Same, [](Given o) { return unary(TINY_SQRT, o[0] * o[0] + o[1] * o[1]); }},
    {"logaddexp", Types::Same, [](Given o) { return log_add(o, 1); }},
    {"logaddexp2", Types::Same, [](Given o) { return log_add(o, kLn2); }},
    {"xlogy.Tensor", Types::Float, xlogy},
    {"addcmul", Types::Same, [](Given o) { return o[0] + scaled(o, o[1] * o[2], 0); }},
    {"addcdiv", Types::Same, add_quotient},
    {"lerp.Tensor", Types::Same, [](Given o) { return lerp(o[0], o[1], o[2]); }},
    {"lerp.Scalar", Types::Same, [](Given o) { return lerp(o[0], o[1], o.number(0)); }},
    {"log2", Types::Float, [](Given o) { return unary(TINY_LOG, o[0]) * (1 / kLn2); }},
    {"log10", Types::Float, [](Given o) { return unary(TINY_LOG, o[0]) * (1 / kLn10); }},
    {"tan", Types::Float, [](Given o) { return unary(TINY_SIN, o[0]) / unary(TINY_COS, o[0]); }},
    {"sigmoid", Types::Float, function<TINY_SIGMOID>},
    {"sinc", Types::Float, sinc},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_pointwise(m, kArithmetic, Steps::One);
  add_pointwise(m, kLogic, Steps::One);
  add_pointwise(m, kFunctions, Steps::One);
  add_pointwise(m, kCompound, Steps::Several);
}

}  // namespace

}  // namespace tiny_torch

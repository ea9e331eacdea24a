// Rows of activations and of their slopes.
#include <cmath>
#include <limits>
#include <numbers>

#include "pointwise.h"

namespace tiny_torch {

namespace {

using V = Value;
using Given = const Operands&;

V zero(Given o) {
  return constant(o.dtype, 0);
}

// The slope of a function of one value, by the engine's own rules, times `grad`.
template <class Function>
V slope(const V& x, const V& grad, const Function& function) {
  const V leaf = detach(x);
  return gradients(function(leaf), grad, {&leaf, 1})[0];
}

V gelu(const V& x, bool by_tanh) {
  tiny_tensor* out = nullptr;
  check(tiny_gelu(x.handle(), by_tanh ? TINY_FLAG_APPROXIMATE : 0, &out));
  return V(out);
}
V elu(const V& x, const V& alpha, const V& scale, const V& input_scale) {
  return where(compare(TINY_GT, x, 0), x * scale,
               unary(TINY_EXPM1, x * input_scale) * alpha * scale);
}
V elu_backward(Given o) {  // grad, self or result; alpha, scale, input_scale, is_result
  const V grad = o[0];
  const V x = o[1];
  const V alpha = o.number(0);
  const V scale = o.number(1);
  const V inner = o.number(2);
  const V below = o.flag(3) ? grad * inner * (x + alpha * scale)
                            : grad * inner * scale * alpha * unary(TINY_EXP, x * inner);
  return where(compare(TINY_LE, x, 0), below, grad * scale);
}
V softplus(Given o) {  // beta, threshold
  const V scaled = o[0] * o.number(0);
  return where(compare(TINY_GT, scaled, o.number(1)), o[0],
               unary(TINY_LOG1P, unary(TINY_EXP, scaled)) / o.number(0));
}
V softplus_backward(Given o) {
  const V scaled = o[1] * o.number(0);
  return where(compare(TINY_GT, scaled, o.number(1)), o[0], o[0] * unary(TINY_SIGMOID, scaled));
}
V clipped(const V& x, const V& low, const V& high) {
  return binary(TINY_MIN, binary(TINY_MAX, x, low), high);
}
V between(const V& x, const V& low, const V& high) {
  return logical_and(compare(TINY_GT, x, low), compare(TINY_LT, x, high));
}
V hardtanh_backward(Given o) {
  return where(between(o[1], o.number(0), o.number(1)), o[0], zero(o));
}
V gate(const V& x) {
  return clipped(x + 3.0, constant(x.dtype(), 0), constant(x.dtype(), 6)) / 6.0;
}
V hardswish_backward(Given o) {
  const V inside = o[0] * (o[1] / 3.0 + 0.5);
  return where(compare(TINY_LE, o[1], -3), zero(o), where(compare(TINY_LT, o[1], 3), inside, o[0]));
}
V hardsigmoid_backward(Given o) {
  return where(between(o[1], constant(o.dtype, -3), constant(o.dtype, 3)), o[0] / 6.0, zero(o));
}
V mish(const V& x) {
  return x * unary(TINY_TANH, unary(TINY_SOFTPLUS, x));
}
V silu_backward(Given o) {
  const V s = unary(TINY_SIGMOID, o[1]);
  return o[0] * s * (o[1] * (1.0 - s) + 1.0);
}
V inside_threshold(Given o, const V& inside) {  // lambd
  const V size = unary(TINY_ABS, o[o.x.size() - 1]);
  return where(compare(TINY_GT, size, o.number(0)), inside, zero(o));
}
V softshrink(Given o) {
  const V edge = o.number(0);
  const V x = o[0];
  const V moved = where(compare(TINY_GT, x, edge), x - edge,
                        where(compare(TINY_LT, x, -edge), x + edge, zero(o)));
  return where(compare(TINY_NE, x, x), x, moved);
}
V hardshrink(Given o) {
  const V x = o[0];
  const V edge = o.number(0);
  const V in = logical_and(compare(TINY_GE, x, -edge), compare(TINY_LE, x, edge));
  return where(in, zero(o), x);
}
V logit(const V& x) {
  return unary(TINY_LOG, x / (1.0 - x));
}

constexpr PointwiseRow kActivations[] = {
    {"gelu", Types::Same, [](Given o) { return gelu(o[0], o.text(0) == "tanh"); },
     [](std::span<const at::Tensor>, Given o) {
       TORCH_CHECK(o.text(0) == "tanh" || o.text(0) == "none",
                   "approximate argument must be either none or tanh.");
     }},
    {"silu", Types::Same, [](Given o) { return unary(TINY_SILU, o[0]); }},
    {"mish", Types::Same, [](Given o) { return mish(o[0]); }},
    {"elu", Types::Same, [](Given o) { return elu(o[0], o.number(0), o.number(1), o.number(2)); }},
    {"leaky_relu", Types::Same,
     [](Given o) { return where(compare(TINY_GT, o[0], 0), o[0], o[0] * o.number(0)); }},
    {"softplus", Types::Same, softplus},
    {"threshold", Types::Same,
     [](Given o) { return where(compare(TINY_LE, o[0], o.number(0)), o.number(1), o[0]); }},
    {"hardtanh", Types::Same, [](Given o) { return clipped(o[0], o.number(0), o.number(1)); }},
    {"hardswish", Types::Same, [](Given o) { return o[0] * gate(o[0]); }},
    {"hardsigmoid", Types::Same, [](Given o) { return gate(o[0]); }},
    {"softshrink", Types::Same, softshrink,
     [](std::span<const at::Tensor> given, Given o) {
       constexpr double kMost = std::numeric_limits<float>::max();
       TORCH_CHECK(o.real(0) >= 0 && o.real(0) <= kMost, "lambda must be in range [0, ", kMost,
                   "] for input dtype ", given[0].scalar_type(), ", but found ", o.real(0));
     }},
    {"hardshrink", Types::Same, hardshrink},
};

// grad, then what was kept of the forward pass.
constexpr PointwiseRow kSlopes[] = {
    {"gelu_backward", Types::Same,
     [](Given o) {
       const bool by_tanh = o.text(0) == "tanh";
       return slope(o[1], o[0], [&](const V& x) { return gelu(x, by_tanh); });
     }},
    {"silu_backward", Types::Same, silu_backward},
    {"mish_backward", Types::Same, [](Given o) { return slope(o[1], o[0], mish); }},
    {"elu_backward", Types::Same, elu_backward},
    {"leaky_relu_backward", Types::Same,
     [](Given o) { return where(compare(TINY_GT, o[1], 0), o[0], o[0] * o.number(0)); }},
    {"softplus_backward", Types::Same, softplus_backward},
    {"threshold_backward", Types::Same,
     [](Given o) { return where(compare(TINY_LE, o[1], o.number(0)), zero(o), o[0]); }},
    {"hardtanh_backward", Types::Same, hardtanh_backward},
    {"hardswish_backward", Types::Same, hardswish_backward},
    {"hardsigmoid_backward", Types::Same, hardsigmoid_backward},
    {"softshrink_backward", Types::Same, [](Given o) { return inside_threshold(o, o[0]); }},
    {"hardshrink_backward", Types::Same, [](Given o) { return inside_threshold(o, o[0]); }},
    {"tanh_backward", Types::Same, [](Given o) { return o[0] * (1.0 - o[1] * o[1]); }},
    {"sigmoid_backward", Types::Same, [](Given o) { return o[0] * o[1] * (1.0 - o[1]); }},
};

V logit_of(Given o) {
  if (!o.has(0)) return logit(o[0]);
  const V edge = o.number(0);
  return logit(clipped(o[0], edge, 1.0 - edge));
}
V logit_backward(Given o) {
  const V x = o[1];
  const V inner = o[0] / (x * (1.0 - x));
  if (!o.has(0)) {
    const V in = logical_and(compare(TINY_GE, x, 0), compare(TINY_LE, x, 1));
    return where(in, inner, constant(o.dtype, NAN));
  }
  const V edge = o.number(0);
  return where(logical_and(compare(TINY_GE, x, edge), compare(TINY_LE, x, 1.0 - edge)), inner,
               zero(o));
}

constexpr PointwiseRow kLogits[] = {
    {"logit", Types::Float, logit_of},
    {"logit_backward", Types::Same, logit_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_pointwise(m, kActivations, Steps::Several);
  add_pointwise(m, kSlopes, Steps::Several);
  add_pointwise(m, kLogits, Steps::Several);
}

}  // namespace

}  // namespace tiny_torch

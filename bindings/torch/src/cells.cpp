// Rows of recurrent cells, of a loss, and of optimisers' steps.
#include <ATen/core/Tensor.h>
#include <ATen/ops/view_as_real.h>

#include <cmath>
#include <numeric>
#include <string_view>

#include "call.h"
#include "computed.h"

namespace tiny_torch {

namespace {

using V = Value;

V sigmoid(const V& a) {
  return unary(TINY_SIGMOID, a);
}
V tanh_of(const V& a) {
  return unary(TINY_TANH, a);
}
// Part `index` of `count` equal ones of the second axis.
V part(const V& a, int64_t index, int64_t count) {
  const int64_t width = a.size(1) / count;
  return slice_axis(a, 1, index * width, (index + 1) * width);
}
V with_bias(const Call& c, size_t gates, size_t bias) {
  return c.has(bias) ? c.value(gates) + c.value(bias) : c.value(gates);
}
V sum_of_rows(const V& a) {
  return reduce(TINY_SUM, a, Sizes{0}, false);
}

// Gates: input, forget, cell, output.
void lstm_cell(Call& c) {  // input_gates, hidden_gates, cx, input_bias, hidden_bias
  const V gates = with_bias(c, 0, 3) + with_bias(c, 1, 4);
  const V input = sigmoid(part(gates, 0, 4));
  const V forget = sigmoid(part(gates, 1, 4));
  const V cell = tanh_of(part(gates, 2, 4));
  const V output = sigmoid(part(gates, 3, 4));
  const V cy = forget * c.value(2) + input * cell;
  const V workspace[] = {input, forget, cell, output};
  c.give(0, output * tanh_of(cy));
  c.give(1, cy);
  c.give(2, concat(workspace, 1));
}
void lstm_cell_backward(Call& c) {  // grad_hy, grad_cy, cx, cy, workspace, has_bias
  if (!c.has(0) && !c.has(1)) return;
  const V workspace = c.value(4);
  const V input = part(workspace, 0, 4);
  const V forget = part(workspace, 1, 4);
  const V cell = part(workspace, 2, 4);
  const V output = part(workspace, 3, 4);
  const V squashed = tanh_of(c.value(3));
  const V none = full(workspace.dtype(), squashed.shape(), 0);
  const V grad_hy = c.has(0) ? c.value(0) : none;
  V grad_cell = grad_hy * output * (1.0 - squashed * squashed);
  if (c.has(1)) grad_cell = grad_cell + c.value(1);
  const V gates[] = {
      grad_cell * cell * input * (1.0 - input), grad_cell * c.value(2) * forget * (1.0 - forget),
      grad_cell * input * (1.0 - cell * cell), grad_hy * squashed * output * (1.0 - output)};
  const V grad_gates = concat(gates, 1);
  c.give(0, grad_gates);
  c.give(1, grad_cell * forget);
  if (c.flag(5)) c.give(2, sum_of_rows(grad_gates));
}
// Gates: reset, update, new.
void gru_cell(Call& c) {  // input_gates, hidden_gates, hx, input_bias, hidden_bias
  const V from_input = with_bias(c, 0, 3);
  const V from_state = with_bias(c, 1, 4);
  const V state = c.value(2);
  const V reset = sigmoid(part(from_input, 0, 3) + part(from_state, 0, 3));
  const V update = sigmoid(part(from_input, 1, 3) + part(from_state, 1, 3));
  const V hidden = part(from_state, 2, 3);
  const V fresh_state = tanh_of(part(from_input, 2, 3) + reset * hidden);
  const V workspace[] = {reset, update, fresh_state, state, hidden};
  c.give(0, fresh_state + update * (state - fresh_state));
  c.give(1, concat(workspace, 1));
}
void gru_cell_backward(Call& c) {  // grad_hy, workspace, has_bias
  const V grad = c.value(0);
  const V workspace = c.value(1);
  const V reset = part(workspace, 0, 5);
  const V update = part(workspace, 1, 5);
  const V fresh_state = part(workspace, 2, 5);
  const V grad_update = grad * (part(workspace, 3, 5) - fresh_state) * update * (1.0 - update);
  const V grad_new = grad * (1.0 - update) * (1.0 - fresh_state * fresh_state);
  const V grad_reset = grad_new * part(workspace, 4, 5) * reset * (1.0 - reset);
  const V from_input[] = {grad_reset, grad_update, grad_new};
  const V from_state[] = {grad_reset, grad_update, grad_new * reset};
  const V input_gates = concat(from_input, 1);
  const V state_gates = concat(from_state, 1);
  c.give(0, input_gates);
  c.give(1, state_gates);
  c.give(2, grad * update);
  if (!c.flag(2)) return;
  c.give(3, sum_of_rows(input_gates));
  c.give(4, sum_of_rows(state_gates));
}

// ---- Classes ------------------------------------------------------------------------------------

// The classes of targets in a column, and what each target weighs: 0 of those that are ignored.
struct Targets {
  V classes, weights;
  V counts;  // which are not ignored
};
Targets targets_of(const Call& c, const V& logs, size_t target, size_t weight, int64_t ignored) {
  const V given = cast(c.value(target), TINY_INT64);
  const V counts = compare(TINY_NE, given, integer(TINY_INT64, ignored));
  const V classes = where(counts, given, constant(TINY_INT64, 0));
  const V weights = c.has(weight) ? gather(c.value(weight), classes, 0) : constant(logs.dtype(), 1);
  return {unsqueeze(classes, -1), where(counts, weights, constant(logs.dtype(), 0)), counts};
}
enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };
void check_classes(const at::Tensor& target, int64_t classes, int64_t ignored) {
  const auto beyond = index_beyond(target, 0, classes, ignored);
  TORCH_CHECK_INDEX(!beyond, "Target ", *beyond, " is out of bounds.");
}
void class_loss(Call& c) {  // self, target, weight, reduction, ignore_index
  const V logs = c.value(0);
  check_classes(c.tensor(1), logs.size(-1), c.integer(4));
  const Targets targets = targets_of(c, logs, 1, 2, c.integer(4));
  const V chosen = squeeze(take_along_axis(logs, targets.classes, -1), -1);
  const V losses = -(where(targets.counts, chosen, constant(logs.dtype(), 0)) * targets.weights);
  Sizes axes(static_cast<size_t>(losses.rank()));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  const V total = reduce(TINY_SUM, targets.weights, axes, false);
  const bool is_reduced = c.integer(3) != kNone;
  const V sum = is_reduced ? reduce(TINY_SUM, losses, axes, false) : losses;
  c.give(0, c.integer(3) == kMean ? sum / total : sum);
  c.give(1, is_reduced ? total : constant(logs.dtype(), 0));
}
void class_loss_backward(
    Call& c) {  // grad, self, target, weight, reduction, ignore_index, total_weight
  const V logs = c.value(1);
  const Targets targets = targets_of(c, logs, 2, 3, c.integer(5));
  V grad = c.value(0);
  if (c.integer(4) == kMean) grad = grad / c.value(6);
  // What is ignored gets nothing, also of a mean over no target, whose slope is not a number.
  const V shares =
      unsqueeze(where(targets.counts, targets.weights * -grad, constant(logs.dtype(), 0)), -1);
  const V chosen = compare(TINY_EQ, arange(TINY_INT64, logs.size(-1)), targets.classes);
  c.give(0, where(chosen, shares, constant(logs.dtype(), 0)));
}
void log_sigmoid(Call& c) {
  const V x = c.value(0);
  const int64_t none = 0;
  c.give(0, -unary(TINY_SOFTPLUS, -x));
  c.give(1, full(x.dtype(), {&none, 1}, 0));
}

void log_sigmoid_backward(Call& c) {  // grad, self, buffer
  const V x = c.value(1);
  c.give(0, c.value(0) * sigmoid(-x));
}

// ---- Optimisers ---------------------------------------------------------------------------------

std::vector<at::Tensor> list(const Call& c, size_t index) {
  return c.argument(index).toTensorVector();
}
// A float, or a tensor of one element.
V rate_of(const Call& c, size_t index, tiny_dtype dtype) {
  if (!c.argument(index).isTensor()) return number(dtype, c.real(index));
  return reshape(cast(c.value(index), dtype), {});
}
// Nothing changes where a gradient was not finite.
void update(const Call& c, const at::Tensor& target, const V& value, size_t found_inf) {
  const V now = cast(value, dtype_of(target.scalar_type()));
  write(target, c.has(found_inf)
                    ? where(compare(TINY_NE, reshape(c.value(found_inf), {}), 0), read(target), now)
                    : now);
}
// The gradient without the scale of the losses, which it loses where it lies, too; whether one is
// not finite is the argument behind the scale.
V gradient_of(const Call& c, const at::Tensor& grad, tiny_dtype dtype, bool is_negative,
              size_t scale) {
  V value = cast(read(grad), dtype);
  if (c.has(scale)) {
    value = value / cast(reshape(c.value(scale), {}), dtype);
    update(c, grad, value, scale + 1);
  }
  return is_negative ? -value : value;
}
void sgd_step(Call& c) {  // self, grads, buffers; weight_decay, momentum, lr, dampening, nesterov,
                          // maximize, is_first, ..
  const auto parameters = list(c, 0);
  const auto grads = list(c, 1);
  const auto buffers = list(c, 2);
  const double momentum = c.real(4);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const V x = read(parameters[i]);
    const tiny_dtype dtype = x.dtype();
    V grad = gradient_of(c, grads[i], dtype, c.flag(8), 10);
    if (c.real(3) != 0) grad = grad + x * number(dtype, c.real(3));
    if (momentum != 0) {
      const V kept = c.flag(9) ? grad
                               : read(buffers[i]) * number(dtype, momentum) +
                                     grad * number(dtype, 1 - c.real(6));
      update(c, buffers[i], kept, 11);
      grad = c.flag(7) ? grad + kept * number(dtype, momentum) : kept;
    }
    update(c, parameters[i], x - grad * rate_of(c, 5, dtype), 11);
  }
}
template <bool is_decoupled>
void adam_step(Call& c) {  // self, grads, averages, squares, maxima, steps; lr, beta1, beta2,
                           // weight_decay, eps, amsgrad, maximize, ..
  const auto parameters = list(c, 0);
  const auto grads = list(c, 1);
  const auto averages = list(c, 2);
  const auto squares = list(c, 3);
  const auto maxima = list(c, 4);
  const auto steps = list(c, 5);
  for (size_t i = 0; i < parameters.size(); ++i) {
    V x = read(parameters[i]);
    const tiny_dtype dtype = x.dtype();
    const V rate = rate_of(c, 6, dtype);
    V grad = gradient_of(c, grads[i], dtype, c.flag(12), 13);
    const V decay = number(dtype, c.real(9));
    if (c.real(9) != 0 && is_decoupled) x = x - x * rate * decay;
    if (c.real(9) != 0 && !is_decoupled) grad = grad + x * decay;
    const V old = read(averages[i]);
    const V average = old + (grad - old) * number(dtype, 1 - c.real(7));
    const V square =
        read(squares[i]) * number(dtype, c.real(8)) + grad * grad * number(dtype, 1 - c.real(8));
    const V step = cast(read(steps[i]), dtype);
    const V first = 1.0 - binary(TINY_POW, number(dtype, c.real(7)), step);
    const V second = unary(TINY_SQRT, 1.0 - binary(TINY_POW, number(dtype, c.real(8)), step));
    V spread = square;
    if (c.flag(11)) {
      spread = binary(TINY_MAX, read(maxima[i]), square);
      update(c, maxima[i], spread, 14);
    }
    update(c, averages[i], average, 14);
    update(c, squares[i], square, 14);
    update(c, parameters[i],
           x - rate / first * average /
                   (unary(TINY_SQRT, spread) / second + number(dtype, c.real(10))),
           14);
  }
}

void adagrad_step(
    Call& c) {  // self, grads, sums, steps; lr, lr_decay, weight_decay, eps, maximize, ..
  const auto parameters = list(c, 0);
  const auto grads = list(c, 1);
  const auto sums = list(c, 2);
  const auto steps = list(c, 3);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const V x = read(parameters[i]);
    const tiny_dtype dtype = x.dtype();
    V grad = gradient_of(c, grads[i], dtype, c.flag(8), 9);
    if (c.real(6) != 0) grad = grad + x * number(dtype, c.real(6));
    const V sum = read(sums[i]) + grad * grad;
    const V decayed = (cast(read(steps[i]), dtype) - 1.0) * number(dtype, c.real(5)) + 1.0;
    update(c, sums[i], sum, 10);
    update(c, parameters[i],
           x - rate_of(c, 4, dtype) / decayed * grad /
                   (unary(TINY_SQRT, sum) + number(dtype, c.real(7))),
           10);
  }
}

// Of a scaler of losses: gradients over the scale, and whether one is not finite.
void unscale(Call& c) {  // grads, found_inf, inv_scale
  V found = c.value(1);
  for (const at::Tensor& grad : list(c, 0)) {
    const V given = read(grad);
    const V size = unary(TINY_ABS, given);
    const V is_bad = unary(TINY_NOT, compare(TINY_LT, size, constant(size.dtype(), INFINITY)));
    Sizes axes(static_cast<size_t>(given.rank()));
    std::iota(axes.begin(), axes.end(), int64_t{0});
    found = binary(TINY_MAX, found, cast(reduce(TINY_ANY, is_bad, axes, false), found.dtype()));
    write(grad,
          cast(given, wide(given.dtype())) * cast(reshape(c.value(2), {}), wide(given.dtype())));
  }
  write(c.tensor(1), found);
}

void update_scale(
    Call& c) {  // self, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval
  const V scale = c.value(0);
  const V tracker = c.value(1);
  const V is_bad = compare(TINY_NE, reshape(c.value(2), scale.shape()), 0);
  const V steps = tracker + 1.0;
  const V grows = compare(TINY_EQ, steps, static_cast<double>(c.integer(5)));
  const V larger = scale * number(scale.dtype(), c.real(3));
  const V is_finite = compare(TINY_LT, larger, constant(scale.dtype(), INFINITY));
  const V good = where(logical_and(grows, is_finite), larger, scale);
  write(c.tensor(0), where(is_bad, scale * number(scale.dtype(), c.real(4)), good));
  const V none = constant(tracker.dtype(), 0);
  write(c.tensor(1), where(is_bad, none, where(grows, none, steps)));
}

bool equal(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  if (a.numel() == 0) return true;
  if (a.is_complex() && b.is_complex()) return equal(at::view_as_real(a), at::view_as_real(b));
  const V same = compare(TINY_EQ, read(a), read(b));
  const int64_t count = same.numel();
  uint8_t all = 0;
  flush();
  read(reduce(TINY_ALL, reshape(same, {&count, 1}), Sizes{0}, false), &all, sizeof all);
  return all != 0;
}

constexpr Row kCells[] = {
    {"_thnn_fused_lstm_cell", lstm_cell},
    {"_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward},
    {"_thnn_fused_gru_cell", gru_cell},
    {"_thnn_fused_gru_cell_backward", gru_cell_backward},
    {"nll_loss_forward.output", class_loss},
    {"nll_loss_backward.grad_input", class_loss_backward},
    {"log_sigmoid_forward", log_sigmoid},
    {"log_sigmoid_forward.output", log_sigmoid},
    {"log_sigmoid_backward", log_sigmoid_backward},
    {"log_sigmoid_backward.grad_input", log_sigmoid_backward},
};
constexpr Row kSteps[] = {
    {"_fused_sgd_", sgd_step},
    {"_fused_sgd_.tensor_lr", sgd_step},
    {"_fused_adam_", adam_step<false>},
    {"_fused_adam_.tensor_lr", adam_step<false>},
    {"_fused_adamw_", adam_step<true>},
    {"_fused_adamw_.tensor_lr", adam_step<true>},
    {"_fused_adagrad_", adagrad_step},
    {"_amp_foreach_non_finite_check_and_unscale_", unscale},
    {"_amp_update_scale_", update_scale},
};

TORCH_LIBRARY_FRAGMENT(tiny, m) {
  m.def("check_classes(Tensor target, int classes, int ignored) -> ()", check_classes);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_rows(m, kCells);
  add_rows(m, kSteps);
  m.impl("equal", TORCH_FN(equal));
  // Whether sequences with such a mask may be a nested tensor, of which there are none here.
  m.impl("_nested_tensor_from_mask_left_aligned",
         [](const at::Tensor&, const at::Tensor&) { return false; });
}

}  // namespace

}  // namespace tiny_torch

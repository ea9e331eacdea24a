#include "nn/optimizer_rules.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"

namespace tiny {

namespace {

using Settings = std::vector<OptimizerSetting>;

// The gradient with that of a penalty on the size of the value.
Tensor regularized(const UpdateStep& u) {
  const double decay = u.setting("weight_decay");
  return decay == 0 ? u.gradient : u.gradient + u.value * u.number(decay);
}

// last + (now - last) * share.
Tensor moved_towards(const UpdateStep& u, const Tensor& last, const Tensor& now, double share) {
  return last + (now - last) * u.number(share);
}

// 1 where it is 0 / 0 or divided by 0: a share of the value's size.
Tensor trust_ratio(const UpdateStep& u, const Tensor& value, const Tensor& over) {
  const Tensor zero = u.number(0);
  return where(bit_and(less(zero, value), less(zero, over)), value / over, u.number(1));
}

Tensor norm(const Tensor& a) {
  Ints axes;
  for (int64_t i = 0; i < a.rank(); ++i) axes.push_back(i);
  return sqrt(sum(square(a), axes));
}

// ---- SGD (torch.optim.SGD)

constexpr std::array kSgd{OptimizerSetting{"lr", 1e-3},     OptimizerSetting{"momentum", 0},
                          OptimizerSetting{"dampening", 0}, OptimizerSetting{"weight_decay", 0},
                          OptimizerSetting{"nesterov", 0},  OptimizerSetting{"classic", 0},
                          OptimizerSetting{"maximize", 0},  OptimizerSetting{"ema_decay", 0}};
Settings states_of_momentum(const UpdateStep& u) {
  return u.setting("momentum") == 0 ? Settings{} : Settings{{"momentum_buffer", 0}};
}
// Classic momentum is that of steps, which had their rate; otherwise it is that of gradients.
void step_sgd(UpdateStep& u) {
  const bool is_classic = u.setting("classic") != 0;
  Tensor g = is_classic ? regularized(u) * u.rate : regularized(u);
  if (const double momentum = u.setting("momentum"); momentum != 0) {
    Tensor added = g;
    // The first step has nothing to dampen.
    if (const double dampening = u.setting("dampening"); dampening != 0)
      added =
          g * where(less(number_int(u.count, 1), u.count), u.number(1 - dampening), u.number(1));
    const Tensor& buffer = u.keep(0, u.state(0) * u.number(momentum) + added);
    g = u.setting("nesterov") != 0 ? g + buffer * u.number(momentum) : buffer;
  }
  u.value = u.value - (is_classic ? g : u.rate * g);
}

// ---- Adam and AdamW (torch.optim.Adam, AdamW)

constexpr std::array kAdam{OptimizerSetting{"lr", 1e-3},        OptimizerSetting{"beta1", 0.9},
                           OptimizerSetting{"beta2", 0.999},    OptimizerSetting{"eps", 1e-8},
                           OptimizerSetting{"weight_decay", 0}, OptimizerSetting{"amsgrad", 0},
                           OptimizerSetting{"maximize", 0},     OptimizerSetting{"ema_decay", 0}};
constexpr std::array kAdamW{
    OptimizerSetting{"lr", 1e-3},           OptimizerSetting{"beta1", 0.9},
    OptimizerSetting{"beta2", 0.999},       OptimizerSetting{"eps", 1e-8},
    OptimizerSetting{"weight_decay", 1e-2}, OptimizerSetting{"amsgrad", 0},
    OptimizerSetting{"maximize", 0},        OptimizerSetting{"ema_decay", 0}};
Settings states_of_adam(const UpdateStep& u) {
  Settings all{{"exp_avg", 0}, {"exp_avg_sq", 0}};
  if (u.setting("amsgrad") != 0) all.push_back({"max_exp_avg_sq", 0});
  return all;
}
// The mean of the gradients over the root of the mean of their squares.
Tensor adam_direction(UpdateStep& u, const Tensor& g) {
  const double beta1 = u.setting("beta1"), beta2 = u.setting("beta2");
  const Tensor& mean = u.keep(0, moved_towards(u, u.state(0), g, 1 - beta1));
  Tensor squares = u.keep(1, u.state(1) * u.number(beta2) + square(g) * u.number(1 - beta2));
  if (u.state_count() > 2) squares = u.keep(2, maximum(u.state(2), squares));
  const Tensor size = sqrt(squares) * rsqrt(u.missing(beta2)) + u.number(u.setting("eps"));
  return mean / size;
}
void step_adam(UpdateStep& u) {
  const Tensor rate = u.rate / u.missing(u.setting("beta1"));
  u.value = u.value - rate * adam_direction(u, regularized(u));
}
void step_adamw(UpdateStep& u) {
  const Tensor rate = u.rate / u.missing(u.setting("beta1"));
  const Tensor kept = u.number(1) - u.rate * u.number(u.setting("weight_decay"));
  u.value = u.value * kept - rate * adam_direction(u, u.gradient);
}

// ---- LAMB (You et al. 2019, "Large batch optimization for deep learning", algorithm 2)

constexpr std::array kLamb{OptimizerSetting{"lr", 1e-3},        OptimizerSetting{"beta1", 0.9},
                           OptimizerSetting{"beta2", 0.999},    OptimizerSetting{"eps", 1e-6},
                           OptimizerSetting{"weight_decay", 0}, OptimizerSetting{"maximize", 0},
                           OptimizerSetting{"ema_decay", 0}};
Settings states_of_lamb(const UpdateStep&) {
  return {{"exp_avg", 0}, {"exp_avg_sq", 0}};
}
void step_lamb(UpdateStep& u) {
  const Tensor direction = adam_direction(u, u.gradient) / u.missing(u.setting("beta1"));
  const Tensor step = direction + u.value * u.number(u.setting("weight_decay"));
  u.value = u.value - u.rate * trust_ratio(u, norm(u.value), norm(step)) * step;
}

// ---- LARS (You et al. 2017, "Large batch training of convolutional networks", algorithm 1)

constexpr std::array kLars{
    OptimizerSetting{"lr", 1e-3},           OptimizerSetting{"momentum", 0.9},
    OptimizerSetting{"weight_decay", 1e-4}, OptimizerSetting{"nesterov", 0},
    OptimizerSetting{"trust", 1e-3},        OptimizerSetting{"classic", 1},
    OptimizerSetting{"maximize", 0},        OptimizerSetting{"ema_decay", 0}};
void step_lars(UpdateStep& u) {
  const double decay = u.setting("weight_decay"), momentum = u.setting("momentum");
  const Tensor size = norm(u.value);
  const Tensor over = norm(u.gradient) + size * u.number(decay);
  const Tensor zero = u.number(0);
  const Tensor local = where(bit_and(less(zero, size), less(zero, norm(u.gradient))),
                             size / over * u.number(u.setting("trust")), u.number(1));
  const Tensor rate = local * u.rate;
  const bool is_classic = u.setting("classic") != 0;
  Tensor g = is_classic ? regularized(u) * rate : regularized(u);
  if (momentum != 0) {
    const Tensor& buffer = u.keep(0, u.state(0) * u.number(momentum) + g);
    g = u.setting("nesterov") != 0 ? g + buffer * u.number(momentum) : buffer;
  }
  u.value = u.value - (is_classic ? g : g * rate);
}

// ---- Muon (Jordan et al. 2024; torch.optim.Muon, in float32)

constexpr std::array kMuon{
    OptimizerSetting{"lr", 1e-3},          OptimizerSetting{"momentum", 0.95},
    OptimizerSetting{"weight_decay", 0.1}, OptimizerSetting{"nesterov", 1},
    OptimizerSetting{"ns_steps", 5},       OptimizerSetting{"ns_a", 3.4445},
    OptimizerSetting{"ns_b", -4.7750},     OptimizerSetting{"ns_c", 2.0315},
    OptimizerSetting{"eps", 1e-7},         OptimizerSetting{"maximize", 0},
    OptimizerSetting{"ema_decay", 0}};
// The nearest matrix with orthonormal rows or columns, nearly: Newton and Schulz' iteration of
// degree 5, x * a + (x x') x * b + (x x')^2 x * c.
Tensor orthogonalized(const UpdateStep& u, const Tensor& g) {
  const double a1 = u.setting("ns_a"), a3 = u.setting("ns_b"), a5 = u.setting("ns_c");
  const Dim rows = g.shape()[0], columns = g.shape()[1];
  const bool is_tall = rows.is_const() && columns.is_const() && rows.value() > columns.value();
  Tensor x = is_tall ? permute(g, {1, 0}) : g;
  x = x / maximum(norm(x), u.number(u.setting("eps")));
  for (int i = 0; i < static_cast<int>(u.setting("ns_steps")); ++i) {
    const Tensor a = matmul(x, permute(x, {1, 0}));
    const Tensor b = a * u.number(a3) + matmul(a, a) * u.number(a5);
    x = x * u.number(a1) + matmul(b, x);
  }
  return is_tall ? permute(x, {1, 0}) : x;
}
Settings states_of_muon(const UpdateStep&) {
  return {{"momentum_buffer", 0}};
}
void step_muon(UpdateStep& u) {
  const Shape shape = u.value.shape();
  require(shape.size() >= 2, Status::Shape, "Muon's parameters are matrices; got one of shape ",
          shape);
  const double momentum = u.setting("momentum");
  const Tensor& mean = u.keep(0, moved_towards(u, u.state(0), u.gradient, 1 - momentum));
  const Tensor aim =
      u.setting("nesterov") != 0 ? moved_towards(u, u.gradient, mean, momentum) : mean;
  const Dim rows = shape[0], columns = product(Shape(shape.begin() + 1, shape.end()));
  const Tensor step = reshape(orthogonalized(u, reshape(aim, {rows, columns})), shape);
  const double tall = rows.is_const() && columns.is_const()
                          ? static_cast<double>(rows.value()) / static_cast<double>(columns.value())
                          : 1;
  const Tensor kept = u.number(1) - u.rate * u.number(u.setting("weight_decay"));
  u.value = u.value * kept - u.rate * u.number(std::sqrt(std::max(1.0, tall))) * step;
}

// ---- RMSprop (torch.optim.RMSprop)

constexpr std::array kRmsProp{OptimizerSetting{"lr", 1e-2},    OptimizerSetting{"alpha", 0.99},
                              OptimizerSetting{"eps", 1e-8},   OptimizerSetting{"weight_decay", 0},
                              OptimizerSetting{"momentum", 0}, OptimizerSetting{"centered", 0},
                              OptimizerSetting{"maximize", 0}, OptimizerSetting{"ema_decay", 0}};
Settings states_of_rmsprop(const UpdateStep& u) {
  Settings all{{"square_avg", 0}};
  if (u.setting("centered") != 0) all.push_back({"grad_avg", 0});
  if (u.setting("momentum") != 0) all.push_back({"momentum_buffer", 0});
  return all;
}
void step_rmsprop(UpdateStep& u) {
  const Tensor g = regularized(u);
  const double alpha = u.setting("alpha");
  Tensor squares = u.keep(0, u.state(0) * u.number(alpha) + square(g) * u.number(1 - alpha));
  if (u.setting("centered") != 0)
    squares = squares - square(u.keep(1, moved_towards(u, u.state(1), g, 1 - alpha)));
  Tensor step = g / (sqrt(squares) + u.number(u.setting("eps")));
  if (const double momentum = u.setting("momentum"); momentum != 0) {
    const size_t last = u.state_count() - 1;
    step = u.keep(last, u.state(last) * u.number(momentum) + step);
  }
  u.value = u.value - u.rate * step;
}

// ---- Adagrad (torch.optim.Adagrad)

constexpr std::array kAdagrad{
    OptimizerSetting{"lr", 1e-2},        OptimizerSetting{"lr_decay", 0},
    OptimizerSetting{"weight_decay", 0}, OptimizerSetting{"initial_accumulator_value", 0},
    OptimizerSetting{"eps", 1e-10},      OptimizerSetting{"maximize", 0},
    OptimizerSetting{"ema_decay", 0}};
Settings states_of_adagrad(const UpdateStep& u) {
  return {{"sum", u.setting("initial_accumulator_value")}};
}
void step_adagrad(UpdateStep& u) {
  const Tensor g = regularized(u);
  const Tensor before = cast(u.count, g.dtype()) - u.number(1);
  const Tensor rate = u.rate / (u.number(1) + before * u.number(u.setting("lr_decay")));
  const Tensor& sum = u.keep(0, u.state(0) + square(g));
  u.value = u.value - rate * g / (sqrt(sum) + u.number(u.setting("eps")));
}

bool always(const UpdateStep&) {
  return true;
}
bool never(const UpdateStep&) {
  return false;
}
bool dampens(const UpdateStep& u) {
  return u.setting("momentum") != 0 && u.setting("dampening") != 0;
}

constexpr OptimizerRule kRules[] = {
    {OptimizerKind::Sgd, "SGD", kSgd, dampens, states_of_momentum, step_sgd},
    {OptimizerKind::Adam, "Adam", kAdam, always, states_of_adam, step_adam},
    {OptimizerKind::AdamW, "AdamW", kAdamW, always, states_of_adam, step_adamw},
    {OptimizerKind::Lamb, "LAMB", kLamb, always, states_of_lamb, step_lamb},
    {OptimizerKind::Lars, "LARS", kLars, never, states_of_momentum, step_lars},
    {OptimizerKind::Muon, "Muon", kMuon, never, states_of_muon, step_muon},
    {OptimizerKind::RmsProp, "RMSprop", kRmsProp, never, states_of_rmsprop, step_rmsprop},
    {OptimizerKind::Adagrad, "Adagrad", kAdagrad, always, states_of_adagrad, step_adagrad},
};

}  // namespace

double UpdateStep::setting(std::string_view name) const {
  const auto found = std::ranges::find(names_, name, &OptimizerSetting::name);
  invariant(found != names_.end(), "a rule asks for settings that its row has");
  return settings_[static_cast<size_t>(found - names_.begin())];
}

const Tensor& UpdateStep::keep(size_t i, const Tensor& now) {
  assign(*states_[i], skip_ ? where(skip_, *states_[i], now) : now);
  return *states_[i];
}

Tensor UpdateStep::number(double value) const {
  return tiny::number(gradient, value);
}

// In float64: 1 - 0.999 has lost half of its digits in float32.
Tensor UpdateStep::missing(double base) const {
  const Tensor steps = cast(count, kFloat64);
  const Tensor lacks = tiny::number(steps, 1) - pow(tiny::number(steps, base), steps);
  return contiguous(cast(lacks, gradient.dtype()));
}

const OptimizerRule& optimizer_rule(OptimizerKind kind) {
  const auto* row = std::ranges::find(kRules, kind, &OptimizerRule::kind);
  invariant(row != std::end(kRules), "every kind of optimiser has a row");
  return *row;
}

}  // namespace tiny

#include "nn/optimizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/value.h"

namespace tiny {

namespace {

// What steps of a parameter are computed in.
DType wide(DType dtype) {
  return dtype == kFloat64 ? kFloat64 : kFloat32;
}

// So that no program makes what they begin with; a constant needs none by itself.
void give_memory(std::span<Tensor* const> tensors) {
  for (Tensor* t : tensors) own_memory(*t, true);
  realize(tensors);
}

void write(Tensor& target, const Tensor& value, const Tensor& skip) {
  assign(target, skip ? where(skip, target, value) : value);
}

}  // namespace

Optimizer::Optimizer(Ref<Context> context, OptimizerKind kind)
    : context_(std::move(context)), rule_(optimizer_rule(kind)) {
}

size_t Optimizer::add_state(std::string name, const Tensor& value) {
  state_.push_back({std::move(name), value});
  return state_.size() - 1;
}

size_t Optimizer::add_group(std::vector<Tensor> parameters) {
  require(!has_begun_, Status::InvalidArgument, "a group of parameters after the first step");
  Group group;
  for (const Tensor& p : parameters) {
    require(p.dtype().is_float(), Status::DType, "a parameter of ", p.dtype(), "; wanted floats");
    for (const Group& other : groups_)
      require(std::ranges::none_of(other.parameters,
                                   [&](const Parameter& q) { return q.value.cell() == p.cell(); }),
              Status::InvalidArgument, "a parameter of shape ", p.shape(),
              " is in another group already");
    group.parameters.push_back({p, {}, kNone});
  }
  for (const OptimizerSetting& s : rule_.settings) group.settings.push_back(s.value);
  group.rate =
      add_state(cat("lr.", groups_.size()), full(context_, kFloat32, {}, group.settings.front()));
  std::vector<Tensor*> all;
  for (Parameter& p : group.parameters) all.push_back(&p.value);
  give_memory(all);
  groups_.push_back(std::move(group));
  return groups_.size() - 1;
}

size_t Optimizer::parameter_count() const {
  size_t count = 0;
  for (const Group& g : groups_) count += g.parameters.size();
  return count;
}

Optimizer::Group& Optimizer::group_at(size_t group) {
  require(group < groups_.size(), Status::InvalidArgument, "group ", group, " of ", groups_.size());
  return groups_[group];
}

const Optimizer::Group& Optimizer::group_at(size_t group) const {
  require(group < groups_.size(), Status::InvalidArgument, "group ", group, " of ", groups_.size());
  return groups_[group];
}

size_t Optimizer::setting_at(std::string_view name) const {
  const auto found = std::ranges::find(rule_.settings, name, &OptimizerSetting::name);
  if (found != rule_.settings.end()) return static_cast<size_t>(found - rule_.settings.begin());
  std::vector<std::string> known;
  for (const OptimizerSetting& s : rule_.settings) known.emplace_back(s.name);
  throw_error(Status::InvalidArgument, rule_.name, " has no setting \"", name, "\"",
              did_you_mean(name, known));
}

void Optimizer::set(size_t group, std::string_view name, double value) {
  Group& g = group_at(group);
  const size_t at = setting_at(name);
  require(at == 0 || !has_begun_ || g.settings[at] == value, Status::InvalidArgument, "\"", name,
          "\" after the first step, which is made of it; only \"lr\" can change");
  g.settings[at] = value;
  if (at == 0) {
    Tensor& rate = state_[g.rate].value;
    assign(rate, full(context_, kFloat32, {}, value));
    Tensor* const one[] = {&rate};
    realize(one);
  }
}

double Optimizer::get(size_t group, std::string_view name) const {
  return group_at(group).settings[setting_at(name)];
}

const Tensor& Optimizer::rate(size_t group) const {
  return state_[group_at(group).rate].value;
}

// From now on settings stand: the states that they ask for get memory.
void Optimizer::begin() {
  if (std::exchange(has_begun_, true)) return;
  size_t number = 0;
  for (Group& g : groups_) {
    const UpdateStep settings(rule_.settings, g.settings);
    if (count_ == kNone && rule_.counts(settings))
      count_ = add_state("step", full(context_, kInt64, {}, 0));
    for (Parameter& p : g.parameters) {
      const DType dtype = wide(p.value.dtype());
      for (const OptimizerSetting& s : rule_.states(settings))
        p.states.push_back(
            add_state(cat(s.name, ".", number), full(context_, dtype, p.value.shape(), s.value)));
      if (dtype != p.value.dtype())
        p.master = add_state(cat("master.", number), cast(p.value, dtype));
      if (settings.setting("ema_decay") != 0)
        p.average = add_state(cat("ema.", number), cast(p.value, dtype));
      ++number;
    }
  }
  std::vector<Tensor*> all;
  for (State& s : state_) all.push_back(&s.value);
  give_memory(all);
}

const std::deque<Optimizer::State>& Optimizer::state() {
  begin();
  return state_;
}

void Optimizer::step(std::span<const Tensor> gradients, const Tensor& skip) {
  require(gradients.size() == parameter_count(), Status::InvalidArgument, gradients.size(),
          " gradients for ", parameter_count(), " parameters");
  size_t number = 0;
  for (const Group& g : groups_)
    for (const Parameter& p : g.parameters) {
      const Tensor& gradient = gradients[number];
      require(!gradient || Shape(gradient.shape()) == Shape(p.value.shape()), Status::Shape,
              "gradient ", number, " of shape ", gradient ? Shape(gradient.shape()) : Shape(),
              " for a parameter of shape ", p.value.shape());
      require(!gradient || gradient.dtype().is_float(), Status::DType, "gradient ", number, " of ",
              gradient ? gradient.dtype() : kVoid, "; wanted floats");
      ++number;
    }
  require(!skip || (skip.dtype() == kBool && skip.rank() == 0), Status::InvalidArgument, "skip of ",
          skip ? skip.dtype() : kVoid, " and shape ", skip ? Shape(skip.shape()) : Shape(),
          "; wanted a bool scalar");
  begin();
  if (count_ != kNone) {
    Tensor& count = state_[count_].value;
    write(count, count + number_int(count, 1), skip);
  }
  number = 0;
  for (Group& g : groups_)
    for (Parameter& p : g.parameters)
      if (const Tensor& gradient = gradients[number++])
        step_one(g, p, gradient, skip);
      else if (count_ != kNone)
        miss_one(p, number - 1, skip);
}

// The steps of a parameter are those that it had a gradient in, of which few miss any.
void Optimizer::miss_one(Parameter& parameter, size_t number, const Tensor& skip) {
  if (parameter.missed == kNone) {
    parameter.missed = add_state(cat("missed.", number), full(context_, kInt64, {}, 0));
    Tensor* const one[] = {&state_[parameter.missed].value};
    give_memory(one);
  }
  Tensor& missed = state_[parameter.missed].value;
  write(missed, missed + number_int(missed, 1), skip);
}

void Optimizer::step_one(Group& group, Parameter& parameter, const Tensor& gradient,
                         const Tensor& skip) {
  std::vector<Tensor*> states;
  for (const size_t s : parameter.states) states.push_back(&state_[s].value);
  UpdateStep step(rule_.settings, group.settings, std::move(states), skip);
  Tensor& value = parameter.master == kNone ? parameter.value : state_[parameter.master].value;
  step.value = value;
  step.gradient = cast(gradient, value.dtype());
  if (step.setting("maximize") != 0) step.gradient = neg(step.gradient);
  step.rate = cast(state_[group.rate].value, value.dtype());
  if (count_ != kNone) step.count = state_[count_].value;
  if (parameter.missed != kNone) step.count = step.count - state_[parameter.missed].value;
  rule_.apply(step);
  write(value, step.value, skip);
  if (parameter.master != kNone) write(parameter.value, cast(value, parameter.value.dtype()), skip);
  if (parameter.average == kNone) return;
  Tensor& average = state_[parameter.average].value;
  const Tensor share = step.number(1 - step.setting("ema_decay"));
  write(average, average + (value - average) * share, skip);
}

}  // namespace tiny

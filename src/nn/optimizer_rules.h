// The table of optimisers.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace tiny {

enum class OptimizerKind : uint8_t { Sgd, Adam, AdamW, Lamb, Lars, Muon, RmsProp, Adagrad };

struct OptimizerSetting {
  std::string_view name;
  double value;  // where nothing else is set
};

// One parameter's step: what it is made of, and what it makes.
class UpdateStep {
 public:
  // `states` are written where `skip`, a bool scalar or none, is not true.
  UpdateStep(std::span<const OptimizerSetting> names, std::span<const double> settings,
             std::vector<Tensor*> states = {}, Tensor skip = Tensor())
      : names_(names), settings_(settings), states_(std::move(states)), skip_(std::move(skip)) {}

  double setting(std::string_view name) const;
  size_t state_count() const { return states_.size(); }
  const Tensor& state(size_t i) const { return *states_[i]; }
  // Writes it.  What comes after it reads what was written, so that one kernel can do it all in
  // place.
  const Tensor& keep(size_t i, const Tensor& now);

  Tensor value;     // float32 or float64, as are the others
  Tensor gradient;  // with its sign turned where the aim is a maximum
  Tensor rate;      // a scalar
  Tensor count;     // steps with this one, an int64 scalar, where they are counted

  // A number of the gradient's dtype.
  Tensor number(double value) const;
  // 1 - base^count, of the gradient's dtype: what a running mean that began with 0 lacks.
  Tensor missing(double base) const;

 private:
  std::span<const OptimizerSetting> names_;
  std::span<const double> settings_;
  std::vector<Tensor*> states_;
  Tensor skip_;
};

struct OptimizerRule {
  OptimizerKind kind;
  std::string_view name;
  std::span<const OptimizerSetting> settings;  // "lr" is the first
  // Whether steps are counted with these settings.
  bool (*counts)(const UpdateStep& step);
  // The states of a parameter with these settings, in the order of UpdateStep::state.
  std::vector<OptimizerSetting> (*states)(const UpdateStep& step);
  // Writes the states, and makes the step's value that of the next step.
  void (*apply)(UpdateStep& step);
};
const OptimizerRule& optimizer_rule(OptimizerKind kind);

}  // namespace tiny

// Optimisers: what becomes of parameters in one step, out of their gradients, as pending writes.
//
// Formulas and the names of settings are PyTorch's (torch.optim), those of LAMB and LARS the ones
// of their papers (You et al. 2019, 2017): optimizer_rules.cpp has a row for each.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "nn/optimizer_rules.h"
#include "tensor/tensor.h"

namespace tiny {

class Optimizer : public RefCounted {
 public:
  Optimizer(Ref<Context> context, OptimizerKind kind);

  // A group of parameters that share settings; its number.  Parameters are floats; those of 16 bits
  // have a float32 copy in the state, of which each step makes them anew.  They are computed now:
  // graphs that are to see what steps write are built on them afterwards.
  size_t add_group(std::vector<Tensor> parameters);
  size_t group_count() const { return groups_.size(); }
  size_t parameter_count() const;

  // "lr" any time: programs read it in each run.  The others until the first step, which is made of
  // them.  Error{InvalidArgument} for a name that the kind has not.
  void set(size_t group, std::string_view name, double value);
  double get(size_t group, std::string_view name) const;
  // The learning rate of a group: a float32 scalar.  Who writes to it changes the rate.
  const Tensor& rate(size_t group) const;

  // A gradient for each parameter, in the order in which they were added; no tensor leaves the
  // parameter and its state as they are, and is no step of its.  Where `skip`, a bool scalar, is
  // true, nothing changes: no tensor is false.
  void step(std::span<const Tensor> gradients, const Tensor& skip = Tensor());

  // Everything that the next step is made of beside the parameters: the rates, the number of steps
  // if it matters, and of each parameter what the rule keeps, "exp_avg.3" for the fourth; its
  // average over the steps, "ema.3", which is average * ema_decay + value * (1 - ema_decay) after
  // each; and how many steps it took no part in, "missed.3", from the first of them on.  Settings
  // are as they will be from now on.
  struct State {
    std::string name;
    Tensor value;
  };
  const std::deque<State>& state();

 private:
  struct Parameter {
    Tensor value;
    std::vector<size_t> states;  // in state_, in the rule's order
    size_t master = kNone;       // of 16-bit floats: their float32 copy in state_
    size_t average = kNone;      // of the values after each step, if "ema_decay" asks for it
    size_t missed = kNone;       // the steps without a gradient, if there were any and steps count
  };
  struct Group {
    std::vector<Parameter> parameters;
    std::vector<double> settings;  // in the rule's order
    size_t rate = kNone;           // in state_
  };
  static constexpr size_t kNone = ~size_t{0};

  Group& group_at(size_t group);
  const Group& group_at(size_t group) const;
  size_t setting_at(std::string_view name) const;
  void begin();
  size_t add_state(std::string name, const Tensor& value);
  void miss_one(Parameter& parameter, size_t number, const Tensor& skip);
  void step_one(Group& group, Parameter& parameter, const Tensor& gradient, const Tensor& skip);

  Ref<Context> context_;
  const OptimizerRule& rule_;
  std::vector<Group> groups_;
  std::deque<State> state_;  // names stay where they are
  size_t count_ = kNone;     // the number of steps, in state_
  bool has_begun_ = false;
};

}  // namespace tiny

// Schedules of learning rates: the rate of a step, counted from 0, by the definitions of
// torch.optim.lr_scheduler.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tiny {

// base * gamma^(step / every), rounded down.
double step_rate(double base, int64_t step, int64_t every, double gamma);
// base * gamma^(how many of the ascending milestones are at most `step`).
double multi_step_rate(double base, int64_t step, std::span<const int64_t> milestones,
                       double gamma);
// Half a cosine from `base` at 0 down to `least` at `steps`, where it stays.
double cosine_rate(double base, int64_t step, int64_t steps, double least);
// From base * first at 0 in a straight line up to `base` at `steps`, where it stays.
double warm_up_rate(double base, int64_t step, int64_t steps, double first);

// Up half a cosine from most / divisor to `most` within a share `rise` of the steps, then down to
// most / divisor / final_divisor at the last one (Smith and Topin 2017, "Super-convergence").
struct OneCycle {
  double most = 0;
  int64_t steps = 0;
  double rise = 0.3;
  double divisor = 25;
  double final_divisor = 1e4;
};
double one_cycle_rate(const OneCycle& cycle, int64_t step);

// Divides the rate when a metric has not become smaller by a share `threshold` of itself for more
// than `patience` steps.
class Plateau {
 public:
  struct Options {
    double factor = 0.1;
    int64_t patience = 10;
    double threshold = 1e-4;
    int64_t cooldown = 0;  // steps after a change in which nothing is counted
    double least = 0;
  };
  Plateau(double rate, const Options& options);

  // The rate after a step with this metric.
  double next(double metric);
  // What the next rate is made of beside the options, by name.  Error{InvalidArgument} for another
  // name.
  void set(std::string_view name, double value) { this->*state(name) = value; }
  double get(std::string_view name) const { return this->*state(name); }

 private:
  static double Plateau::* state(std::string_view name);

  Options options_;
  double rate_;
  double best_;
  double bad_steps_ = 0;
  double cooling_ = 0;  // steps that will not be counted
};

}  // namespace tiny

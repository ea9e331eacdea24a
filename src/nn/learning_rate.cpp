#include "nn/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"

namespace tiny {

namespace {

void require_step(int64_t step) {
  require(step >= 0, Status::InvalidArgument, "step ", step, "; they are counted from 0");
}

void require_steps(int64_t steps, const char* name) {
  require(steps > 0, Status::InvalidArgument, name, " is ", steps, "; wanted at least 1");
}

// Half a cosine from `first` to `last`, of which `share` is done.
double along_cosine(double first, double last, double share) {
  return last + (first - last) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

}  // namespace

double step_rate(double base, int64_t step, int64_t every, double gamma) {
  require_step(step);
  require_steps(every, "every");
  const int64_t times = step / every;
  return base * std::pow(gamma, static_cast<double>(times));
}

double multi_step_rate(double base, int64_t step, std::span<const int64_t> milestones,
                       double gamma) {
  require_step(step);
  require(std::ranges::is_sorted(milestones), Status::InvalidArgument,
          "milestones that do not ascend");
  const auto passed = std::ranges::upper_bound(milestones, step) - milestones.begin();
  return base * std::pow(gamma, static_cast<double>(passed));
}

double cosine_rate(double base, int64_t step, int64_t steps, double least) {
  require_step(step);
  require_steps(steps, "steps");
  return along_cosine(base, least,
                      static_cast<double>(std::min(step, steps)) / static_cast<double>(steps));
}

double warm_up_rate(double base, int64_t step, int64_t steps, double first) {
  require_step(step);
  require_steps(steps, "steps");
  const double share = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
  return base * (first + (1 - first) * share);
}

double one_cycle_rate(const OneCycle& cycle, int64_t step) {
  require_step(step);
  require(cycle.steps > 1, Status::InvalidArgument, "a cycle of ", cycle.steps,
          " steps; wanted at least 2");
  require(cycle.rise > 0 && cycle.rise < 1, Status::InvalidArgument, "rise is ", cycle.rise,
          "; wanted a share between 0 and 1");
  require(cycle.divisor > 0 && cycle.final_divisor > 0, Status::InvalidArgument, "divisors ",
          cycle.divisor, " and ", cycle.final_divisor, "; wanted positive numbers");
  const double first = cycle.most / cycle.divisor;
  const double top = cycle.rise * static_cast<double>(cycle.steps) - 1;
  const auto end = static_cast<double>(cycle.steps - 1);
  const auto at = static_cast<double>(std::min(step, cycle.steps - 1));
  if (at <= top) return along_cosine(first, cycle.most, top > 0 ? at / top : 1);
  return along_cosine(cycle.most, first / cycle.final_divisor, (at - top) / (end - top));
}

Plateau::Plateau(double rate, const Options& options)
    : options_(options), rate_(rate), best_(std::numeric_limits<double>::infinity()) {
  require(options.factor > 0 && options.factor < 1, Status::InvalidArgument, "factor is ",
          options.factor, "; wanted a share between 0 and 1");
  require(options.patience >= 0 && options.cooldown >= 0, Status::InvalidArgument, "patience ",
          options.patience, " and cooldown ", options.cooldown, "; wanted at least 0");
}

double Plateau::next(double metric) {
  const bool is_better = metric < best_ * (1 - options_.threshold);
  if (is_better) best_ = metric;
  bad_steps_ = is_better ? 0 : bad_steps_ + 1;
  if (cooling_ > 0) {
    --cooling_;
    bad_steps_ = 0;
  }
  if (bad_steps_ > static_cast<double>(options_.patience)) {
    rate_ = std::max(rate_ * options_.factor, options_.least);
    cooling_ = static_cast<double>(options_.cooldown);
    bad_steps_ = 0;
  }
  return rate_;
}

double Plateau::* Plateau::state(std::string_view name) {
  constexpr std::pair<std::string_view, double Plateau::*> kStates[] = {
      {"rate", &Plateau::rate_},
      {"best", &Plateau::best_},
      {"bad_steps", &Plateau::bad_steps_},
      {"cooling", &Plateau::cooling_}};
  std::vector<std::string> known;
  for (const auto& [own, member] : kStates) {
    if (own == name) return member;
    known.emplace_back(own);
  }
  throw_error(Status::InvalidArgument, "a plateau has no \"", name, "\"",
              did_you_mean(name, known));
}

}  // namespace tiny

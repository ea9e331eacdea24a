// Schedules of learning rates.
#include "nn/learning_rate.h"

#include <mutex>

#include "api/boundary.h"

struct tiny_plateau : tiny::CountedAs<tiny::HandleKind::Plateau> {
  tiny_plateau(double rate, const tiny::Plateau::Options& options) : core(rate, options) {}

  mutable std::mutex mutex;
  tiny::Plateau core;
};

namespace {

// A call that works with the plateau.
tiny_status with(const char* call, const tiny_plateau* plateau,
                 tiny::FunctionRef<void(tiny::Plateau&)> body) noexcept {
  return tiny::guarded(call, [&] {
    const tiny_plateau& p = tiny::required(plateau, "plateau");
    const std::lock_guard lock(p.mutex);
    body(const_cast<tiny_plateau&>(p).core);
  });
}

}  // namespace

extern "C" {

tiny_status tiny_rate_step(double base, int64_t step, int64_t every, double gamma, double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL",
                           [=] { return tiny::step_rate(base, step, every, gamma); });
}

tiny_status tiny_rate_multi_step(double base, int64_t step, const int64_t* milestones, size_t count,
                                 double gamma, double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL", [=] {
    return tiny::multi_step_rate(base, step, tiny::numbers(milestones, count, "milestones"), gamma);
  });
}

tiny_status tiny_rate_cosine(double base, int64_t step, int64_t steps, double least, double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL",
                           [=] { return tiny::cosine_rate(base, step, steps, least); });
}

tiny_status tiny_rate_warm_up(double base, int64_t step, int64_t steps, double first,
                              double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL",
                           [=] { return tiny::warm_up_rate(base, step, steps, first); });
}

tiny_status tiny_rate_one_cycle(double most, int64_t step, int64_t steps, double rise,
                                double divisor, double final_divisor, double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL", [=] {
    return tiny::one_cycle_rate({most, steps, rise, divisor, final_divisor}, step);
  });
}

tiny_status tiny_plateau_create(double rate, double factor, int64_t patience, double threshold,
                                int64_t cooldown, double least, tiny_plateau** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [=] {
    *out = new tiny_plateau(rate, {factor, patience, threshold, cooldown, least});
  });
}

void tiny_plateau_retain(tiny_plateau* plateau) {
  tiny::retain_owned(plateau);
}

void tiny_plateau_release(tiny_plateau* plateau) {
  if (tiny::is_last_release(plateau)) delete plateau;
}

tiny_status tiny_plateau_next(tiny_plateau* plateau, double metric, double* rate) {
  if (!rate) return tiny::fail(__func__, tiny::Status::InvalidArgument, "rate is NULL");
  *rate = 0;
  return with(__func__, plateau, [=](tiny::Plateau& p) { *rate = p.next(metric); });
}

tiny_status tiny_plateau_set(tiny_plateau* plateau, const char* name, double value) {
  return with(__func__, plateau,
              [=](tiny::Plateau& p) { p.set(&tiny::required(name, "name"), value); });
}

tiny_status tiny_plateau_get(const tiny_plateau* plateau, const char* name, double* value) {
  if (!value) return tiny::fail(__func__, tiny::Status::InvalidArgument, "value is NULL");
  *value = 0;
  return with(__func__, plateau,
              [=](tiny::Plateau& p) { *value = p.get(&tiny::required(name, "name")); });
}

}  // extern "C"

// Schedules of learning rates.
#include "nn/learning_rate.h"

#include "api/boundary.h"

extern "C" {

tiny_status tiny_rate_step(double base, int64_t step, int64_t every, double gamma, double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL",
                           [&] { return tiny::step_rate(base, step, every, gamma); });
}

tiny_status tiny_rate_multi_step(double base, int64_t step, const int64_t* milestones, size_t count,
                                 double gamma, double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL", [&] {
    return tiny::multi_step_rate(base, step, tiny::numbers(milestones, count, "milestones"), gamma);
  });
}

tiny_status tiny_rate_cosine(double base, int64_t step, int64_t steps, double least, double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL",
                           [&] { return tiny::cosine_rate(base, step, steps, least); });
}

tiny_status tiny_rate_warm_up(double base, int64_t step, int64_t steps, double first,
                              double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL",
                           [&] { return tiny::warm_up_rate(base, step, steps, first); });
}

tiny_status tiny_rate_one_cycle(double most, int64_t step, int64_t steps, double rise,
                                double divisor, double final_divisor, double* rate) {
  return tiny::give_number(__func__, rate, "rate is NULL", [&] {
    return tiny::one_cycle_rate({most, steps, rise, divisor, final_divisor}, step);
  });
}

}  // extern "C"

// A kernel that the cpu device runs, and how long it takes.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/host.h"

namespace tiny {

// Of the steady clock, in nanoseconds.
inline int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class CpuExecutable : public HostExecutable {
 public:
  using HostExecutable::HostExecutable;

  // Whether only the thread that executes may run it, alone.
  virtual bool is_function() const { return false; }
  // Nanoseconds that so many iterations take one thread, as last measured; 0: not known yet.
  double expected(int64_t iterations) const {
    const int64_t each = iteration_time_.load(std::memory_order_relaxed);
    return static_cast<double>(each) / 16.0 * static_cast<double>(iterations);
  }
  void measured(int64_t nanoseconds, int64_t iterations) const {
    iteration_time_.store(std::max<int64_t>(1, nanoseconds * 16 / std::max<int64_t>(1, iterations)),
                          std::memory_order_relaxed);
  }

 private:
  mutable std::atomic<int64_t> iteration_time_{0};  // in 1/16 ns
};

}  // namespace tiny

// What things take on the machine that code is for: the prices that every choice asks, beside what
// the machine can do (ir/target.h).  Of processors that are known they stand in a table
// (cost/processors.h); of others they are measured where they are met (engine/measure_speeds.h).
#pragma once

#include <cstdint>
#include <utility>

#include "ir/target.h"

namespace tiny {

// Of one core.  Where nothing is known, the rates of a core of its time (Zen 5).
struct Rates {
  double launch_seconds = 1e-6;    // from one kernel to the next
  double l2_bandwidth = 250e9;     // bytes a second that are read
  double l3_bandwidth = 116e9;     // the same
  double memory_bandwidth = 42e9;  // bytes a second that a copy reads and writes
  double fma_rate = 132e9;         // multiply-adds of float32 a second, of all lanes
  // A kernel that stores more than this in one buffer does so past the caches; 0: none does.
  int64_t bypass_bytes = 0;
};

struct Machine : Target, Rates {
  explicit Machine(Target target, const Rates& rates = {})
      : Target(std::move(target)), Rates(rates) {}
};

// The targets that tests force, at the rates of a core whose own are not known.
Machine avx2_machine();
Machine avx512_machine();

// The part of a cache that holds one value, beside all else that a kernel and its neighbours touch.
inline constexpr double kPartOfCache = 0.5;

// Bytes a second at which so many are read: from the first level, behind L1, of which they take no
// more than `part`.
double bandwidth_of(double bytes, const Machine& machine, double part = kPartOfCache);

}  // namespace tiny

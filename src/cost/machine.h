// What things take on the machine that code is for: the prices that every choice asks, beside what
// the machine can do (ir/target.h).  Of processors that are known they stand in a table
// (cost/processors.h); of others they are measured where they are met (engine/measure_speeds.h).
#pragma once

#include <cstdint>
#include <utility>

#include "ir/target.h"

namespace tiny {

// What a processor of groups of threads (a multiprocessor) holds at a time, and what its steps
// take.
struct GroupRates {
  int32_t threads = 0;
  int32_t groups = 0;
  int32_t registers = 0;     // of 32 bits, of all these threads
  int64_t shared_bytes = 0;  // of all these groups
  double clock = 0;          // cycles a second
  double issued = 0;         // instructions a cycle, each of one thread
  double shared_words = 0;   // words of 32 bits a cycle between shared memory and threads
  // Multiply-adds a second of operands of 16 bits in products of matrices; 0: it has none.
  double matrix_rate = 0;
  double wide_matrix_rate = 0;  // the same of products that several warps form of what is shared
  double memory_seconds = 0;    // from a load to its value, where no cache has it
  double barrier_seconds = 0;
};

// Of one core; of a machine that computes in groups, of all its processors.  Where nothing is
// known, the rates of a core of its time (Zen 5).
struct Rates {
  double launch_seconds = 1e-6;           // from one kernel to the next, which cores share
  double serial_launch_seconds = 0.2e-6;  // the same of kernels that one thread runs
  double l2_bandwidth = 250e9;            // bytes a second that are read
  double l3_bandwidth = 116e9;            // the same
  double memory_bandwidth = 42e9;         // bytes a second that a copy reads and writes
  double fma_rate = 132e9;                // multiply-adds of float32 a second, of all lanes
  int32_t unit_bytes = 64;                // of a vector that a unit computes in a cycle
  int32_t issued = 6;                     // instructions a cycle, of most wide cores
  double move_cycles = 0.5;     // of a unit's width whose lanes are moved between registers
  double gather_cycles = 1.25;  // of each lane that is loaded at an index of its own
  // A kernel that stores more than this in one buffer does so past the caches; 0: none does.
  int64_t bypass_bytes = 0;
  GroupRates of_groups{};
};

struct Machine : Target, Rates {
  explicit Machine(Target target, const Rates& rates = {})
      : Target(std::move(target)), Rates(rates) {}
};

// The targets that tests force, at the rates of a core whose own are not known.
Machine avx2_machine();
Machine avx512_machine();

// Steps of all of a kernel's ranges from which on cores share it.
inline constexpr double kSharedWorkMin = 65536;

// What lies between a kernel of so many steps and the next.
double launch_seconds_of(double steps, const Machine& machine);

// The part of a cache that holds one value, beside all else that a kernel and its neighbours touch.
inline constexpr double kPartOfCache = 0.5;

// Bytes a second at which so many are read: from the first level, behind L1, of which they take no
// more than `part`.
double bandwidth_of(double bytes, const Machine& machine, double part = kPartOfCache);

}  // namespace tiny

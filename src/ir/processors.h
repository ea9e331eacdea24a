// What was measured of processors, as target data: what the scheduler's costs are made of.  A
// processor that is not here is measured where it is met (engine/measure_speeds.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/target.h"

namespace tiny {

struct Processor {
  std::string_view name;
  // CPUID's vendor and family, and the first and last of its models.
  std::string_view vendor;
  int32_t family = 0;
  int32_t first_model = 0;
  int32_t last_model = 0;
  int64_t l1_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
  DotSet dots = 0;
  double launch_seconds = 0;
  double l2_bandwidth = 0;  // bytes a second that one core reads
  double l3_bandwidth = 0;
  double memory_bandwidth = 0;  // that a copy reads and writes
  double fma_rate_avx2 = 0;     // as Target::fma_rate, with vectors of 256 bits
  double fma_rate_avx512 = 0;
  int64_t bypass_bytes = 0;  // as Target::bypass_bytes
};

std::span<const Processor> known_processors();
// Null: not known.
const Processor* find_processor(std::string_view name);
const Processor* find_processor(std::string_view vendor, int32_t family, int32_t model);

// Makes its speeds those of `target`.
void take_speeds(const Processor& processor, Target& target);
// Makes its caches those of `target` too, and leaves it only the products that both have: the
// target of such a processor, on another one.
void imitate(const Processor& processor, Target& target);

}  // namespace tiny

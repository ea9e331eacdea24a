// What was measured of processors: what all costs are made of.  A processor that is not here is
// measured where it is met (engine/measure_speeds.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cost/machine.h"

namespace tiny {

struct Processor {
  std::string_view name;
  // CPUID's vendor and family, and the first and last of its models.
  std::string_view vendor;
  int32_t family = 0;
  int32_t first_model = 0;
  int32_t last_model = 0;
  int64_t l1_bytes = 0;  // of one core, as the second level; the third is shared
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
  DotSet dots = 0;
  DotSet tiles = 0;
  Rates rates;               // with its widest vectors
  double fma_rate_avx2 = 0;  // as Rates::fma_rate, with vectors of 256 bits
};

std::span<const Processor> known_processors();
// Null: not known.
const Processor* find_processor(std::string_view name);
const Processor* find_processor(std::string_view vendor, int32_t family, int32_t model);

// What things take on it with the vectors of `target`.
Rates rates_of(const Processor& processor, const Target& target);
// Makes its caches and rates those of `machine`, and leaves it only the products that both have:
// such a processor, on another one.
void imitate(const Processor& processor, Machine& machine);

}  // namespace tiny

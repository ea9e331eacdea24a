#include "cost/processors.h"

namespace tiny {

namespace {

constexpr int32_t kWideBytes = 64;  // of the vectors that a processor's own rates are of

// Measured on one thread with loops of each kind alone: multiply-adds on registers, sums of values
// that each level holds, a copy of what none holds.  Instructions a cycle are what is renamed
// (Agner Fog, The microarchitecture of Intel, AMD and VIA CPUs).  Lanes that are moved and gathered
// are so many instructions in a row with registers of their own: on an Emerald Rapids, 2026-11-30,
// `vpermt2ps` and `vunpcklps` one a cycle in either width, `vgatherqps` of eight lanes 3 cycles,
// of five of them as many; where nothing is said, as the default of Rates (Zen 5).  A launch is
// what lies between two kernels of one run; a serial one is the overhead per kernel that `tiny
// bench --profile` prints.
constexpr Processor kProcessors[] = {
    {.name = "zen5",
     .vendor = "AuthenticAMD",
     .family = 26,
     .first_model = 0x00,
     .last_model = 0x1F,
     .l1_bytes = 48 << 10,
     .l2_bytes = 1 << 20,
     .l3_bytes = 32 << 20,
     .dots = kAllDots,
     .rates = {.launch_seconds = 1e-6,
               .serial_launch_seconds = 0.2e-6,
               .l2_bandwidth = 250e9,
               .l3_bandwidth = 116e9,
               .memory_bandwidth = 42e9,
               .fma_rate = 132e9,
               .issued = 8,
               .bypass_bytes = 32 << 20},
     .fma_rate_avx2 = 66e9},
    {.name = "zen4",
     .vendor = "AuthenticAMD",
     .family = 25,
     .first_model = 0x10,
     .last_model = 0x1F,
     .l1_bytes = 32 << 10,
     .l2_bytes = 1 << 20,
     .l3_bytes = 32 << 20,
     .dots = kAllDots,
     .rates = {.launch_seconds = 1e-6,
               .serial_launch_seconds = 0.2e-6,
               .l2_bandwidth = 112e9,
               .l3_bandwidth = 100e9,
               .memory_bandwidth = 40e9,
               .fma_rate = 57e9,
               .unit_bytes = 32,
               .issued = 6,
               .bypass_bytes = 32 << 20},
     .fma_rate_avx2 = 57e9},
    {.name = "emeraldrapids",
     .vendor = "GenuineIntel",
     .family = 6,
     .first_model = 0xCF,
     .last_model = 0xCF,
     .l1_bytes = 48 << 10,
     .l2_bytes = 2 << 20,
     .l3_bytes = 260 << 20,
     .dots = kAllDots,
     .tiles = kIntegerDots,
     .rates = {.launch_seconds = 1e-6,
               .serial_launch_seconds = 0.2e-6,
               .l2_bandwidth = 133e9,
               .l3_bandwidth = 29e9,
               .memory_bandwidth = 15e9,
               .fma_rate = 86e9,
               .issued = 6,
               .move_cycles = 1,
               .gather_cycles = 0.4,
               .bypass_bytes = 260 << 20},
     .fma_rate_avx2 = 44e9},
    {.name = "skylake",
     .vendor = "GenuineIntel",
     .family = 6,
     .first_model = 0x55,
     .last_model = 0x55,
     .l1_bytes = 32 << 10,
     .l2_bytes = 1 << 20,
     .l3_bytes = 32 << 20,
     .dots = 0,
     .rates = {.launch_seconds = 1e-6,
               .serial_launch_seconds = 0.2e-6,
               .l2_bandwidth = 89e9,
               .l3_bandwidth = 21e9,
               .memory_bandwidth = 8.5e9,
               .fma_rate = 72e9,
               .issued = 4,
               .bypass_bytes = 32 << 20},
     .fma_rate_avx2 = 40e9},
};

}  // namespace

std::span<const Processor> known_processors() {
  return kProcessors;
}

const Processor* find_processor(std::string_view name) {
  for (const Processor& p : kProcessors)
    if (p.name == name) return &p;
  return nullptr;
}

const Processor* find_processor(std::string_view vendor, int32_t family, int32_t model) {
  for (const Processor& p : kProcessors)
    if (p.vendor == vendor && p.family == family && p.first_model <= model && model <= p.last_model)
      return &p;
  return nullptr;
}

Rates rates_of(const Processor& processor, const Target& target) {
  Rates rates = processor.rates;
  if (target.vector_bytes < kWideBytes) rates.fma_rate = processor.fma_rate_avx2;
  return rates;
}

void imitate(const Processor& processor, Machine& machine) {
  static_cast<Rates&>(machine) = rates_of(processor, machine);
  machine.l1_bytes = processor.l1_bytes;
  machine.l2_bytes = processor.l2_bytes;
  machine.l3_bytes = processor.l3_bytes;
  machine.dots = static_cast<DotSet>(machine.dots & processor.dots);
  machine.tiles = static_cast<DotSet>(machine.tiles & processor.tiles);
}

}  // namespace tiny

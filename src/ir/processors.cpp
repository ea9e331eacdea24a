#include "ir/processors.h"

namespace tiny {

namespace {

constexpr Processor kProcessors[] = {
    {"zen5", "AuthenticAMD", 26, 0x00, 0x1F, 48 << 10, 1 << 20, 32 << 20, kAllDots,  //
     1e-6, 250e9, 116e9, 42e9, 66e9, 132e9, 32 << 20},
    {"skylake", "GenuineIntel", 6, 0x55, 0x55, 32 << 10, 1 << 20, 32 << 20, 0,  //
     1e-6, 89e9, 21e9, 8.5e9, 40e9, 72e9, 32 << 20},
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

void take_speeds(const Processor& processor, Target& target) {
  target.launch_seconds = processor.launch_seconds;
  target.l2_bandwidth = processor.l2_bandwidth;
  target.l3_bandwidth = processor.l3_bandwidth;
  target.memory_bandwidth = processor.memory_bandwidth;
  target.fma_rate = target.isa == Isa::Avx2 ? processor.fma_rate_avx2 : processor.fma_rate_avx512;
}

void imitate(const Processor& processor, Target& target) {
  take_speeds(processor, target);
  target.l1_bytes = processor.l1_bytes;
  target.l2_bytes = processor.l2_bytes;
  target.l3_bytes = processor.l3_bytes;
  target.bypass_bytes = processor.bypass_bytes;
  target.dots = static_cast<DotSet>(target.dots & processor.dots);
}

}  // namespace tiny

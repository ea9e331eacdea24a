#include "cost/machine.h"

namespace tiny {

Machine avx2_machine() {
  return Machine(avx2_target());
}

Machine avx512_machine() {
  return Machine(avx512_target());
}

double bandwidth_of(double bytes, const Machine& machine, double part) {
  if (bytes <= static_cast<double>(machine.l2_bytes) * part) return machine.l2_bandwidth;
  return bytes <= static_cast<double>(machine.l3_bytes) * part ? machine.l3_bandwidth
                                                               : machine.memory_bandwidth;
}

}  // namespace tiny

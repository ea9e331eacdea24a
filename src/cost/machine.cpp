#include "cost/machine.h"

namespace tiny {

Machine avx2_machine() {
  return Machine(avx2_target());
}

Machine avx512_machine() {
  return Machine(avx512_target());
}

double launch_seconds_of(double steps, const Machine& machine) {
  return steps < kSharedWorkMin ? machine.serial_launch_seconds : machine.launch_seconds;
}

double bandwidth_of(double bytes, const Machine& machine, double part) {
  if (bytes <= static_cast<double>(machine.l2_bytes) * part) return machine.l2_bandwidth;
  return bytes <= static_cast<double>(machine.l3_bytes) * part ? machine.l3_bandwidth
                                                               : machine.memory_bandwidth;
}

}  // namespace tiny

// The device "cpu": machine code in the host's memory, on a pool of threads.
//
// A launch whose range has more than one iteration is split into pieces that the pool's threads
// claim, unless it is known to be too short for that.  Launching takes no lock and, once the
// threads have their scratch, allocates nothing; several threads may launch at once.  Kernels run
// with denormals kept and exceptions masked, whatever the caller's floating-point state, which is
// restored.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "runtime/device.h"

namespace tiny {

struct CpuOptions {
  int threads = 0;         // of the pool, the caller's included; 0: the cores available
  bool perf_map = false;   // name kernels in /tmp/perf-PID.map
  int64_t kept_bytes = 0;  // of large buffers that are gone, for the next ones
  OwnThreads own{};        // the caller's, in place of the pool's
};

// Its `load` takes machine code, and throws Error{Device} where memory cannot be made executable;
// and bytecode, which it interprets.
std::unique_ptr<Device> make_cpu_device(const CpuOptions& options);

}  // namespace tiny

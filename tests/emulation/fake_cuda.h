// A driver of GPUs that are not there: libcuda.so.1, with the functions that the runtime asks for,
// over the emulated machine.
//
// What a driver may do late it does late: copies and launches of a stream are done when somebody
// waits for it, so that what relies on more fails.  Handles, ranges and bounds are checked; a
// mistake of the caller's that a driver would not see is an error here (a context that is left
// current, memory that is freed twice).  From the environment, looked at in every call:
//
//   FAKE_CUDA_DEVICES   how many there are; 1
//   FAKE_CUDA_VERSION   of the driver; 12080
//   FAKE_CUDA_COMPUTE   the capability; 90.  What else the device has is that of a product of it
//   FAKE_CUDA_MEMORY    bytes that each has; 2 GB
//   FAKE_CUDA_PEERS     0: devices do not reach each other's memory
//   FAKE_CUDA_SEED      of the order in which groups, warps and nodes of graphs run
//   FAKE_CUDA_FAIL      SYMBOL[:N[:CODE]]: the N-th call of it from now on (1: the next) fails with
//                       that code (999); counting begins anew when the text changes
//   FAKE_CUDA_LOG       1: faults of kernels are told on stderr
#pragma once

#include <cstdint>

extern "C" {

// How many objects of a kind there are: "memory", "host memory", "stream", "event", "module",
// "link", "graph", "context" (retained); of "calls", and of a function by its name, how many there
// have been.  -1: no such kind.
int64_t fake_cuda_count(const char* kind);
// The words of the last fault of a kernel; "" if there was none.
const char* fake_cuda_fault();
// As if the process were new: no objects, no lost devices, no current context of this thread.
void fake_cuda_reset();
}

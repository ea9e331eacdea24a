// The device "far": the interpreter as a graphics processor would be.  Its memory is not the
// host's, values in it lie as such a device wants them, and a queue does nothing before somebody
// waits for it.  What relies on a pointer, or forgets to wait, fails on it.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace tiny {

// Builds with devices of drivers have it; in another Error{Unsupported} says so.
std::unique_ptr<Device> make_far_device();
bool has_far_device();
inline constexpr const char* kNoFarDevice =
    "this build of the library has no devices of drivers, which it stands for (TINY_CUDA and "
    "TINY_OPENCL were OFF)";

}  // namespace tiny

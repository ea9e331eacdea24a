// What kernels of OpenCL C and who launches them agree on, beside the order of the arguments, which
// stands in render/c/opencl.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tiny {

// A queue's status in the device's memory: 0, or the first Check that failed, by its number and
// one, and its position.
struct OpenClStatus {
  int32_t check = 0;
  int32_t unused = 0;
  int64_t position = 0;
};
static_assert(offsetof(OpenClStatus, position) == 8 && sizeof(OpenClStatus) == 16);

}  // namespace tiny

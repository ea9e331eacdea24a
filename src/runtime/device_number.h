// Which of a driver's devices is meant.
#pragma once

#include <cstdint>

namespace tiny {

// The device of that number; of `parts` into which its units are dealt, the one of number `part`.
struct DeviceNumber {
  int64_t number = 0;
  int64_t part = 0;
  int64_t parts = 1;
};

}  // namespace tiny

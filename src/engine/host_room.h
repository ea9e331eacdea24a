// Memory of the host for a table that is made while a graph is built: it counts against the limit
// of the context as buffers do, and filling it ends when the call is to end.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "engine/context.h"
#include "runtime/device.h"

namespace tiny {

class HostRoom {
 public:
  // Error{Limit} if there is no room for so many elements of `bytes` each.
  HostRoom(Context& context, int64_t elements, int64_t bytes)
      : stop_(context.stop()),
        room_(Ref<MemoryUse>(&context.device().memory()),
              checked_mul(elements, bytes, "a table's size")) {}
  // With every element, or so.
  void check() {
    if ((++checks_ & (kOften - 1)) == 0) stop_.check();
  }

 private:
  static constexpr uint32_t kOften = 1 << 12;
  const StopSignal& stop_;
  MemoryRoom room_;
  uint32_t checks_ = 0;
};

}  // namespace tiny

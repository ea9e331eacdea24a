// A kernel on trial: buffers of the sizes that it needs, filled with small numbers, on which any
// code of that kernel is launched and timed.
//
// Sizes that a run would decide are the largest that stay small, the same for all code.  What a
// kernel both reads and writes is filled anew before each launch, so that values stay small.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/size.h"
#include "ir/kernel.h"
#include "runtime/device.h"

namespace tiny {

class Trial {
 public:
  // Error{Limit} or Error{OutOfMemory} where the buffers cannot be had.
  Trial(Device& device, const Kernel& kernel, const StopSignal& stop);

  // Seconds of one launch, unless the signal ends it: then what that throws; `threads_extent` is
  // that of the code, 0 without a THREAD range.
  double run(Executable& code, const SizeExpression& threads_extent);
  // A size as it is here.
  int64_t value(const SizeExpression& size) const { return size.value(variables_); }

 private:
  std::vector<int64_t> sizes(const Kernel& kernel) const;  // bytes of each parameter
  void fill(size_t param);

  Device& device_;
  const StopSignal& stop_;
  std::vector<KernelParam> params_;
  std::vector<int64_t> variables_;
  std::vector<Ref<Buffer>> buffers_;
  std::vector<std::string> patterns_;  // bytes that fill each buffer, over and over
  Ref<Queue> queue_;
};

}  // namespace tiny

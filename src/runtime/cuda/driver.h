// The driver's library, opened when a device is first asked for, and what its errors mean.
#pragma once

#include <string>

#include "base/ref.h"
#include "runtime/cuda/functions.h"

namespace tiny::cuda {

class Driver : public RefCounted {
 public:
  // Error{Device} that says what is missing: the library, a function, a version that is new enough.
  static Ref<Driver> open();
  const Functions& functions() const { return functions_; }
  int version() const { return version_; }  // 1000 * major + 10 * minor
  // "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
  std::string words(Result result, const char* call) const;
  // Error{OutOfMemory} or Error{Device} with these words.
  void check(Result result, const char* call) const;

 private:
  Driver() = default;
  Functions functions_;
  int version_ = 0;
};

// "12.4"
std::string version_text(int version);

// Whether nothing of a device can be used after that error, which each later call gives again.
bool loses_device(Result result);

}  // namespace tiny::cuda

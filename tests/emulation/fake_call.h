// What every function of the emulated driver begins with: the lock, the count, the failure that the
// environment plans, and what the call needs.
#pragma once

#include "tests/emulation/fake_driver.h"

// What is defined here otherwise than the runtime calls it does not compile.
extern "C" {
#define CUDA_FUNCTION(symbol, ...) tiny::cuda::Result symbol(__VA_ARGS__);
namespace tiny::cuda {
#include "runtime/cuda/functions.def"
}
}

namespace tiny::emulation {

// What the device is (fake_cuda.cpp).
int attribute_of(cuda::Attribute which);

struct FakeCall {
  enum class Needs : uint8_t { Nothing, Driver, Context };
  FakeCall(const char* symbol, Needs needs)
      : driver(FakeDriver::get()), guard(driver.lock), result(driver.planned(symbol)) {
    ++driver.calls;
    ++driver.calls_of[symbol];
    if (result != cuda::kSuccess) {
      // What a device does not outlive, this one does not.
      if (context() && result >= cuda::kIllegalAddress && result <= cuda::kLaunchFailed)
        context()->lost = result;
      return;
    }
    if (needs >= Needs::Driver && !driver.is_initialised) result = cuda::kNotInitialized;
    if (needs == Needs::Context && !context()) result = cuda::kInvalidContext;
    if (needs == Needs::Context && context() && context()->lost != cuda::kSuccess)
      result = context()->lost;
  }
  CUctx_st* context() const { return pushed().empty() ? nullptr : pushed().back(); }

  FakeDriver& driver;
  std::lock_guard<std::recursive_mutex> guard;
  cuda::Result result;
};

}  // namespace tiny::emulation

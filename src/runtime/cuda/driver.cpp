#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include "base/error.h"

namespace tiny::cuda {

namespace {

constexpr const char* kLibrary = "libcuda.so.1";

}  // namespace

std::string version_text(int version) {
  return cat(version / 1000, ".", version % 1000 / 10);
}

Ref<Driver> Driver::open() {
  // Not closed again: drivers have threads of their own.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char* why = library ? nullptr : dlerror();
  require(library != nullptr, Status::Device, "no CUDA driver: ", why ? why : kLibrary);
  Ref<Driver> driver(new Driver);
  Functions& f = driver->functions_;
  const auto find = [&](const char* symbol) {
    void* address = dlsym(library, symbol);
    require(address != nullptr, Status::Device, "the CUDA driver has no ", symbol,
            ": it is older than ", version_text(kDriverVersionMin));
    return address;
  };
  f.cuDriverGetVersion = reinterpret_cast<Result (*)(int*)>(find("cuDriverGetVersion"));
  if (f.cuDriverGetVersion(&driver->version_) != kSuccess) driver->version_ = 0;
  require(driver->version_ >= kDriverVersionMin, Status::Device, "the CUDA driver is of version ",
          version_text(driver->version_), "; needed is ", version_text(kDriverVersionMin));
#define CUDA_FUNCTION(symbol, ...) \
  f.symbol = reinterpret_cast<Result (*)(__VA_ARGS__)>(find(#symbol));
#include "runtime/cuda/functions.def"
  driver->check(f.cuInit(0), "cuInit");
  return driver;
}

std::string Driver::words(Result result, const char* call) const {
  const char *name = nullptr, *text = nullptr;
  functions_.cuGetErrorName(result, &name);
  functions_.cuGetErrorString(result, &text);
  if (!name) return cat(call, ": CUDA error ", result);
  return cat(call, ": ", name, text ? cat(" (", text, ")") : "");
}

void Driver::check(Result result, const char* call) const {
  if (result == kSuccess) return;
  throw_error(result == kOutOfMemory ? Status::OutOfMemory : Status::Device, words(result, call));
}

bool loses_device(Result result) {
  switch (result) {
    case kDeinitialized:
    case kDeviceUnavailable:
    case kEccUncorrectable:
    case kNvlinkUncorrectable:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kContextIsDestroyed:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
      return true;
    default:
      return false;
  }
}

}  // namespace tiny::cuda

// The emulated driver of GPUs (tests/emulation/fake_cuda.h) as tests of devices use it: by the
// loader, as the runtime does.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.h"

namespace tiny::testing {

// A variable of the environment for as long as this lives.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

inline constexpr const char* kNoFakeCuda =
    "libcuda.so.1 is not the emulated one: set LD_LIBRARY_PATH";

class FakeCuda {
 public:
  FakeCuda() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {}
  bool is_there() const { return library_ && dlsym(library_, "fake_cuda_reset"); }
  template <class F>
  F function(const char* symbol) const {
    return reinterpret_cast<F>(dlsym(library_, symbol));
  }
  void reset() const { function<void (*)()>("fake_cuda_reset")(); }
  int64_t count(const char* kind) const {
    return function<int64_t (*)(const char*)>("fake_cuda_count")(kind);
  }
  // The words of a kernel's last fault.
  std::string fault() const { return function<const char* (*)()>("fake_cuda_fault")(); }
  // The objects that nobody has given back; "": none.
  std::string left() const {
    std::string text;
    for (const char* kind :
         {"memory", "host memory", "stream", "event", "module", "link", "graph", "context"})
      if (const int64_t n = count(kind); n != 0) text += cat(n, " ", kind, "; ");
    return text;
  }

 private:
  void* library_;
};

}  // namespace tiny::testing

// Kernels by structure: what was compiled once is not compiled again.  Kernels are interned UOps,
// so equal structure is equal pointers.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/flags.h"
#include "engine/backend.h"
#include "engine/program.h"
#include "ir/kernel.h"

namespace tiny {

struct CompiledKernel {
  Ref<Executable> executable;
  Dim threads_extent = 0;
  KernelInfo info;
};

struct CompileTimes {  // seconds, since the context began
  double lower = 0;    // options, decomposition, linear program
  double load = 0;     // rendering and loading
  int64_t compiled = 0;
  int64_t cached = 0;
};

class KernelCache {
 public:
  KernelCache(Backend& backend, const Flags& flags) : backend_(backend), flags_(flags) {}

  // One compiled kernel for each; those not known are compiled as one batch.
  std::vector<const CompiledKernel*> compile(std::span<const Kernel> kernels);
  const CompileTimes& times() const { return times_; }

 private:
  struct Entry {
    std::vector<UOp> roots;  // keeps the key alive
    CompiledKernel compiled;
  };
  using Key = std::vector<const Node*>;
  static Key key_of(const Kernel& kernel);

  Backend& backend_;
  const Flags& flags_;
  std::map<Key, Entry> entries_;
  CompileTimes times_;
};

}  // namespace tiny

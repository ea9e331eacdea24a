// Kernels by structure: what was compiled once is not compiled again.  In memory kernels are
// interned UOps, so equal structure is equal pointers; on disk they are bytes
// (engine/code_cache.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/flags.h"
#include "engine/backend.h"
#include "engine/code_cache.h"
#include "engine/program.h"
#include "ir/kernel.h"

namespace tiny {

struct CompiledKernel {
  Ref<Executable> executable;
  int64_t threads_extent = 0;
  KernelInfo info;
};

struct CompileTimes {  // seconds, since the context began
  double lower = 0;    // options, decomposition, linear program
  double load = 0;     // rendering and loading
  int64_t compiled = 0;
  int64_t cached = 0;  // found in memory
  int64_t on_disk = 0;
};

class KernelCache {
 public:
  KernelCache(Backend& backend, const Flags& flags);

  // One compiled kernel for each, valid until the next call; those not known are compiled as one
  // batch.  `cached` (may be null) receives for each whether its code was there before.
  std::vector<const CompiledKernel*> compile(std::span<const Kernel> kernels,
                                             std::vector<uint8_t>* cached = nullptr);
  const CompileTimes& times() const { return times_; }
  size_t size() const { return entries_.size(); }
  const CodeCache& disk() const { return disk_; }

 private:
  struct Entry {
    std::vector<UOp> roots;  // keeps the key alive
    CompiledKernel compiled;
    int64_t used = 0;  // the last call that asked for it
  };
  // A kernel that is being compiled.
  struct Fresh {
    const Kernel* kernel = nullptr;
    Entry* entry = nullptr;
    std::string disk_key;
    bool on_disk = false;
    Code code;
  };
  using Key = std::vector<const Node*>;
  static Key key_of(const Kernel& kernel);
  void compile_fresh(std::vector<Fresh>& fresh);
  LinearProgram lower(const Fresh& fresh);
  void load(std::vector<Fresh>& fresh);
  void forget_oldest();

  Backend& backend_;
  const Flags& flags_;
  CodeCache disk_;
  std::map<Key, Entry> entries_;
  int64_t calls_ = 0;
  CompileTimes times_;
};

}  // namespace tiny

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
#include "engine/observe.h"
#include "engine/program.h"
#include "ir/kernel.h"

namespace tiny {

struct CompiledKernel {
  Ref<Executable> executable;
  int64_t threads_extent = 0;
  KernelInfo info;
};

// How far down a kernel's text is wanted.
enum class SourceStage : uint8_t { Uops, Linear, C, Asm };

class KernelCache {
 public:
  KernelCache(Backend& backend, const Flags& flags, Observer& observer)
      : backend_(backend), flags_(flags), observer_(observer) {}

  // One compiled kernel for each; those not known are compiled as one batch.
  std::vector<const CompiledKernel*> compile(std::span<const Kernel> kernels);
  const CompileCounts& times() const { return observer_.compiles(); }
  // What compiling the kernel would give, without rendering and loading it.
  CodegenResult lower(const Kernel& kernel) const;
  // The kernel with this code as text, made anew; Error{Unsupported} if the cache has dropped it.
  std::string source(const Executable* code, SourceStage stage) const;

 private:
  struct Entry {
    Kernel kernel;  // keeps the key alive
    CompiledKernel compiled;
  };
  using Key = std::vector<const Node*>;
  static Key key_of(const Kernel& kernel);
  PipelineOptions pipeline_options() const;
  // "r_64_10", then "r_64_10n1", "r_64_10n2", ..
  std::string unique_name(const std::string& shape);

  Backend& backend_;
  const Flags& flags_;
  Observer& observer_;
  std::map<Key, Entry> entries_;
  std::map<std::string, int64_t> names_;  // how often each was given
};

}  // namespace tiny

// Kernels by structure: what was compiled once is not compiled again.  In memory kernels are
// interned UOps, so equal structure is equal pointers; on disk they are bytes
// (engine/disk_cache.h).  With the setting `beam` the optimisations of each kernel are searched for
// (engine/search.h), and the list that was found is kept beside its code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/flags.h"
#include "base/stop.h"
#include "engine/backend.h"
#include "engine/disk_cache.h"
#include "engine/observe.h"
#include "engine/option_lists.h"
#include "engine/program.h"
#include "engine/stored.h"
#include "ir/kernel.h"

namespace tiny {

struct CompiledKernel {
  Ref<Executable> executable;
  SizeExpression threads_extent;  // by the kernel's variables
  KernelInfo info;
};

// How far down a kernel's text is wanted.
enum class SourceStage : uint8_t { Uops, Linear, C, Asm };

class KernelCache {
 public:
  // Of equal kernels, while their nodes live, and of no others.
  using Key = std::vector<const Node*>;
  static Key key_of(const Kernel& kernel);

  // `stop` is checked between kernels.
  KernelCache(Backend& backend, const Flags& flags, Observer& observer, const StopSignal& stop);

  // One compiled kernel for each, valid until the next call; those not known are compiled as one
  // batch.  `runs`: how often they will run, about.  `cached` (may be null) receives for each
  // whether its code was there before.
  std::vector<const CompiledKernel*> compile(std::span<const Kernel> kernels, double runs,
                                             std::vector<uint8_t>* cached = nullptr);
  // The kernels of these files of the disk cache, valid until the next call; none if one is not
  // there or cannot be loaded.  Those that the bundle has are not read.
  std::vector<const CompiledKernel*> load_files(std::span<const std::string> names,
                                                const DiskBundle& bundle = {});
  // Settings that decide code have changed: what was compiled is not found again.
  void forget();
  const CompileCounts& times() const { return observer_.compiles(); }
  size_t size() const { return entries_.size(); }
  DiskCache& disk() { return disk_; }
  // What compiling the kernel would give, without rendering and loading it; where a search would
  // come first and has not, what the cost model gives.  In nodes of `graph`.
  CodegenResult lower(const Kernel& kernel, Graph& graph);
  // What the renderer made this code of, made anew; Error{Unsupported} if the cache has dropped it.
  LinearProgram linear_program(const Executable* code) const;
  // The kernel with this code as text, made anew; Error{Unsupported} if the cache has dropped it.
  std::string source(const Executable* code, SourceStage stage) const;

 private:
  struct Entry {
    Kernel kernel;  // keeps the key alive
    CompiledKernel compiled;
    int64_t used = 0;  // the last call that asked for it
  };
  // A kernel that is being compiled.
  struct Fresh {
    Entry* entry = nullptr;
    std::string key;
    bool on_disk = false;
    std::string shape;  // its name, before it is made unique
    Code code;          // none: the executable is there
  };
  PipelineOptions pipeline_options() const;
  // What a search has found for a kernel.
  struct Found {
    bool is_better = false;  // than the cost model's
    std::string options;     // if so
  };
  bool searches() const;
  std::optional<Found> find_list(const Kernel& kernel, const std::string& key) const;
  Found search(const Kernel& kernel);
  // "r_64_10", then "r_64_10n1", "r_64_10n2", ..
  std::string unique_name(const std::string& shape);
  struct LoweredKernel;
  CodegenResult generate_again(const Executable* code, Graph& graph) const;
  PipelineOptions chosen_options(const Kernel& kernel, const std::string* fixed);
  std::unique_ptr<LoweredKernel> lowered_kernel(const Kernel& kernel);
  LinearProgram take(Fresh& fresh, LoweredKernel& made);
  std::vector<LinearProgram> lower(std::span<Fresh* const> all);
  std::vector<Code> render(std::span<const LinearProgram> programs);
  bool take_from_disk(Fresh& fresh);
  // A kernel without its executable, and its code.
  Code unpack(StoredKernel stored, const std::string& file, CompiledKernel& kernel);
  void compile_fresh(std::vector<Fresh>& fresh);
  void load(std::vector<Fresh>& fresh);
  void forget_oldest();

  Backend& backend_;
  const Flags& flags_;
  Observer& observer_;
  const StopSignal& stop_;
  DiskCache disk_;
  OptionLists fixed_;  // by the settings
  std::map<Key, Entry> entries_;
  std::map<std::string, CompiledKernel> files_;  // what came from the disk cache, by file
  std::map<std::string, int64_t> names_;         // how often each was given
  std::map<std::string, Found> lists_;           // by the key of the kernel
  int64_t calls_ = 0;
  double runs_ = kProgramRuns;  // of the kernels of the last call
  bool told_ = false;           // that there is no search
};

}  // namespace tiny

#include "engine/kernel_cache.h"

#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "codegen/pipeline.h"

namespace tiny {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

KernelCache::Key KernelCache::key_of(const Kernel& kernel) {
  Key key;
  for (const UOp& root : kernel.roots) key.push_back(root.node());
  for (const KernelRange& r : kernel.ranges) key.push_back(r.range.node());
  return key;
}

std::vector<const CompiledKernel*> KernelCache::compile(std::span<const Kernel> kernels) {
  const double start = now();
  std::vector<Entry*> entries;
  std::vector<Entry*> fresh;
  std::vector<LinearProgram> programs;
  PipelineOptions options;
  options.verify = flags_.spec != 0;
  options.optimise = flags_.noopt == 0;
  options.debug = static_cast<int>(flags_.debug);
  options.options_text = flags_.opts;
  for (const Kernel& kernel : kernels) {
    auto [place, added] = entries_.try_emplace(key_of(kernel));
    Entry& entry = place->second;
    entries.push_back(&entry);
    if (!added) {
      ++times_.cached;
      continue;
    }
    try {
      CodegenResult result = generate(kernel, backend_.target(), options);
      for (const KernelRange& r : kernel.ranges) entry.roots.push_back(r.range);
      entry.roots.insert(entry.roots.end(), kernel.roots.begin(), kernel.roots.end());
      entry.compiled.threads_extent = result.threads_extent;
      entry.compiled.info.name = result.program.name;
      entry.compiled.info.options = result.options;
      entry.compiled.info.linear_ops = static_cast<int64_t>(result.program.ops.size());
      entry.compiled.info.operations = result.operations;
      entry.compiled.info.bytes = result.bytes;
      programs.push_back(std::move(result.program));
    } catch (...) {
      entries_.erase(place);
      for (Entry* e : fresh)
        std::erase_if(entries_, [e](const auto& item) { return &item.second == e; });
      throw;
    }
    fresh.push_back(&entry);
  }
  const double lowered = now();
  if (!programs.empty()) {
    std::vector<LoadedKernel> loaded;
    try {
      loaded = backend_.load(programs);
    } catch (...) {
      for (Entry* e : fresh)
        std::erase_if(entries_, [e](const auto& item) { return &item.second == e; });
      throw;
    }
    for (size_t i = 0; i < fresh.size(); ++i) {
      fresh[i]->compiled.executable = loaded[i].executable;
      fresh[i]->compiled.info.interpreted = loaded[i].interpreted;
      if (flags_.debug >= 4) std::fprintf(stderr, "%s\n", backend_.listing(programs[i]).c_str());
    }
  }
  times_.compiled += static_cast<int64_t>(fresh.size());
  times_.lower += lowered - start;
  times_.load += now() - lowered;
  std::vector<const CompiledKernel*> out;
  for (Entry* e : entries) out.push_back(&e->compiled);
  return out;
}

}  // namespace tiny

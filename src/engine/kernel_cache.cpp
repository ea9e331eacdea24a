#include "engine/kernel_cache.h"

#include "base/error.h"
#include "codegen/pipeline.h"
#include "render/c/c.h"

namespace tiny {

KernelCache::Key KernelCache::key_of(const Kernel& kernel) {
  Key key;
  for (const UOp& root : kernel.roots) key.push_back(root.node());
  for (const KernelRange& r : kernel.ranges) key.push_back(r.range.node());
  return key;
}

PipelineOptions KernelCache::pipeline_options() const {
  PipelineOptions options;
  options.verify = flags_.spec != 0;
  options.optimise = flags_.noopt == 0;
  options.options_text = flags_.opts;
  return options;
}

std::string KernelCache::unique_name(const std::string& shape) {
  const int64_t before = names_[shape]++;
  return before == 0 ? shape : cat(shape, "n", before);
}

CodegenResult KernelCache::lower(const Kernel& kernel) const {
  return generate(kernel, backend_.target(), pipeline_options());
}

std::string KernelCache::source(const Executable* code, SourceStage stage) const {
  for (const auto& [key, entry] : entries_) {
    if (entry.compiled.executable.get() != code) continue;
    CodegenResult result = lower(entry.kernel);
    result.program.name = entry.compiled.info.name;
    switch (stage) {
      case SourceStage::Uops:
        return uops_text(result.kernel);
      case SourceStage::Linear:
        return to_string(result.program);
      case SourceStage::C:
        return render_c(result.program).text;
      case SourceStage::Asm:
        return backend_.listing(result.program);
    }
  }
  throw Error(Status::Unsupported, "the kernel is no longer in the context's cache");
}

std::vector<const CompiledKernel*> KernelCache::compile(std::span<const Kernel> kernels) {
  const double start = observer_.now();
  CompileCounts& times = observer_.compiles();
  std::vector<Entry*> entries;
  std::vector<Entry*> fresh;
  std::vector<LinearProgram> programs;
  PipelineOptions options = pipeline_options();
  for (const Kernel& kernel : kernels) {
    auto [place, added] = entries_.try_emplace(key_of(kernel));
    Entry& entry = place->second;
    entries.push_back(&entry);
    if (!added) {
      ++times.cached;
      continue;
    }
    try {
      const double begin = observer_.now();
      observer_.lowering(kernel);
      observer_.watch_passes(options);
      CodegenResult result = generate(kernel, backend_.target(), options);
      result.program.name = unique_name(result.program.name);
      observer_.lowered(kernel, result, begin);
      entry.kernel = kernel;
      entry.compiled.threads_extent = result.threads_extent;
      entry.compiled.info.name = result.program.name;
      entry.compiled.info.options = result.options;
      entry.compiled.info.linear_ops = static_cast<int64_t>(result.program.ops.size());
      entry.compiled.info.operations = result.operations;
      entry.compiled.info.bytes = result.bytes;
      entry.compiled.info.params = kernel.params;
      programs.push_back(std::move(result.program));
    } catch (...) {
      entries_.erase(place);
      for (Entry* e : fresh)
        std::erase_if(entries_, [e](const auto& item) { return &item.second == e; });
      throw;
    }
    fresh.push_back(&entry);
  }
  const double lowered = observer_.now();
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
      times.interpreted += loaded[i].interpreted;
      observer_.rendered(programs[i], backend_, loaded[i].interpreted);
    }
    observer_.span("compile", cat("load ", fresh.size(), " kernels"), lowered, observer_.now());
  }
  times.compiled += std::ssize(fresh);
  times.lower += lowered - start;
  times.load += observer_.now() - lowered;
  std::vector<const CompiledKernel*> out;
  for (Entry* e : entries) out.push_back(&e->compiled);
  return out;
}

}  // namespace tiny

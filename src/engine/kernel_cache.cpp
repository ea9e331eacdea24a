#include "engine/kernel_cache.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "codegen/pipeline.h"
#include "engine/kernel_key.h"

namespace tiny {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

KernelCache::KernelCache(Backend& backend, const Flags& flags)
    : backend_(backend),
      flags_(flags),
      disk_(flags, cat(backend.device().name(), " ", target_key(backend.target()))) {
}

KernelCache::Key KernelCache::key_of(const Kernel& kernel) {
  Key key;
  for (const UOp& root : kernel.roots) key.push_back(root.node());
  for (const KernelRange& r : kernel.ranges) key.push_back(r.range.node());
  return key;
}

LinearProgram KernelCache::lower(const Fresh& fresh) {
  PipelineOptions options;
  options.verify = flags_.spec != 0;
  options.optimise = flags_.noopt == 0;
  options.debug = static_cast<int>(flags_.debug);
  options.options_text = flags_.opts;
  CodegenResult result = generate(*fresh.kernel, backend_.target(), options);
  CompiledKernel& compiled = fresh.entry->compiled;
  compiled.threads_extent = result.threads_extent;
  compiled.info.name = result.program.name;
  compiled.info.options = result.options;
  compiled.info.linear_ops = static_cast<int64_t>(result.program.ops.size());
  compiled.info.operations = result.operations;
  compiled.info.bytes = result.bytes;
  return std::move(result.program);
}

// Codes of all, from disk or made now.
void KernelCache::compile_fresh(std::vector<Fresh>& fresh) {
  const double start = now();
  std::vector<LinearProgram> programs;
  for (Fresh& f : fresh) {
    if (disk_.enabled()) f.disk_key = kernel_key(*f.kernel);
    if (auto stored = disk_.find(f.disk_key)) {
      f.on_disk = true;
      f.code = std::move(stored->code);
      f.entry->compiled.threads_extent = stored->threads_extent;
      f.entry->compiled.info = std::move(stored->info);
      ++times_.on_disk;
    } else {
      programs.push_back(lower(f));
    }
  }
  const double lowered = now();
  times_.lower += lowered - start;
  if (!programs.empty()) {
    std::vector<Code> codes = backend_.render(programs, Backend::Form::Best);
    size_t next = 0;
    for (Fresh& f : fresh)
      if (!f.on_disk) f.code = std::move(codes[next++]);
    if (flags_.debug >= 4)
      for (const LinearProgram& program : programs)
        std::fprintf(stderr, "%s\n", backend_.listing(program).c_str());
  }
  load(fresh);
  times_.load += now() - lowered;
  times_.compiled += static_cast<int64_t>(programs.size());
}

void KernelCache::load(std::vector<Fresh>& fresh) {
  std::vector<Code> codes;
  for (Fresh& f : fresh) codes.push_back(std::move(f.code));
  std::vector<LoadedKernel> loaded;
  bool refused = false;
  try {
    loaded = backend_.load(codes);
  } catch (const Error& e) {
    if (e.status() != Status::Device) throw;
    refused = true;
  }
  if (refused) {  // machine code cannot be had in this process
    std::vector<LinearProgram> programs;
    for (const Fresh& f : fresh) programs.push_back(lower(f));
    codes = backend_.render(programs, Backend::Form::Interpretable);
    loaded = backend_.load(codes);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    CompiledKernel& compiled = fresh[i].entry->compiled;
    compiled.executable = std::move(loaded[i].executable);
    compiled.info.interpreted = loaded[i].interpreted;
    if (disk_.enabled() && !fresh[i].on_disk && !refused)
      disk_.store(fresh[i].disk_key, {std::move(codes[i]), compiled.threads_extent, compiled.info});
  }
}

// Keeps what this call asked for; of the rest a quarter more than must go.
void KernelCache::forget_oldest() {
  const auto limit = static_cast<size_t>(std::max<int64_t>(flags_.cache_kernels, 0));
  if (entries_.size() <= limit) return;
  std::vector<int64_t> used;
  for (const auto& [key, entry] : entries_) used.push_back(entry.used);
  const size_t excess = std::min(entries_.size() - limit + limit / 4, used.size() - 1);
  std::nth_element(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(excess), used.end());
  const int64_t oldest_kept = std::min(used[excess], calls_);
  std::erase_if(entries_, [&](const auto& item) { return item.second.used < oldest_kept; });
}

std::vector<const CompiledKernel*> KernelCache::compile(std::span<const Kernel> kernels,
                                                        std::vector<uint8_t>* cached) {
  ++calls_;
  std::vector<Entry*> entries;
  std::vector<Fresh> fresh;
  std::vector<size_t> fresh_at;
  for (const Kernel& kernel : kernels) {
    auto [place, added] = entries_.try_emplace(key_of(kernel));
    Entry& entry = place->second;
    entries.push_back(&entry);
    entry.used = calls_;
    if (!added) {
      ++times_.cached;
      continue;
    }
    for (const KernelRange& r : kernel.ranges) entry.roots.push_back(r.range);
    entry.roots.insert(entry.roots.end(), kernel.roots.begin(), kernel.roots.end());
    fresh.push_back({&kernel, &entry, {}, false, {}});
    fresh_at.push_back(entries.size() - 1);
  }
  try {
    if (!fresh.empty()) compile_fresh(fresh);
  } catch (...) {
    std::erase_if(entries_, [](const auto& item) { return !item.second.compiled.executable; });
    throw;
  }
  if (cached) {
    cached->assign(kernels.size(), 1);
    for (size_t i = 0; i < fresh.size(); ++i) (*cached)[fresh_at[i]] = fresh[i].on_disk;
  }
  forget_oldest();
  std::vector<const CompiledKernel*> out;
  for (Entry* e : entries) out.push_back(&e->compiled);
  return out;
}

}  // namespace tiny

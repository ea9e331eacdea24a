#include "engine/kernel_cache.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "codegen/options.h"
#include "codegen/pipeline.h"
#include "engine/kernel_key.h"
#include "engine/search.h"
#include "render/c/c.h"

namespace tiny {

KernelCache::KernelCache(Backend& backend, const Flags& flags, Observer& observer,
                         const StopSignal& stop)
    : backend_(backend),
      flags_(flags),
      observer_(observer),
      stop_(stop),
      disk_(flags, cat(backend.device().name(), " ", target_key(backend.target()))) {
}

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

// Only what computes can be timed, and only optimisations that nobody has fixed are searched for.
bool KernelCache::searches() const {
  const std::string& device = backend_.device().name();
  return flags_.beam > 0 && flags_.noopt == 0 && flags_.opts.empty() && device != "interp" &&
         device != "null";
}

namespace {

constexpr double kSearchSecondsMax = 120;  // for one kernel, however wide the search

std::string list_key(const std::string& kernel_key) {
  return "beam " + kernel_key;
}

void use_list(PipelineOptions& options, bool is_better, const std::string& list) {
  if (!is_better) return;
  options.options_text = list;
  options.optimise = false;
}

}  // namespace

// From memory or from disk; a list that does not fit the kernel is none.
std::optional<KernelCache::Found> KernelCache::find_list(const Kernel& kernel,
                                                         const std::string& key) const {
  if (const auto known = lists_.find(key); known != lists_.end()) return known->second;
  const auto content = disk_.find(list_key(key));
  if (!content) return std::nullopt;
  ByteReader in(*content);
  Found found;
  found.is_better = in.number<uint8_t>() != 0;
  found.options = in.text();
  if (!in.at_end()) return std::nullopt;
  try {
    apply_options(prepare_kernel(kernel, backend_.target()), parse_options(found.options));
  } catch (const Error& e) {
    if (e.status() != Status::InvalidArgument) throw;
    return std::nullopt;
  }
  return found;
}

// The list that is known, or that a search finds now.
KernelCache::Found KernelCache::search(const Kernel& kernel) {
  const std::string key = kernel_key(kernel);
  std::optional<Found> found = find_list(kernel, key);
  if (!found) {
    SearchLimits limits;
    limits.width = flags_.beam;
    limits.seconds = std::min(5.0 * static_cast<double>(1 + flags_.beam), kSearchSecondsMax);
    const SearchResult result = search_options(
        kernel, {backend_, observer_, stop_, flags_.threads_of_caller}, pipeline_options(), limits);
    ++observer_.compiles().searched;
    observer_.compiles().candidates += result.candidates;
    found = Found{result.is_better, result.options};
    disk_.store(
        list_key(key),
        ByteWriter().number(static_cast<uint8_t>(found->is_better)).text(found->options).result());
  }
  if (std::ssize(lists_) > flags_.cache_kernels) lists_.clear();
  lists_.insert_or_assign(key, *found);
  return *found;
}

CodegenResult KernelCache::lower(const Kernel& kernel) const {
  PipelineOptions options = pipeline_options();
  if (searches())
    if (const auto found = find_list(kernel, kernel_key(kernel)))
      use_list(options, found->is_better, found->options);
  return generate(kernel, backend_.target(), options);
}

std::string KernelCache::source(const Executable* code, SourceStage stage) const {
  for (const auto& [key, entry] : entries_) {
    if (entry.compiled.executable.get() != code) continue;
    PipelineOptions options = pipeline_options();
    use_list(options, true, entry.compiled.info.options);
    CodegenResult result = generate(entry.kernel, backend_.target(), options);
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
  throw Error(Status::Unsupported,
              "the kernel's source is not known: its code came from the disk cache, or the context "
              "has dropped it; the option cache = 0 compiles anew");
}

LinearProgram KernelCache::lower(Fresh& fresh) {
  const double begin = observer_.now();
  const Kernel& kernel = fresh.entry->kernel;
  PipelineOptions options = pipeline_options();
  if (searches()) {
    const Found found = search(kernel);
    use_list(options, found.is_better, found.options);
  } else if (flags_.beam > 0 && observer_.tells(1) && !std::exchange(told_, true)) {
    observer_.tell(cat("no search for optimisations (TINY_BEAM=", flags_.beam, "): ",
                       flags_.noopt != 0 || !flags_.opts.empty()
                           ? std::string("the settings fix them")
                           : cat("on ", backend_.device().name(), " nothing is to be gained"),
                       "\n"));
  }
  observer_.lowering(kernel);
  observer_.watch_passes(options);
  CodegenResult result = generate(kernel, backend_.target(), options);
  fresh.shape = result.program.name;
  result.program.name = unique_name(fresh.shape);
  observer_.lowered(kernel, result, begin);
  CompiledKernel& compiled = fresh.entry->compiled;
  compiled.threads_extent = SizeExpression(result.threads_extent, kernel.variables);
  compiled.info.name = result.program.name;
  compiled.info.options = result.options;
  compiled.info.linear_ops = static_cast<int64_t>(result.program.ops.size());
  compiled.info.operations = result.operations;
  compiled.info.bytes = result.bytes;
  compiled.info.params = kernel.params;
  return std::move(result.program);
}

Code KernelCache::unpack(StoredKernel stored, const std::string& file, CompiledKernel& kernel) {
  kernel.threads_extent = stored.threads_extent;
  kernel.info = std::move(stored.info);
  kernel.info.name = stored.code.name = unique_name(kernel.info.name);
  kernel.info.file = file;
  return std::move(stored.code);
}

bool KernelCache::take_from_disk(Fresh& fresh) {
  if (!disk_.enabled()) return false;
  fresh.key = kernel_key(fresh.entry->kernel);
  const std::string file = disk_.name_of(fresh.key);
  CompiledKernel& compiled = fresh.entry->compiled;
  if (const auto known = files_.find(file); known != files_.end()) {
    compiled = known->second;
    fresh.on_disk = true;
    return true;
  }
  const auto content = disk_.find(fresh.key);
  if (!content) return false;
  auto stored = decode_kernel(*content);
  if (!stored) return false;
  fresh.on_disk = true;
  fresh.code = unpack(std::move(*stored), file, compiled);
  return true;
}

// Codes of all, from disk or made now.
void KernelCache::compile_fresh(std::vector<Fresh>& fresh) {
  const double start = observer_.now();
  CompileCounts& times = observer_.compiles();
  std::vector<LinearProgram> programs;
  int64_t done = 0;
  for (Fresh& f : fresh) {
    stop_.step("compile", f.entry->kernel.name, done++, std::ssize(fresh));
    if (!take_from_disk(f)) programs.push_back(lower(f));
  }
  stop_.step("compile", fresh.back().entry->kernel.name, done, done);
  times.lower += observer_.now() - start;
  if (!programs.empty()) {
    std::vector<Code> codes = backend_.render(programs, Backend::Form::Best);
    size_t next = 0;
    for (Fresh& f : fresh) {
      if (f.on_disk) continue;
      observer_.rendered(programs[next], backend_, codes[next].kind == CodeKind::Bytecode);
      f.code = std::move(codes[next++]);
    }
  }
  times.compiled += std::ssize(programs);
  times.on_disk += std::ssize(fresh) - std::ssize(programs);
}

void KernelCache::load(std::vector<Fresh>& all) {
  std::vector<Fresh*> fresh;
  std::vector<Code> codes;
  for (Fresh& f : all) {
    if (f.entry->compiled.executable) continue;  // from a file that was loaded before
    fresh.push_back(&f);
    codes.push_back(std::move(f.code));
  }
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
    for (Fresh* f : fresh) programs.push_back(lower(*f));
    codes = backend_.render(programs, Backend::Form::Interpretable);
    loaded = backend_.load(codes);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    CompiledKernel& compiled = fresh[i]->entry->compiled;
    compiled.executable = std::move(loaded[i].executable);
    compiled.info.interpreted = loaded[i].interpreted;
    observer_.compiles().interpreted += loaded[i].interpreted;
    const bool is_kept = disk_.enabled() && codes[i].kind != CodeKind::C && !refused;
    if (!is_kept || fresh[i]->on_disk) continue;
    StoredKernel stored{std::move(codes[i]), compiled.threads_extent, compiled.info};
    stored.info.name = fresh[i]->shape;
    disk_.store(fresh[i]->key, encode_kernel(stored));
    compiled.info.file = disk_.name_of(fresh[i]->key);
  }
}

std::vector<const CompiledKernel*> KernelCache::load_files(std::span<const std::string> names) {
  if (std::ssize(files_) > flags_.cache_kernels) files_.clear();
  std::vector<Code> codes;
  std::vector<CompiledKernel> kernels;
  for (const std::string& name : names) {
    const bool is_known =
        files_.contains(name) ||
        std::ranges::any_of(kernels, [&](const CompiledKernel& k) { return k.info.file == name; });
    if (is_known) continue;
    const auto content = disk_.find_named(name);
    auto stored = content ? decode_kernel(*content) : std::nullopt;
    if (!stored) return {};
    codes.push_back(unpack(std::move(*stored), name, kernels.emplace_back()));
  }
  try {
    std::vector<LoadedKernel> loaded = backend_.load(codes);
    for (size_t i = 0; i < kernels.size(); ++i) {
      kernels[i].executable = std::move(loaded[i].executable);
      kernels[i].info.interpreted = loaded[i].interpreted;
      observer_.compiles().interpreted += loaded[i].interpreted;
    }
  } catch (const Error& e) {
    if (e.status() != Status::Device) throw;
    return {};
  }
  observer_.compiles().on_disk += std::ssize(kernels);
  observer_.compiles().cached += std::ssize(names) - std::ssize(kernels);
  for (CompiledKernel& kernel : kernels) {
    const std::string name = kernel.info.file;
    files_.emplace(name, std::move(kernel));
  }
  std::vector<const CompiledKernel*> out;
  for (const std::string& name : names) out.push_back(&files_.at(name));
  return out;
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
      ++observer_.compiles().cached;
      continue;
    }
    entry.kernel = kernel;
    fresh_at.push_back(entries.size() - 1);
    fresh.push_back({});
    fresh.back().entry = &entry;
  }
  try {
    if (!fresh.empty()) {
      compile_fresh(fresh);
      const double lowered = observer_.now();
      load(fresh);
      observer_.compiles().load += observer_.now() - lowered;
      observer_.span("compile", cat("load ", fresh.size(), " kernels"), lowered, observer_.now());
    }
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

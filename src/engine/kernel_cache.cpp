#include "engine/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/kept_blocks.h"
#include "base/thread_pool.h"
#include "codegen/options/options.h"
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
      disk_(flags, cat(backend.device().name(), " ", machine_key(backend.machine()))),
      fixed_(flags.opts) {
}

KernelCache::Key KernelCache::key_of(const Kernel& kernel) {
  Key key;
  key.reserve(kernel.roots.size() + kernel.ranges.size());
  for (const UOp& root : kernel.roots) key.push_back(root.node());
  for (const KernelRange& r : kernel.ranges) key.push_back(r.range.node());
  return key;
}

PipelineOptions KernelCache::pipeline_options() const {
  PipelineOptions options;
  options.verify = flags_.spec != 0;
  options.optimise = flags_.noopt == 0;
  options.runs = runs_;
  return options;
}

std::string KernelCache::unique_name(const std::string& shape) {
  const int64_t before = names_[shape]++;
  return before == 0 ? shape : cat(shape, "n", before);
}

bool KernelCache::searches() const {
  return flags_.beam > 0 && flags_.noopt == 0 && backend_.is_fast();
}

namespace {

// Whether the program has loops, and no vector in any of them.
bool is_scalar(const LinearProgram& program) {
  return std::ranges::none_of(program.ops, [](const LinearOp& op) { return op.dtype.lanes > 1; }) &&
         std::ranges::any_of(program.ops, [](const LinearOp& op) { return op.op == Op::Loop; });
}

bool has_checks(const LinearProgram& program) {
  return std::ranges::any_of(program.ops, [](const LinearOp& op) { return op.op == Op::Check; });
}

constexpr double kSearchSecondsMax = 120;  // for one kernel, however wide the search

std::string list_key(const std::string& kernel_key) {
  return "beam " + kernel_key;
}

void use_list(PipelineOptions& options, bool is_better, const std::string& list) {
  if (!is_better) return;
  options.options_text = list;
  options.optimise = false;
}

// An error says of which kernel it is, if it is about a list of the settings.
CodegenResult generate_named(const Kernel& kernel, const Machine& target,
                             const PipelineOptions& options, bool is_fixed) {
  try {
    return generate(kernel, target, options);
  } catch (const Error& e) {
    if (!is_fixed || e.status() != Status::InvalidArgument) throw;
    throw e.at(cat("opts: kernel ", structure_name(kernel)));
  }
}

}  // namespace

// From memory or from disk; a list that does not fit the kernel is none.
std::optional<KernelCache::Found> KernelCache::find_list(const Kernel& kernel,
                                                         const std::string& key) const {
  if (const auto known = lists_.find(key); known != lists_.end()) return known->second;
  const auto content = disk_.find(list_key(key));
  if (!content) return std::nullopt;
  ByteReader in(content->view());
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
    const SearchResult result =
        search_options(kernel, {backend_, observer_, stop_}, pipeline_options(), limits);
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

CodegenResult KernelCache::lower(const Kernel& kernel, Graph& graph) {
  PipelineOptions options = pipeline_options();
  const std::string* fixed = fixed_.find(kernel);
  if (fixed)
    use_list(options, true, *fixed);
  else if (searches())
    if (const auto found = find_list(kernel, kernel_key(kernel)))
      use_list(options, found->is_better, found->options);
  return generate_named(copy_kernel(kernel, graph), backend_.machine(), options, fixed != nullptr);
}

CodegenResult KernelCache::generate_again(const Executable* code, Graph& graph) const {
  for (const auto& [key, entry] : entries_) {
    if (entry.compiled.executable.get() != code) continue;
    PipelineOptions options = pipeline_options();
    use_list(options, true, entry.compiled.info.options);
    graph.set_stop(&stop_);
    CodegenResult result = generate(copy_kernel(entry.kernel, graph), backend_.machine(), options);
    result.program.name = entry.compiled.info.name;
    return result;
  }
  throw_error(Status::Unsupported,
              "the kernel's source is not known: its code came from the disk cache, or the context "
              "has dropped it; the option cache = 0 compiles anew");
}

LinearProgram KernelCache::linear_program(const Executable* code) const {
  Graph graph;
  return generate_again(code, graph).program;
}

std::string KernelCache::source(const Executable* code, SourceStage stage) const {
  Graph graph;
  const CodegenResult result = generate_again(code, graph);
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
  return {};
}

// One kernel on its way, in a graph of its own: a graph is one thread's, and what was built in the
// context's before must not show in the code.
struct KernelCache::LoweredKernel {
  LoweredKernel(PipelineOptions wanted, bool by_settings)
      : options(std::move(wanted)), is_fixed(by_settings) {}
  std::optional<Graph> graph;
  Kernel kernel;
  PipelineOptions options;
  bool is_fixed;  // the list is one of the settings
  CodegenResult result;
  SizeExpression threads_extent;
  std::optional<KernelInfo::OfSizes> of_sizes;

  // Reads the graph of `original`.
  void begin(const Kernel& original, const StopSignal& stop) {
    kernel = copy_kernel(original, graph.emplace());
    graph->set_stop(&stop);
  }
  void run(const Machine& target) {
    result = generate_named(kernel, target, options, is_fixed);
    threads_extent = SizeExpression(result.threads_extent, kernel.variables);
    if (const auto& of = result.figures_of_sizes)
      of_sizes = {SizeExpression(of->operations, kernel.variables),
                  SizeExpression(of->bytes, kernel.variables)};
  }
  // Leaves what does not need the graph, whose memory serves the next kernel.
  void shrink() {
    result.kernel = {};
    result.threads_extent = 0;
    result.figures_of_sizes.reset();
    kernel = {};
    graph.reset();
  }
};

// The options that the settings or a search fix for a kernel.
PipelineOptions KernelCache::chosen_options(const Kernel& kernel, const std::string* fixed) {
  PipelineOptions options = pipeline_options();
  if (fixed) {
    use_list(options, true, *fixed);
  } else if (searches()) {
    const Found found = search(kernel);
    use_list(options, found.is_better, found.options);
  } else if (flags_.beam > 0 && observer_.tells(1) && !std::exchange(told_, true)) {
    observer_.tell(cat("no search for optimisations (TINY_BEAM=", flags_.beam, "): ",
                       flags_.noopt != 0
                           ? std::string("the settings fix them")
                           : cat("on ", backend_.device().name(), " nothing is to be gained"),
                       "\n"));
  }
  return options;
}

std::unique_ptr<KernelCache::LoweredKernel> KernelCache::lowered_kernel(const Kernel& kernel) {
  const std::string* fixed = fixed_.find(kernel);
  return std::make_unique<LoweredKernel>(chosen_options(kernel, fixed), fixed != nullptr);
}

// What is known of a kernel once it is lowered.
LinearProgram KernelCache::take(Fresh& fresh, LoweredKernel& made) {
  CodegenResult& result = made.result;
  fresh.shape = result.program.name;
  result.program.name = unique_name(fresh.shape);
  observer_.lowered(fresh.entry->kernel, result);
  CompiledKernel& compiled = fresh.entry->compiled;
  compiled.threads_extent = made.threads_extent;
  compiled.info.name = result.program.name;
  compiled.info.options = result.options;
  compiled.info.scalar = is_scalar(result.program);
  compiled.info.checks = has_checks(result.program);
  compiled.info.linear_ops = static_cast<int64_t>(result.program.ops.size());
  compiled.info.operations = result.operations;
  compiled.info.bytes = result.bytes;
  compiled.info.of_sizes = made.of_sizes;
  compiled.info.params = fresh.entry->kernel.params;
  return std::move(result.program);
}

// On all threads, unless somebody follows the passes of each kernel.
std::vector<LinearProgram> KernelCache::lower(std::span<Fresh* const> all) {
  std::vector<LinearProgram> programs;
  std::vector<std::unique_ptr<LoweredKernel>> made;
  const auto kept = std::make_unique<KeptBlocks[]>(static_cast<size_t>(backend_.threads()));
  const auto count = std::ssize(all);
  std::atomic<int64_t> done{0};
  const auto run = [&](size_t i, int worker) {
    const double begin = observer_.now();
    // Only the calling thread tells, and the beginning was told.
    if (const int64_t so_far = done.load(); worker == 0 && so_far > 0)
      stop_.step("compile", all[i]->entry->kernel.name, so_far, count);
    made[i]->run(backend_.machine());
    observer_.span("compile", made[i]->result.program.name, begin, observer_.now());
    if (flags_.graphuops == 0 && flags_.viz == 0) made[i]->shrink();
    ++done;
  };
  if (count > 0) stop_.step("compile", all.front()->entry->kernel.name, 0, count);
  for (Fresh* f : all) made.push_back(lowered_kernel(f->entry->kernel));
  if (observer_.follows_passes()) {
    for (size_t i = 0; i < all.size(); ++i) {
      made[i]->begin(all[i]->entry->kernel, stop_);
      made[i]->graph->set_watch(observer_.watch());
      observer_.lowering(all[i]->entry->kernel);
      observer_.watch_passes(made[i]->options);
      run(i, 0);
      programs.push_back(take(*all[i], *made[i]));
    }
  } else {
    // Each graph begins where its kernel does, in memory that the last one left.
    std::mutex context_graph;
    for_each_piece(backend_.device().threads(), count, stop_, [&](int64_t piece, int worker) {
      const auto i = static_cast<size_t>(piece);
      const KeptBlocks::Scope scope(kept[static_cast<size_t>(worker)]);
      {
        const std::lock_guard guard(context_graph);
        made[i]->begin(all[i]->entry->kernel, stop_);
      }
      run(i, worker);
    });
    for (size_t i = 0; i < all.size(); ++i) programs.push_back(take(*all[i], *made[i]));
  }
  if (count > 0) stop_.step("compile", all.back()->entry->kernel.name, count, count);
  return programs;
}

// In shares, one for each thread: a device may make one unit of a share.
std::vector<Code> KernelCache::render(std::span<const LinearProgram> programs) {
  ThreadPool* threads = backend_.device().threads();
  const int64_t count = std::ssize(programs);
  const int64_t shares = std::min<int64_t>(threads ? 4 * threads->workers() : 1, count);
  std::vector<Code> codes(programs.size());
  const auto kept = std::make_unique<KeptBlocks[]>(static_cast<size_t>(backend_.threads()));
  for_each_piece(threads, shares, stop_, [&](int64_t share, int worker) {
    const KeptBlocks::Scope scope(kept[static_cast<size_t>(worker)]);
    const auto begin = static_cast<size_t>(count * share / shares);
    const auto end = static_cast<size_t>(count * (share + 1) / shares);
    std::vector<Code> made =
        backend_.render(programs.subspan(begin, end - begin), Backend::Form::Best);
    std::ranges::move(made, codes.begin() + static_cast<std::ptrdiff_t>(begin));
  });
  return codes;
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
  auto stored = decode_kernel(content->view());
  if (!stored) return false;
  fresh.on_disk = true;
  fresh.code = unpack(std::move(*stored), file, compiled);
  return true;
}

// Codes of all, from disk or made now.
void KernelCache::compile_fresh(std::vector<Fresh>& fresh) {
  const double start = observer_.now();
  CompileCounts& times = observer_.compiles();
  std::vector<Fresh*> unknown;
  for (Fresh& f : fresh) {
    stop_.check();
    if (!take_from_disk(f)) unknown.push_back(&f);
  }
  const std::vector<LinearProgram> programs = lower(unknown);
  times.lower += observer_.now() - start;
  times.lists_left = fixed_.unused();
  std::vector<Code> codes = render(programs);
  for (size_t i = 0; i < unknown.size(); ++i) {
    observer_.rendered(programs[i], backend_, codes[i].kind == CodeKind::Bytecode);
    unknown[i]->code = std::move(codes[i]);
  }
  times.compiled += std::ssize(unknown);
  times.on_disk += std::ssize(fresh) - std::ssize(unknown);
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
    loaded = backend_.load(codes, stop_);
  } catch (const Error& e) {
    if (e.status() != Status::Device) throw;
    refused = true;
  }
  if (refused) {  // machine code cannot be had in this process
    codes = backend_.render(lower(fresh), Backend::Form::Interpretable);
    loaded = backend_.load(codes, stop_);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    CompiledKernel& compiled = fresh[i]->entry->compiled;
    compiled.executable = std::move(loaded[i].executable);
    compiled.info.interpreted = loaded[i].interpreted;
    observer_.compiles().interpreted += loaded[i].interpreted;
    const bool is_kept = disk_.enabled() && !is_text(codes[i].kind) && !refused;
    if (!is_kept || fresh[i]->on_disk) continue;
    StoredKernel stored{std::move(codes[i]), compiled.threads_extent, compiled.info};
    stored.info.name = fresh[i]->shape;
    disk_.store(fresh[i]->key, encode_kernel(stored));
    compiled.info.file = disk_.name_of(fresh[i]->key);
  }
}

std::vector<const CompiledKernel*> KernelCache::load_files(std::span<const std::string> names,
                                                           const DiskBundle& bundle) {
  if (std::ssize(files_) > flags_.cache_kernels) files_.clear();
  std::vector<Code> codes;
  std::vector<CompiledKernel> kernels;
  std::set<std::string_view> met;
  for (const std::string& name : names) {
    if (files_.contains(name) || !met.insert(name).second) continue;
    const auto content = disk_.find_named(name, bundle);
    auto stored = content ? decode_kernel(content->view()) : std::nullopt;
    if (!stored) return {};
    codes.push_back(unpack(std::move(*stored), name, kernels.emplace_back()));
  }
  try {
    std::vector<LoadedKernel> loaded = backend_.load(codes, stop_);
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
void KernelCache::forget() {
  entries_.clear();
  files_.clear();
  lists_.clear();
  told_ = false;
}

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
                                                        double runs, std::vector<uint8_t>* cached) {
  ++calls_;
  runs_ = runs;
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

#include "runtime/cpu/cpu.h"

#include <fenv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <vector>

#include "base/checked.h"
#include "base/cores.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "runtime/cpu/chain.h"
#include "runtime/cpu/code_memory.h"
#include "runtime/cpu/company.h"
#include "runtime/cpu/executable.h"
#include "runtime/cpu/kept_memory.h"
#include "runtime/host.h"
#include "runtime/interp/interp.h"

namespace tiny {

namespace {

constexpr int64_t kHugePage = 2 << 20;
// Splitting pays from here if the threads spin already, and if they must be woken.
constexpr double kSplitNanoseconds = 4000, kWakeNanoseconds = 50000;
// Launches are one job up to so much work, and not one that cannot be split and is so long.
constexpr double kJobNanoseconds = 1e6, kWholeNanoseconds = 1e5;
constexpr double kUnknownNanoseconds = 1e12;  // taken as long
constexpr size_t kCallersAtOnce = 16, kArgumentsMax = 128;

// void enter(const KernelArgs*, KernelFunction): calls the kernel with the default floating-point
// state (nearest even, denormals kept, exceptions masked) and restores the caller's.
constexpr unsigned char kEnter[] = {
    0x48, 0x83, 0xEC, 0x18,                          // sub rsp, 24
    0x0F, 0xAE, 0x5C, 0x24, 0x08,                    // stmxcsr [rsp + 8]
    0xC7, 0x44, 0x24, 0x0C, 0x80, 0x1F, 0x00, 0x00,  // mov dword [rsp + 12], 0x1F80
    0x0F, 0xAE, 0x54, 0x24, 0x0C,                    // ldmxcsr [rsp + 12]
    0xFF, 0xD6,                                      // call rsi
    0x0F, 0xAE, 0x54, 0x24, 0x08,                    // ldmxcsr [rsp + 8]
    0x48, 0x83, 0xC4, 0x18,                          // add rsp, 24
    0xC3,                                            // ret
};
using EnterFunction = void (*)(const KernelArgs*, KernelFunction);

// Memory in 2 MB pages where the system has them; starts are staggered, so that streams over
// several buffers do not meet in the same cache sets.
class HugeBuffer : public Buffer {
 public:
  HugeBuffer(Device* device, int64_t bytes, int64_t stagger, Ref<KeptMemory> memory)
      : Buffer(device, bytes),
        memory_(std::move(memory)),
        mapping_(memory_->take(bytes, stagger)) {}
  std::byte* host() const override { return mapping_.data; }

 protected:
  ~HugeBuffer() override { memory_->give(mapping_); }

 private:
  Ref<KeptMemory> memory_;
  KeptMemory::Mapping mapping_;
};

class MachineExecutable : public CpuExecutable {
 public:
  MachineExecutable(const Code& code, Ref<CodeMemory> memory, size_t index)
      : CpuExecutable(code.name, code.scratch_bytes),
        memory_(std::move(memory)),
        enter_(reinterpret_cast<EnterFunction>(memory_->function(0))),
        kernel_(reinterpret_cast<KernelFunction>(memory_->function(index))) {}
  void run(const KernelArgs& args) const override { enter_(&args, kernel_); }

 private:
  Ref<CodeMemory> memory_;
  EnterFunction enter_;
  KernelFunction kernel_;
};

class InterpretedExecutable : public CpuExecutable {
 public:
  explicit InterpretedExecutable(const Code& code)
      : CpuExecutable(code.name, code.scratch_bytes), bytecode_(load_bytecode(code)) {}
  void run(const KernelArgs& args) const override {
    fenv_t before;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    run_bytecode(*bytecode_, args);
    fesetenv(&before);
  }
  void check_launch(const Launch& launch) const override {
    static_cast<const HostExecutable&>(*bytecode_).check_launch(launch);
  }

 private:
  Ref<Executable> bytecode_;
};

class FunctionExecutable : public CpuExecutable {
 public:
  FunctionExecutable(const std::string& name, Ref<const HostFunction> function)
      : CpuExecutable(name, 0), function_(std::move(function)) {}
  bool is_function() const override { return true; }
  void run(const KernelArgs& args) const override { function_->run(args); }

 private:
  Ref<const HostFunction> function_;
};

// Gives an acquired pool back unless told that it is done already.
struct Lease {
  ThreadPool& pool;
  bool held = true;
  ~Lease() {
    if (held) pool.release();
  }
};

// What the launches of a run are put together in.
class CpuQueue : public HostQueue {
 public:
  mutable Chain chain;
  mutable std::vector<void*> addresses;
};

class CpuDevice : public HostDevice {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : HostDevice("cpu"),
        options_(options),
        pool_(options.threads > 0 ? options.threads : available_cores(), options.own),
        memory_(make_ref<KeptMemory>(options.kept_bytes)),
        worker_scratch_(static_cast<size_t>(pool_.workers())) {}
  ~CpuDevice() override {
    for (auto& slot : caller_scratch_) delete slot.load();
  }

  ThreadPool* threads() override { return &pool_; }

  Ref<Buffer> make_buffer(int64_t bytes) override {
    if (bytes < kHugePage) return HostDevice::make_buffer(bytes);
    return make_ref<HugeBuffer>(this, bytes, next_stagger(), memory_);
  }
  int64_t kept_bytes() override { return memory_->kept(); }
  void release_kept() override { memory_->drop_all(); }

  using Device::load;
  std::vector<Ref<Executable>> load(std::span<const Code> codes, const StopSignal&) override {
    std::vector<std::span<const std::byte>> functions = {std::as_bytes(std::span(kEnter))};
    for (const Code& code : codes) {
      require(code.kind != CodeKind::C, Status::Device,
              "the cpu device does not run C: ", code.name);
      if (code.kind == CodeKind::MachineCode) functions.emplace_back(code.bytes);
    }
    Ref<CodeMemory> memory;
    if (functions.size() > 1) memory = CodeMemory::make(functions);
    std::vector<Ref<Executable>> loaded;
    size_t function = 0;
    for (const Code& code : codes) {
      if (code.kind == CodeKind::Bytecode)
        loaded.push_back(make_ref<InterpretedExecutable>(code));
      else
        loaded.push_back(make_ref<MachineExecutable>(code, memory, ++function));
    }
    if (options_.perf_map && memory) name_for_profilers(codes, *memory);
    return loaded;
  }

  Ref<Executable> load_function(const std::string& name,
                                Ref<const HostFunction> function) override {
    return make_ref<FunctionExecutable>(name, std::move(function));
  }

  Ref<Queue> make_queue() override { return make_ref<CpuQueue>(); }

  void launch(const Queue* queue, const Launch& launch, const StopSignal& stop) override {
    Launch alone = launch;
    alone.after = {};
    launch_jobs(queue, {&alone, 1}, stop);
  }

  void launch_all(const Queue* queue, std::span<const Launch> launches,
                  const StopSignal& stop) override {
    launch_jobs(queue, launches, stop);
    stop.check_known();
  }

 private:
  void launch_jobs(const Queue* queue, std::span<const Launch> launches, const StopSignal& stop) {
    for (size_t i = 0; i < launches.size();) {
      stop.check();
      const Job job = next_job(launches.subspan(i));
      if (job.is_shared && pool_.try_acquire())
        launch_together(queue, launches, i, job, stop);
      else
        for (size_t k = i; k < i + job.launches; ++k) launch_alone(queue, launches[k], stop);
      i += job.launches;
    }
  }

  // The first launches of some, which are to be one job of the pool if they are shared.
  struct Job {
    size_t launches = 1;
    size_t arguments = 0;
    double nanoseconds = 0;  // of one thread
    int64_t scratch_bytes = 0;
    bool is_shared = false;
  };

  // As many as take about kJobNanoseconds; one of which that is not known is a job by itself, and
  // so is a long one that cannot be cut.
  Job next_job(std::span<const Launch> launches) const {
    Job job;
    if (pool_.workers() == 1 || !company_.is_welcome()) return job;
    size_t count = 0;
    for (const Launch& launch : launches) {
      const auto& executable = static_cast<const CpuExecutable&>(*launch.executable);
      if (executable.is_function()) {
        if (count == 0) return Job();
        break;
      }
      const int64_t iterations = launch.end - launch.begin;
      const double known = executable.expected(iterations);
      const double expected = known == 0 ? kUnknownNanoseconds : known;
      const bool is_whole = iterations <= 1 && expected > kWholeNanoseconds;
      if (count > 0 && (is_whole || job.nanoseconds + expected > kJobNanoseconds)) break;
      job.nanoseconds += expected;
      job.arguments += launch.arguments.size();
      job.scratch_bytes = std::max(job.scratch_bytes, executable.scratch_bytes());
      job.is_shared |= iterations > 1;
      ++count;
      if (is_whole) break;
    }
    job.launches = count;
    job.is_shared &= job.nanoseconds >= (pool_.is_callers() ? kWakeNanoseconds : kSplitNanoseconds);
    return job;
  }

  // Checks the launch, and finds where its arguments are.
  static void find_addresses(const Launch& launch, std::span<void*> addresses) {
    static_cast<const CpuExecutable&>(*launch.executable).check_launch(launch);
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const Argument& a = launch.arguments[i];
      require(a.byte_offset >= 0 && a.byte_offset <= a.buffer->bytes(), Status::InvalidArgument,
              "argument ", i, " begins outside its buffer");
      addresses[i] = a.buffer->host() + a.byte_offset;
    }
  }

  static KernelArgs to_args(const Launch& launch, void* const* addresses,
                            const std::unique_ptr<AlignedMemory>& scratch, int64_t* status,
                            const StopSignal& stop) {
    return {addresses,
            launch.variables.data(),
            scratch ? scratch->data : nullptr,
            launch.begin,
            launch.end,
            0,
            status,
            &stop};
  }

  void launch_alone(const Queue* queue, const Launch& launch, const StopSignal& stop) {
    const auto& executable = static_cast<const CpuExecutable&>(*launch.executable);
    std::array<void*, kArgumentsMax> addresses;
    require(launch.arguments.size() <= addresses.size(), Status::Unsupported,
            "a kernel takes at most ", kArgumentsMax, " arguments");
    find_addresses(launch, addresses);
    std::unique_ptr<AlignedMemory> scratch = take_scratch(executable.scratch_bytes());
    int64_t nobody_asked = 0;
    int64_t* status = queue ? &static_cast<const CpuQueue&>(*queue).status : &nobody_asked;
    const KernelArgs args = to_args(launch, addresses.data(), scratch, status, stop);
    const int64_t start = pool_.workers() > 1 ? nanoseconds_now() : 0;
    executable.run(args);
    // How long a kernel took that left early tells nothing.
    if (pool_.workers() > 1 && !stop.is_known_over()) {
      const int64_t took = nanoseconds_now() - start;
      executable.measured(took, args.end - args.begin);
      company_.was_alone(took);
    }
    give_scratch(std::move(scratch));
  }

  // Needs the pool, and gives it back.
  void launch_together(const Queue* queue, std::span<const Launch> launches, size_t first,
                       const Job& job, const StopSignal& stop) {
    Lease lease{pool_};
    const Ref<CpuQueue> none = queue ? nullptr : make_ref<CpuQueue>();
    const CpuQueue& own = queue ? static_cast<const CpuQueue&>(*queue) : *none;
    Chain& chain = own.chain;
    std::vector<void*>& addresses = own.addresses;
    scratch_for_workers(job.scratch_bytes);
    std::unique_ptr<AlignedMemory> scratch = take_scratch(job.scratch_bytes);
    addresses.resize(job.arguments);
    chain.begin(first, pool_.workers(), stop);
    std::span<void*> free = addresses;
    for (const Launch& launch : launches.subspan(first, job.launches)) {
      find_addresses(launch, free);
      const auto& executable = static_cast<const CpuExecutable&>(*launch.executable);
      const double known = executable.expected(launch.end - launch.begin);
      chain.add({&executable, to_args(launch, free.data(), scratch, &own.status, stop),
                 known == 0 ? kUnknownNanoseconds : known, launch.after});
      free = free.subspan(launch.arguments.size());
    }
    const int64_t start = nanoseconds_now();
    lease.held = false;  // run gives the pool back
    const auto share =
        chain.run(pool_, job.nanoseconds >= kWakeNanoseconds, worker_scratch_.data());
    const int64_t took = nanoseconds_now() - start;
    // Threads of the caller's are the caller's to place.
    if (!pool_.is_callers() && !stop.is_known_over())
      company_.was_shared(took, share.waited,
                          (took - share.waited) / std::max<int64_t>(1, share.did));
    give_scratch(std::move(scratch));
  }

  // The pool is ours: nobody else touches its workers' scratch.
  void scratch_for_workers(int64_t bytes) {
    for (size_t w = 1; w < worker_scratch_.size(); ++w)
      if (!worker_scratch_[w] || worker_scratch_[w]->bytes < bytes)
        worker_scratch_[w] = std::make_unique<AlignedMemory>(bytes);
  }

  // Scratch of the calling thread: one that an earlier launch gave back, if it is large enough.
  std::unique_ptr<AlignedMemory> take_scratch(int64_t bytes) {
    if (bytes == 0) return nullptr;
    for (auto& slot : caller_scratch_) {
      std::unique_ptr<AlignedMemory> found(slot.exchange(nullptr));
      if (found && found->bytes >= bytes) return found;
    }
    return std::make_unique<AlignedMemory>(bytes);
  }
  void give_scratch(std::unique_ptr<AlignedMemory> scratch) {
    if (!scratch) return;
    for (auto& slot : caller_scratch_) {
      AlignedMemory* none = nullptr;
      if (!slot.compare_exchange_strong(none, scratch.get())) continue;
      static_cast<void>(scratch.release());
      return;
    }
  }

  // One line a kernel: address, size, name.
  void name_for_profilers(std::span<const Code> codes, const CodeMemory& memory) {
    const std::string path = cat("/tmp/perf-", getpid(), ".map");
    std::FILE* file = std::fopen(path.c_str(), "a");
    if (!file) return;  // profilers go without names
    size_t function = 0;
    for (const Code& code : codes)
      if (code.kind == CodeKind::MachineCode)
        std::fprintf(file, "%zx %zx tiny:%s\n",
                     reinterpret_cast<size_t>(memory.function(++function)), code.bytes.size(),
                     code.name.c_str());
    std::fclose(file);
  }

  const CpuOptions options_;
  ThreadPool pool_;
  Company company_;
  Ref<KeptMemory> memory_;
  std::vector<std::unique_ptr<AlignedMemory>> worker_scratch_;
  std::array<std::atomic<AlignedMemory*>, kCallersAtOnce> caller_scratch_{};
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace tiny

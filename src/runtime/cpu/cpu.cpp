#include "runtime/cpu/cpu.h"

#include <fenv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "runtime/cpu/code_memory.h"
#include "runtime/cpu/company.h"
#include "runtime/host.h"
#include "runtime/interp/interp.h"

namespace tiny {

namespace {

constexpr int64_t kHugePage = 2 << 20;
constexpr int64_t kPiecesPerWorker = 6;
// Splitting pays from here if the threads spin already, and if they must be woken.
constexpr int64_t kSplitNanoseconds = 4000, kWakeNanoseconds = 50000;
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
  HugeBuffer(Device* device, int64_t bytes, int64_t stagger) : Buffer(device, bytes) {
    mapped_ = static_cast<size_t>(
        round_up(checked_add(bytes, stagger + kHugePage, "a buffer's size"), kHugePage));
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(base_ != MAP_FAILED, Status::OutOfMemory, "no memory for a buffer of ", bytes,
            " bytes");
    const auto start = reinterpret_cast<uintptr_t>(base_);
    const uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
    // A last page of which little is wanted would take its 2 MB all the same.
    const uintptr_t end = aligned + static_cast<uintptr_t>(bytes + stagger);
    const uintptr_t huge_end = (end + kHugePage / 2) / kHugePage * kHugePage;
    if (huge_end > aligned)
      madvise(reinterpret_cast<void*>(aligned), huge_end - aligned, MADV_HUGEPAGE);
    if (end > huge_end) madvise(reinterpret_cast<void*>(huge_end), end - huge_end, MADV_NOHUGEPAGE);
    data_ = reinterpret_cast<std::byte*>(aligned) + stagger;
  }
  std::byte* host() const override { return data_; }

 protected:
  ~HugeBuffer() override { munmap(base_, mapped_); }

 private:
  void* base_ = nullptr;
  size_t mapped_ = 0;
  std::byte* data_ = nullptr;
};

class CpuExecutable : public HostExecutable {
 public:
  using HostExecutable::HostExecutable;

  // Time of an iteration in 1/16 ns, as last measured; 0: not yet.
  int64_t iteration_time() const { return iteration_time_.load(std::memory_order_relaxed); }
  void measured(int64_t nanoseconds, int64_t iterations) const {
    iteration_time_.store(std::max<int64_t>(1, nanoseconds * 16 / std::max<int64_t>(1, iterations)),
                          std::memory_order_relaxed);
  }

 private:
  mutable std::atomic<int64_t> iteration_time_{0};
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

// Gives an acquired pool back unless told that it is done already.
struct Lease {
  ThreadPool& pool;
  bool held = true;
  ~Lease() {
    if (held) pool.release();
  }
};

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One launch as the pool's threads see it.
struct SplitLaunch {
  const CpuExecutable* executable;
  KernelArgs args;  // of the whole range, with the caller's scratch
  int64_t pieces;
  const std::unique_ptr<AlignedMemory>* scratch;  // of each worker but the caller

  int64_t cut(int64_t piece) const {
    const int64_t n = args.end - args.begin;
    return args.begin + n / pieces * piece + std::min(piece, n % pieces);
  }
  static void run(void* context, int64_t piece, int worker) noexcept {
    const auto& launch = *static_cast<const SplitLaunch*>(context);
    KernelArgs args = launch.args;
    args.begin = launch.cut(piece);
    args.end = launch.cut(piece + 1);
    args.worker = worker;
    if (worker > 0) args.scratch = launch.scratch[worker]->data;
    launch.executable->run(args);
  }
};

class CpuDevice : public HostDevice {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : HostDevice("cpu"),
        options_(options),
        pool_(options.threads > 0 ? options.threads : available_cores(), options.own),
        worker_scratch_(static_cast<size_t>(pool_.workers())) {}
  ~CpuDevice() override {
    for (auto& slot : caller_scratch_) delete slot.load();
  }

  ThreadPool* threads() override { return &pool_; }

  Ref<Buffer> make_buffer(int64_t bytes) override {
    if (bytes < kHugePage) return HostDevice::make_buffer(bytes);
    Ref<Buffer> buffer = make_ref<HugeBuffer>(this, bytes, next_stagger());
    counts().allocated(bytes);
    return buffer;
  }

  std::vector<Ref<Executable>> load(std::span<const Code> codes) override {
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

  void launch(const Queue*, const Launch& launch) override {
    const auto& executable = static_cast<const CpuExecutable&>(*launch.executable);
    executable.check_launch(launch);
    std::array<void*, kArgumentsMax> addresses;
    require(launch.arguments.size() <= addresses.size(), Status::Unsupported,
            "a kernel takes at most ", kArgumentsMax, " arguments");
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const Argument& a = launch.arguments[i];
      require(a.byte_offset >= 0 && a.byte_offset <= a.buffer->bytes(), Status::InvalidArgument,
              "argument ", i, " begins outside its buffer");
      addresses[i] = a.buffer->host() + a.byte_offset;
    }
    std::unique_ptr<AlignedMemory> scratch = take_scratch(executable.scratch_bytes());
    int64_t nobody_asked = 0;
    run(executable, {addresses.data(), launch.variables.data(), scratch ? scratch->data : nullptr,
                     launch.begin, launch.end, 0, launch.status ? launch.status : &nobody_asked});
    give_scratch(std::move(scratch));
  }

 private:
  void run(const CpuExecutable& executable, const KernelArgs& args) {
    const int64_t iterations = args.end - args.begin;
    if (iterations <= 1 || pool_.workers() == 1) return executable.run(args);
    const int64_t each = executable.iteration_time();
    // Unknown: taken as long.
    const double expected =
        each == 0 ? 1e12 : static_cast<double>(each) / 16.0 * static_cast<double>(iterations);
    const int64_t start = now();
    const int64_t worth = pool_.is_callers() ? kWakeNanoseconds : kSplitNanoseconds;
    if (expected < static_cast<double>(worth) || !company_.is_welcome() || !pool_.try_acquire()) {
      executable.run(args);
      const int64_t took = now() - start;
      executable.measured(took, iterations);
      company_.was_alone(took);
      return;
    }
    Lease lease{pool_};
    scratch_for_workers(executable.scratch_bytes());
    lease.held = false;  // run gives the pool back
    SplitLaunch split{&executable, args, std::min(iterations, kPiecesPerWorker * pool_.workers()),
                      worker_scratch_.data()};
    const bool wake = expected >= static_cast<double>(kWakeNanoseconds);
    const auto [did, waited] = pool_.run(split.pieces, SplitLaunch::run, &split, wake);
    const int64_t took = now() - start;
    executable.measured(took, std::max<int64_t>(1, iterations * did / split.pieces));
    // Threads of the caller's are the caller's to place.
    if (!pool_.is_callers())
      company_.was_shared(took, waited, (took - waited) / std::max<int64_t>(1, did));
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
  std::vector<std::unique_ptr<AlignedMemory>> worker_scratch_;
  std::array<std::atomic<AlignedMemory*>, kCallersAtOnce> caller_scratch_{};
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace tiny

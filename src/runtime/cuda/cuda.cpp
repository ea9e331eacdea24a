#include "runtime/cuda/cuda.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <utility>

#include "base/error.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/nccl.h"
#include "runtime/cuda/staging.h"
#include "runtime/host.h"

namespace tiny {

namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): this file is the device of it

// Blocks of a program without groups, which has one thread in each: enough that every
// multiprocessor has as many as it holds at once (32 blocks, CUDA C++ Programming Guide,
// "Technical Specifications").
constexpr int64_t kBlocksOfMultiprocessor = 32;

// Of all devices here one address, which tells that they have one driver.
constexpr char kDriverOfAll = 0;

// The oldest whose instructions the renderer writes.
constexpr int kComputeMin = 75;

CudaFacts facts_of(const Driver& driver, int number) {
  const Functions& f = driver.functions();
  int device = 0;
  driver.check(f.cuDeviceGet(&device, number), "cuDeviceGet");
  const auto attribute = [&](Attribute which) {
    int value = 0;
    driver.check(f.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
  };
  CudaFacts facts;
  std::array<char, 256> name{};
  driver.check(f.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device),
               "cuDeviceGetName");
  facts.name = name.data();
  facts.compute = 10 * attribute(kComputeCapabilityMajor) + attribute(kComputeCapabilityMinor);
  facts.driver_version = driver.version();
  facts.multiprocessors = attribute(kMultiprocessorCount);
  facts.group_threads = attribute(kMaxThreadsPerBlock);
  facts.shared_bytes = attribute(kMaxSharedMemoryPerBlockOptin);
  facts.l2_bytes = attribute(kL2CacheSize);
  // Drivers may have none of these: they choose kernels, and forbid none.
  const auto figure = [&](Attribute which) {
    int value = 0;
    return f.cuDeviceGetAttribute(&value, which, device) == kSuccess ? std::max(value, 0) : 0;
  };
  facts.resident_threads = figure(kMaxThreadsPerMultiprocessor);
  facts.resident_groups = figure(kMaxBlocksPerMultiprocessor);
  facts.registers = figure(kMaxRegistersPerMultiprocessor);
  facts.resident_shared_bytes = figure(kMaxSharedMemoryPerMultiprocessor);
  constexpr double kKilohertz = 1e3, kTransfers = 2, kByteBits = 8;  // a cycle has two transfers
  facts.clock = kKilohertz * figure(kClockRate);
  facts.memory_bandwidth = kKilohertz * figure(kMemoryClockRate) * kTransfers *
                           figure(kGlobalMemoryBusWidth) / kByteBits;
  size_t bytes = 0;
  driver.check(f.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem_v2");
  facts.memory_bytes = static_cast<int64_t>(bytes);
  if (facts.compute < kComputeMin)
    facts.missing = cat("it is of compute capability ", facts.compute / 10, ".", facts.compute % 10,
                        "; needed is ", kComputeMin / 10, ".", kComputeMin % 10);
  return facts;
}

Address address_of(const Buffer& buffer, int64_t offset) {
  return static_cast<const CudaBuffer&>(buffer).address() + static_cast<Address>(offset);
}

const CudaQueue& of(const Queue& queue) {
  return static_cast<const CudaQueue&>(queue);
}

class CudaDeviceOfDriver : public CudaDevice {
 public:
  CudaDeviceOfDriver(const Ref<Driver>& driver, int64_t number, const CudaOptions& options)
      : name_(cat("cuda:", number)),
        gpu_(make_ref<Gpu>(driver, number, options.memory_kept)),
        facts_(facts_of(*driver, static_cast<int>(number))),
        blocks_most_(facts_.multiprocessors * kBlocksOfMultiprocessor),
        staging_(gpu_) {
    require(facts_.missing.empty(), Status::Device, "the device ", name_, ", ", facts_.name,
            ", cannot be used: ", facts_.missing);
  }

  const std::string& name() const override { return name_; }
  const CudaFacts& facts() const override { return facts_; }
  bool sees_host() const override { return false; }
  bool is_late() const override { return true; }
  int64_t kept_bytes() override { return gpu_->kept_bytes(); }
  void release_kept() override { gpu_->drop_kept(); }

  Ref<Buffer> wrap(void*, int64_t) override {
    throw_error(Status::Device, "the device ", name_, " does not see the host's memory");
  }
  void copy_in(const Queue* queue, Buffer& to, int64_t offset, const void* from,
               int64_t bytes) override {
    check_range(to, offset, bytes);
    settle(to);
    counts().copied(bytes);
    if (bytes == 0) return;
    with(queue,
         [&](const CudaQueue& on) { staging_.copy_in(on, address_of(to, offset), from, bytes); });
  }
  void copy_out(const Queue* queue, void* to, const Buffer& from, int64_t offset,
                int64_t bytes) override {
    check_range(from, offset, bytes);
    settle(from);
    counts().copied(bytes);
    if (bytes == 0) return;
    with(queue,
         [&](const CudaQueue& on) { staging_.copy_out(on, to, address_of(from, offset), bytes); });
  }
  void copy(const Queue* queue, Buffer& to, int64_t to_offset, const Buffer& from,
            int64_t from_offset, int64_t bytes) override {
    check_range(to, to_offset, bytes);
    check_range(from, from_offset, bytes);
    settle(to);
    settle(from);
    counts().copied(bytes);
    if (bytes == 0) return;
    with(queue, [&](const CudaQueue& on) {
      const Gpu::Scope scope(*gpu_);
      gpu_->check(gpu_->functions().cuMemcpyDtoDAsync_v2(address_of(to, to_offset),
                                                         address_of(from, from_offset),
                                                         static_cast<size_t>(bytes), on.stream()),
                  "cuMemcpyDtoDAsync_v2");
    });
  }

  const void* driver() const override { return &kDriverOfAll; }
  bool copy_peer(const Argument& to, const Argument& from, int64_t bytes) override {
    check_range(*to.buffer, to.byte_offset, bytes);
    check_range(*from.buffer, from.byte_offset, bytes);
    auto& source = static_cast<CudaDeviceOfDriver&>(from.buffer->device());
    settle(*to.buffer);
    source.settle(*from.buffer);
    bool is_done = false;
    with(nullptr, [&](const CudaQueue& on) {
      is_done = gpu_->copy_peer(address_of(*to.buffer, to.byte_offset), *source.gpu_,
                                address_of(*from.buffer, from.byte_offset), bytes, on.stream());
    });
    if (is_done) counts().copied(bytes);
    return is_done;
  }

  Code assemble(std::span<const Code> units) override {
    std::vector<const std::string*> texts;
    for (const Code& unit : units) {
      require(unit.kind == CodeKind::Ptx, Status::Device, "kernel ", unit.name, " is not PTX");
      texts.push_back(&unit.text);
    }
    Code code = units.front();
    code.bytes = cuda::assemble(*gpu_, texts, code.name);
    code.text.clear();
    code.kind = CodeKind::Cubin;
    return code;
  }

  // Making a communicator takes longer than what is asked of it: those that were made are kept.
  Ref<Collectives> collectives(std::span<CudaDevice* const> devices) override {
    std::vector<Ref<Gpu>> gpus;
    std::set<int> numbers;
    for (CudaDevice* one : devices) {
      gpus.push_back(static_cast<CudaDeviceOfDriver*>(one)->gpu_);
      if (!numbers.insert(gpus.back()->number()).second) return {};
    }
    NcclFunctions functions;
    if (!find_nccl(functions)) return {};
    const std::lock_guard guard(lock_);
    std::erase_if(communicators_, [](const Ref<Nccl>& one) { return one->is_broken(); });
    for (const Ref<Nccl>& one : communicators_)
      if (one->is_over(gpus)) return one;
    communicators_.push_back(make_ref<Nccl>(functions, std::move(gpus)));
    return communicators_.back();
  }

  // Codes whose text is empty are in the unit of the one before.
  using Device::load;
  std::vector<Ref<Executable>> load(std::span<const Code> codes, const StopSignal& stop) override {
    std::vector<Ref<Executable>> loaded;
    Ref<Module> module;
    for (const Code& code : codes) {
      stop.check();
      require(code.kind == CodeKind::Cubin || code.kind == CodeKind::Ptx, Status::Device, "kernel ",
              code.name, " is neither PTX nor a CUBIN");
      if (code.kind == CodeKind::Cubin)
        module = make_ref<Module>(gpu_, code.bytes.data(), code.name);
      else if (!code.text.empty())
        module = make_ref<Module>(gpu_, code.text.c_str(), code.name);
      loaded.push_back(make_ref<CudaExecutable>(code, module));
    }
    return loaded;
  }
  void launch(const Queue* queue, const Launch& launch, const StopSignal& stop) override {
    with(queue, [&](const CudaQueue& on) {
      launch_one(*gpu_, LaunchArguments(launch, on, blocks_most_), on);
      on.obey(stop);
    });
  }
  Ref<Prepared> prepare(std::span<const Launch> launches) override {
    return prepare_graph(gpu_, blocks_most_, *this, launches);
  }

  Ref<Queue> make_queue() override { return make_ref<CudaQueue>(gpu_); }
  void wait(const Queue* queue) override {
    if (queue) of(*queue).wait();
  }
  void clear_status(const Queue& queue) override { of(queue).clear_status(); }
  int64_t status(const Queue& queue) override { return of(queue).status(); }
  Ref<Event> record(const Queue& queue) override { return record_again(queue, nullptr); }
  Ref<Event> record_again(const Queue& queue, Ref<Event> idle) override {
    if (!idle) idle = make_ref<CudaEvent>(gpu_);
    static_cast<const CudaEvent&>(*idle).record(of(queue));
    return idle;
  }
  void wait_until(const Event& event) override { static_cast<const CudaEvent&>(event).wait(); }
  bool has_happened(const Event& event) override {
    return static_cast<const CudaEvent&>(event).has_happened();
  }
  double seconds(const Event& from, const Event& to) const override {
    return static_cast<const CudaEvent&>(from).seconds_to(static_cast<const CudaEvent&>(to));
  }

 protected:
  Ref<Buffer> make_buffer(int64_t bytes) override {
    return make_ref<CudaBuffer>(this, gpu_, bytes);
  }

 private:
  // What has no queue is done when this returns.
  template <class Work>
  void with(const Queue* queue, const Work& work) {
    if (queue) return work(of(*queue));
    Ref<CudaQueue> own;
    {
      const std::lock_guard guard(lock_);
      if (!idle_.empty()) {
        own = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!own) own = make_ref<CudaQueue>(gpu_);
    work(*own);
    own->wait();
    const std::lock_guard guard(lock_);
    idle_.push_back(std::move(own));
  }

  const std::string name_;
  const Ref<Gpu> gpu_;
  const CudaFacts facts_;
  const int64_t blocks_most_;
  Staging staging_;
  std::mutex lock_;
  std::vector<Ref<CudaQueue>> idle_;  // of what has no queue
  std::vector<Ref<Nccl>> communicators_;
};

}  // namespace

std::unique_ptr<CudaDevice> make_cuda_device(int64_t number, const CudaOptions& options) {
  return std::make_unique<CudaDeviceOfDriver>(Driver::open(), number, options);
}

std::vector<CudaFacts> list_cuda_devices() {
  const Ref<Driver> driver = Driver::open();
  int count = 0;
  driver->check(driver->functions().cuDeviceGetCount(&count), "cuDeviceGetCount");
  std::vector<CudaFacts> all;
  for (int i = 0; i < count; ++i) all.push_back(facts_of(*driver, i));
  return all;
}

}  // namespace tiny

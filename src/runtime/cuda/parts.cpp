#include "runtime/cuda/parts.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/kernel_abi.h"
#include "runtime/cuda/cuda.h"
#include "runtime/host.h"

namespace tiny::cuda {

namespace {

// What an assembler says of a text that it refuses.
class ErrorLog {
 public:
  unsigned count() const { return 2; }
  LinkOption* options() { return options_; }
  void** values() { return values_; }
  std::string text() const { return text_.data(); }

 private:
  std::array<char, 4096> text_{};
  LinkOption options_[2] = {kErrorLogBuffer, kErrorLogBufferSizeBytes};
  void* values_[2] = {text_.data(), reinterpret_cast<void*>(text_.size())};  // NOLINT: a number
};

void check_assembled(Gpu& gpu, Result result, const char* call, const std::string& kernel,
                     const ErrorLog& log) {
  if (result == kSuccess || loses_device(result)) return gpu.check(result, call);
  const std::string said = log.text();
  throw_error(result == kOutOfMemory ? Status::OutOfMemory : Status::Device, "kernel ", kernel,
              ": ", gpu.driver().words(result, call), said.empty() ? "" : ": ", said);
}

}  // namespace

std::vector<std::byte> assemble(Gpu& gpu, std::span<const std::string* const> texts,
                                const std::string& kernel) {
  const Gpu::Scope scope(gpu);
  const Functions& f = gpu.functions();
  ErrorLog log;
  CUlinkState_st* link = nullptr;
  check_assembled(gpu, f.cuLinkCreate_v2(log.count(), log.options(), log.values(), &link),
                  "cuLinkCreate_v2", kernel, log);
  void* image = nullptr;
  size_t bytes = 0;
  const char* call = "cuLinkAddData_v2";
  Result result = kSuccess;
  for (const std::string* text : texts)
    if (result == kSuccess)
      result = f.cuLinkAddData_v2(link, kLinkInputPtx, const_cast<char*>(text->c_str()),
                                  text->size() + 1, kernel.c_str(), 0, nullptr, nullptr);
  if (result == kSuccess) {
    call = "cuLinkComplete";
    result = f.cuLinkComplete(link, &image, &bytes);
  }
  std::vector<std::byte> cubin;
  if (result == kSuccess) {
    const auto* first = static_cast<const std::byte*>(image);
    cubin.assign(first, first + bytes);
  }
  const Result ended = f.cuLinkDestroy(link);  // which owned the image
  check_assembled(gpu, result, call, kernel, log);
  gpu.check(ended, "cuLinkDestroy");
  return cubin;
}

Module::Module(Ref<Gpu> gpu, const void* image, const std::string& name) : gpu_(std::move(gpu)) {
  const Gpu::Scope scope(*gpu_);
  ErrorLog log;
  const Result result = gpu_->functions().cuModuleLoadDataEx(&module_, image, log.count(),
                                                             log.options(), log.values());
  check_assembled(*gpu_, result, "cuModuleLoadDataEx", name, log);
}

Module::~Module() {
  if (!module_) return;
  gpu_->clean_up([&](const Functions& f) { f.cuModuleUnload(module_); });
}

CUfunc_st* Module::find(const std::string& entry) const {
  const Gpu::Scope scope(*gpu_);
  CUfunc_st* found = nullptr;
  const Result result = gpu_->functions().cuModuleGetFunction(&found, module_, entry.c_str());
  if (result == kNotFound) return nullptr;
  gpu_->check(result, "cuModuleGetFunction");
  return found;
}

CUfunc_st* Module::function(const std::string& entry) const {
  CUfunc_st* found = find(entry);
  require(found != nullptr, Status::Device, "the module has no kernel ", entry);
  return found;
}

CudaExecutable::CudaExecutable(const Code& code, Ref<Module> module)
    : name_(code.name),
      module_(std::move(module)),
      function_(module_->function(code.entry)),
      any_(module_->find(code.entry + kAnyAlignment)),
      shared_bytes_(static_cast<unsigned>(code.shared_bytes)) {
  if (!any_) any_ = function_;
  for (size_t axis = 0; axis < 3; ++axis) group_[axis] = static_cast<unsigned>(code.group[axis]);
  if (shared_bytes_ == 0) return;
  Gpu& gpu = module_->gpu();
  const Gpu::Scope scope(gpu);
  for (CUfunc_st* function : {function_, any_})
    gpu.check(gpu.functions().cuFuncSetAttribute(function, kMaxDynamicSharedSizeBytes,
                                                 static_cast<int>(shared_bytes_)),
              "cuFuncSetAttribute");
}

// At 0 the number of the first check that failed, plus 1; at 8 the position.
struct QueueStatus {
  uint32_t word;
  uint32_t unused;
  int64_t position;
};
static_assert(sizeof(QueueStatus) <= Gpu::kPinnedBytes);

CudaQueue::CudaQueue(Ref<Gpu> gpu) : gpu_(std::move(gpu)) {
  const Gpu::Scope scope(*gpu_);
  status_ = gpu_->take(sizeof(QueueStatus));
  try {
    copied_ = gpu_->take_pinned();
    gpu_->check(gpu_->functions().cuStreamCreate(&stream_, kStreamNonBlocking), "cuStreamCreate");
    clear_status();
  } catch (...) {
    drop();
    throw;
  }
}

CudaQueue::~CudaQueue() {
  drop();
}

void CudaQueue::drop() {
  if (stream_)
    gpu_->clean_up([&](const Functions& f) {
      f.cuStreamSynchronize(stream_);  // what is under way writes the status
      f.cuStreamDestroy_v2(stream_);
    });
  gpu_->give(status_);
  if (copied_) gpu_->give_pinned(copied_);
}

void CudaQueue::wait() const {
  const StopSignal* stop = std::exchange(stop_, nullptr);
  {
    const Gpu::Scope scope(*gpu_);
    gpu_->check(gpu_->functions().cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }
  if (stop) stop->check();
}

void CudaQueue::clear_status() const {
  const Gpu::Scope scope(*gpu_);
  gpu_->check(gpu_->functions().cuMemsetD8Async(status_, 0, sizeof(QueueStatus), stream_),
              "cuMemsetD8Async");
}

int64_t CudaQueue::status() const {
  {
    const Gpu::Scope scope(*gpu_);
    gpu_->check(
        gpu_->functions().cuMemcpyDtoHAsync_v2(copied_, status_, sizeof(QueueStatus), stream_),
        "cuMemcpyDtoHAsync_v2");
  }
  wait();
  QueueStatus status{};
  std::memcpy(&status, copied_, sizeof status);
  return status.word == 0 ? 0 : check_status(int64_t{status.word} - 1, status.position);
}

CudaEvent::CudaEvent(Ref<Gpu> gpu) : gpu_(std::move(gpu)) {
  const Gpu::Scope scope(*gpu_);
  gpu_->check(gpu_->functions().cuEventCreate(&event_, 0), "cuEventCreate");
}

CudaEvent::~CudaEvent() {
  if (event_) gpu_->clean_up([&](const Functions& f) { f.cuEventDestroy_v2(event_); });
}

void CudaEvent::record(const CudaQueue& queue) const {
  const Gpu::Scope scope(*gpu_);
  gpu_->check(gpu_->functions().cuEventRecord(event_, queue.stream()), "cuEventRecord");
}

void CudaEvent::wait() const {
  const Gpu::Scope scope(*gpu_);
  gpu_->check(gpu_->functions().cuEventSynchronize(event_), "cuEventSynchronize");
}

bool CudaEvent::has_happened() const {
  const Gpu::Scope scope(*gpu_);
  const Result result = gpu_->functions().cuEventQuery(event_);
  if (result == kNotReady) return false;
  gpu_->check(result, "cuEventQuery");
  return true;
}

double CudaEvent::seconds_to(const CudaEvent& later) const {
  const Gpu::Scope scope(*gpu_);
  float milliseconds = 0;
  gpu_->check(gpu_->functions().cuEventElapsedTime(&milliseconds, event_, later.event_),
              "cuEventElapsedTime");
  return double{milliseconds} * 1e-3;
}

LaunchArguments::LaunchArguments(const Launch& launch, const CudaQueue& queue, int64_t blocks_most)
    : executable_(static_cast<const CudaExecutable*>(launch.executable)) {
  for (const Argument& a : launch.arguments) {
    check_range(*a.buffer, a.byte_offset, 0);
    is_aligned_ = is_aligned_ && a.byte_offset % kCudaAlignment == 0;
    const Address address =
        static_cast<const CudaBuffer*>(a.buffer)->address() + static_cast<Address>(a.byte_offset);
    values_.push_back(static_cast<int64_t>(address));
  }
  values_.insert(values_.end(), launch.variables.begin(), launch.variables.end());
  const int64_t count = std::max<int64_t>(launch.end - launch.begin, 0);
  const int64_t most =
      executable_->is_grouped() ? std::numeric_limits<int32_t>::max() : blocks_most;
  const int64_t piece = std::max<int64_t>((count + most - 1) / most, 1);
  require(!executable_->is_grouped() || piece == 1, Status::Unsupported, "kernel ",
          executable_->name(), ": ", count, " groups, which are more than ", most);
  blocks_ = static_cast<unsigned>((count + piece - 1) / piece);
  values_.insert(values_.end(),
                 {launch.begin, launch.end, piece, static_cast<int64_t>(queue.status_address())});
  for (int64_t& value : values_) pointers_.push_back(&value);
}

KernelNode LaunchArguments::node() const {
  const std::array<unsigned, 3> threads =
      executable_->is_grouped() ? executable_->group() : std::array<unsigned, 3>{1, 1, 1};
  return {executable_->function(is_aligned_),
          blocks_,
          1,
          1,
          threads[0],
          threads[1],
          threads[2],
          executable_->shared_bytes(),
          const_cast<void**>(pointers_.data()),
          nullptr};
}

}  // namespace tiny::cuda

#include "runtime/cuda/gpu.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace tiny::cuda {

namespace {

constexpr int64_t kGranule = 256;
constexpr size_t kPageBytes = 4096;  // of pinned memory

// What a kept piece may be larger than what is asked for: an eighth.
constexpr int64_t kSlackPart = 8;

int64_t rounded(int64_t bytes) {
  return std::max(kGranule, (bytes + kGranule - 1) / kGranule * kGranule);
}

}  // namespace

Gpu::Gpu(Ref<Driver> driver, int64_t number, int64_t memory_kept)
    : driver_(std::move(driver)), kept_most_(memory_kept), process_(getpid()) {
  int count = 0;
  driver_->check(functions().cuDeviceGetCount(&count), "cuDeviceGetCount");
  require(number >= 0 && number < count, Status::Device, "no device cuda:", number,
          ": the CUDA driver has ", count);
  driver_->check(functions().cuDeviceGet(&number_, static_cast<int>(number)), "cuDeviceGet");
  driver_->check(functions().cuDevicePrimaryCtxRetain(&context_, number_),
                 "cuDevicePrimaryCtxRetain");
}

Gpu::~Gpu() {
  drop_kept();
  clean_up([&](const Functions& f) {
    for (void* page : pinned_pages_) f.cuMemFreeHost(page);
  });
  if (context_ && !is_lost()) functions().cuDevicePrimaryCtxRelease_v2(number_);
}

int Gpu::attribute(Attribute which) const {
  int value = 0;
  driver_->check(functions().cuDeviceGetAttribute(&value, which, number_), "cuDeviceGetAttribute");
  return value;
}

Gpu::Scope::Scope(Gpu& gpu) : gpu_(gpu) {
  gpu_.check_usable();
  gpu_.check(gpu_.functions().cuCtxPushCurrent_v2(gpu_.context_), "cuCtxPushCurrent_v2");
}

Gpu::Scope::~Scope() {
  CUctx_st* popped = nullptr;
  gpu_.functions().cuCtxPopCurrent_v2(&popped);
}

bool Gpu::is_lost() const {
  return is_lost_.load(std::memory_order_acquire) || getpid() != process_;
}

void Gpu::check_usable() {
  require(getpid() == process_, Status::DeviceLost, "the device cuda:", number_,
          " stayed behind in the process that forked: CUDA works only in that one");
  if (!is_lost()) return;
  const std::lock_guard guard(lock_);
  throw_error(Status::DeviceLost, "the device cuda:", number_, " is lost: ", why_);
}

void Gpu::lose(const std::string& words) {
  const std::lock_guard guard(lock_);
  if (is_lost_.load(std::memory_order_relaxed)) return;
  why_ = words;
  is_lost_.store(true, std::memory_order_release);
}

void Gpu::check(Result result, const char* call) {
  if (result == kSuccess) return;
  if (!loses_device(result)) driver_->check(result, call);
  lose(driver_->words(result, call));
  check_usable();
}

bool Gpu::copy_peer(Address to, Gpu& source, Address from, int64_t bytes, CUstream_st* stream) {
  source.check_usable();
  const Scope scope(*this);
  const Functions& f = functions();
  int reaches = 0;
  driver_->check(f.cuDeviceCanAccessPeer(&reaches, number_, source.number_),
                 "cuDeviceCanAccessPeer");
  if (reaches == 0) return false;
  const Result enabled = f.cuCtxEnablePeerAccess(source.context_, 0);
  if (enabled != kPeerAccessAlreadyEnabled) check(enabled, "cuCtxEnablePeerAccess");
  check(
      f.cuMemcpyPeerAsync(to, context_, from, source.context_, static_cast<size_t>(bytes), stream),
      "cuMemcpyPeerAsync");
  return true;
}

// Kept pieces go first where memory is short.
Result Gpu::allocate(Address* address, size_t bytes) {
  const Result result = functions().cuMemAlloc_v2(address, bytes);
  if (result != kOutOfMemory || kept_bytes() == 0) return result;
  drop_kept();
  return functions().cuMemAlloc_v2(address, bytes);
}

Address Gpu::take(int64_t bytes) {
  const int64_t size = rounded(bytes);
  {
    const std::lock_guard guard(lock_);
    const auto found = kept_.lower_bound(size);
    if (found != kept_.end() && found->first <= size + size / kSlackPart) {
      const Address address = found->second;
      kept_bytes_ -= found->first;
      used_ += found->first;
      sizes_.insert_or_assign(address, found->first);
      kept_.erase(found);
      return address;
    }
  }
  const Scope scope(*this);
  Address address = 0;
  check(allocate(&address, static_cast<size_t>(size)), "cuMemAlloc_v2");
  const std::lock_guard guard(lock_);
  sizes_.insert_or_assign(address, size);
  used_ += size;
  used_most_ = std::max(used_most_, used_);
  return address;
}

// With what is in use, never more is kept than was in use at once.
void Gpu::give(Address address) {
  if (is_lost()) return;
  int64_t size = 0;
  {
    const std::lock_guard guard(lock_);
    const auto found = sizes_.find(address);
    size = found->second;
    used_ -= size;
    sizes_.erase(found);
    if (used_ + kept_bytes_ + size <= used_most_ && kept_bytes_ + size <= kept_most_) {
      kept_.emplace(size, address);
      kept_bytes_ += size;
      return;
    }
  }
  clean_up([&](const Functions& f) { f.cuMemFree_v2(address); });
}

void* Gpu::take_pinned() {
  const auto take_free = [&]() -> void* {
    if (pinned_free_.empty()) return nullptr;
    void* memory = pinned_free_.back();
    pinned_free_.pop_back();
    return memory;
  };
  {
    const std::lock_guard guard(lock_);
    if (void* memory = take_free()) return memory;
  }
  void* page = nullptr;
  check(functions().cuMemHostAlloc(&page, kPageBytes, 0), "cuMemHostAlloc");
  const std::lock_guard guard(lock_);
  pinned_pages_.push_back(page);
  for (size_t at = 0; at < kPageBytes; at += kPinnedBytes)
    pinned_free_.push_back(static_cast<std::byte*>(page) + at);
  return take_free();
}

void Gpu::give_pinned(void* memory) {
  const std::lock_guard guard(lock_);
  pinned_free_.push_back(memory);
}

int64_t Gpu::kept_bytes() {
  const std::lock_guard guard(lock_);
  return kept_bytes_;
}

void Gpu::drop_kept() {
  std::multimap<int64_t, Address> dropped;
  {
    const std::lock_guard guard(lock_);
    dropped.swap(kept_);
    kept_bytes_ = 0;
  }
  clean_up([&](const Functions& f) {
    for (const auto& [size, address] : dropped) f.cuMemFree_v2(address);
  });
}

}  // namespace tiny::cuda

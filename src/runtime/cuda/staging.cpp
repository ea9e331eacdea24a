#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace tiny::cuda {

Staging::~Staging() {
  if (!memory_) return;
  gpu_->clean_up([&](const Functions& f) {
    for (const Half& half : halves_)
      if (half.used) f.cuEventSynchronize(half.used->handle());
    f.cuMemFreeHost(memory_);
  });
}

void Staging::make() {
  if (memory_) return;
  const Gpu::Scope scope(*gpu_);
  gpu_->check(gpu_->functions().cuMemHostAlloc(&memory_, 2 * kHalfBytes, 0), "cuMemHostAlloc");
  auto* data = static_cast<std::byte*>(memory_);
  for (Half& half : halves_) {
    half.data = data;
    data += kHalfBytes;
  }
}

void Staging::copy_in(const CudaQueue& queue, Address to, const void* from, int64_t bytes) {
  const std::lock_guard guard(lock_);
  make();
  const auto* source = static_cast<const std::byte*>(from);
  for (int64_t at = 0; at < bytes; at += kHalfBytes) {
    Half& half = halves_[next_++ % 2];
    const auto size = static_cast<size_t>(std::min(kHalfBytes, bytes - at));
    if (half.used) half.used->wait();
    std::memcpy(half.data, source + at, size);
    {
      const Gpu::Scope scope(*gpu_);
      gpu_->check(gpu_->functions().cuMemcpyHtoDAsync_v2(to + static_cast<Address>(at), half.data,
                                                         size, queue.stream()),
                  "cuMemcpyHtoDAsync_v2");
    }
    if (!half.used) half.used = make_ref<CudaEvent>(gpu_);
    half.used->record(queue);
  }
}

void Staging::copy_out(const CudaQueue& queue, void* to, Address from, int64_t bytes) {
  const std::lock_guard guard(lock_);
  make();
  auto* target = static_cast<std::byte*>(to);
  struct Pending {
    Half* half = nullptr;
    int64_t at = 0;
    size_t size = 0;
  } pending;
  const auto finish = [&] {
    if (!pending.half) return;
    pending.half->used->wait();
    std::memcpy(target + pending.at, pending.half->data, pending.size);
    pending = {};
  };
  for (int64_t at = 0; at < bytes; at += kHalfBytes) {
    Half& half = halves_[next_++ % 2];
    const auto size = static_cast<size_t>(std::min(kHalfBytes, bytes - at));
    if (half.used) half.used->wait();
    {
      const Gpu::Scope scope(*gpu_);
      gpu_->check(gpu_->functions().cuMemcpyDtoHAsync_v2(half.data, from + static_cast<Address>(at),
                                                         size, queue.stream()),
                  "cuMemcpyDtoHAsync_v2");
    }
    if (!half.used) half.used = make_ref<CudaEvent>(gpu_);
    half.used->record(queue);
    finish();  // the piece before, while this one is under way
    pending = {&half, at, size};
  }
  finish();
}

}  // namespace tiny::cuda

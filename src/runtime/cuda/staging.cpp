#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace tiny::cuda {

namespace {

// Two large pieces are enough that the device is never idle for the host; of small copies many may
// wait in their queues, and none is to wait for another's.
constexpr int64_t kLargeBytes = 4 << 20, kSmallBytes = 64 << 10;
constexpr size_t kLargePieces = 2, kSmallPieces = 32;

}  // namespace

Staging::Staging(const Ref<Gpu>& gpu)
    : small_(gpu, kSmallBytes, kSmallPieces), large_(gpu, kLargeBytes, kLargePieces) {
}

void Staging::copy_in(const CudaQueue& queue, Address to, const void* from, int64_t bytes) {
  Ring& ring = bytes <= kSmallBytes ? small_ : large_;
  ring.copy_in(queue, to, static_cast<const std::byte*>(from), bytes);
}

void Staging::copy_out(const CudaQueue& queue, void* to, Address from, int64_t bytes) {
  queue.wait();  // others' copies need not
  Ring& ring = bytes <= kSmallBytes ? small_ : large_;
  ring.copy_out(queue, static_cast<std::byte*>(to), from, bytes);
}

Staging::Ring::~Ring() {
  if (!memory_) return;
  gpu_->clean_up([&](const Functions& f) {
    for (const Piece& piece : pieces_)
      if (piece.used) f.cuEventSynchronize(piece.used->handle());
    f.cuMemFreeHost(memory_);
  });
}

void Staging::Ring::make() {
  if (memory_) return;
  const Gpu::Scope scope(*gpu_);
  const auto bytes = static_cast<size_t>(piece_bytes_) * pieces_.size();
  gpu_->check(gpu_->functions().cuMemHostAlloc(&memory_, bytes, 0), "cuMemHostAlloc");
  auto* data = static_cast<std::byte*>(memory_);
  for (Piece& piece : pieces_) {
    piece.data = data;
    data += piece_bytes_;
  }
}

Staging::Ring::Piece& Staging::Ring::next() {
  make();
  Piece& piece = pieces_[next_++ % pieces_.size()];
  if (piece.used) piece.used->wait();
  return piece;
}

void Staging::Ring::mark(Piece& piece, const CudaQueue& queue) {
  if (!piece.used) piece.used = make_ref<CudaEvent>(gpu_);
  piece.used->record(queue);
}

void Staging::Ring::copy_in(const CudaQueue& queue, Address to, const std::byte* from,
                            int64_t bytes) {
  const std::lock_guard guard(lock_);
  for (int64_t at = 0; at < bytes; at += piece_bytes_) {
    Piece& piece = next();
    const auto size = static_cast<size_t>(std::min(piece_bytes_, bytes - at));
    std::memcpy(piece.data, from + at, size);
    const Gpu::Scope scope(*gpu_);
    gpu_->check(gpu_->functions().cuMemcpyHtoDAsync_v2(to + static_cast<Address>(at), piece.data,
                                                       size, queue.stream()),
                "cuMemcpyHtoDAsync_v2");
    mark(piece, queue);
  }
}

void Staging::Ring::copy_out(const CudaQueue& queue, std::byte* to, Address from, int64_t bytes) {
  const std::lock_guard guard(lock_);
  struct {
    Piece* piece = nullptr;
    int64_t at = 0;
    size_t size = 0;
  } before;
  const auto finish = [&] {
    if (!before.piece) return;
    before.piece->used->wait();
    std::memcpy(to + before.at, before.piece->data, before.size);
  };
  for (int64_t at = 0; at < bytes; at += piece_bytes_) {
    Piece& piece = next();
    const auto size = static_cast<size_t>(std::min(piece_bytes_, bytes - at));
    {
      const Gpu::Scope scope(*gpu_);
      gpu_->check(gpu_->functions().cuMemcpyDtoHAsync_v2(
                      piece.data, from + static_cast<Address>(at), size, queue.stream()),
                  "cuMemcpyDtoHAsync_v2");
      mark(piece, queue);
    }
    finish();  // while this one is under way
    before = {&piece, at, size};
  }
  finish();
}

}  // namespace tiny::cuda

// Copies between memory of the host and of a device through pinned memory of our own, so that the
// driver never reads or writes the caller's: while one piece is under way the host fills or empties
// the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/cuda/parts.h"

namespace tiny::cuda {

class Staging {
 public:
  explicit Staging(const Ref<Gpu>& gpu);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // `from` has been read when this returns; the device has the bytes when the queue comes to it.
  void copy_in(const CudaQueue& queue, Address to, const void* from, int64_t bytes);
  // Waits for the queue.
  void copy_out(const CudaQueue& queue, void* to, Address from, int64_t bytes);

 private:
  // Pieces that are used one after the other.
  class Ring {
   public:
    Ring(Ref<Gpu> gpu, int64_t piece_bytes, size_t pieces)
        : gpu_(std::move(gpu)), piece_bytes_(piece_bytes), pieces_(pieces) {}
    ~Ring();
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    void copy_in(const CudaQueue& queue, Address to, const std::byte* from, int64_t bytes);
    void copy_out(const CudaQueue& queue, std::byte* to, Address from, int64_t bytes);

   private:
    struct Piece {
      std::byte* data = nullptr;
      Ref<CudaEvent> used;  // the last copy with it; null: none
    };
    void make();
    Piece& next();
    void mark(Piece& piece, const CudaQueue& queue);

    const Ref<Gpu> gpu_;
    const int64_t piece_bytes_;
    std::mutex lock_;
    void* memory_ = nullptr;
    std::vector<Piece> pieces_;
    size_t next_ = 0;
  };

  Ring small_, large_;
};

}  // namespace tiny::cuda

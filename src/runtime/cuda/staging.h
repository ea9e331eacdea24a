// Copies between memory of the host and of a device through pinned memory, in two halves: while one
// is under way the host fills or empties the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "runtime/cuda/parts.h"

namespace tiny::cuda {

class Staging {
 public:
  explicit Staging(Ref<Gpu> gpu) : gpu_(std::move(gpu)) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // `from` has been read when this returns; the device has the bytes when the queue comes to it.
  void copy_in(const CudaQueue& queue, Address to, const void* from, int64_t bytes);
  // Waits for the queue.
  void copy_out(const CudaQueue& queue, void* to, Address from, int64_t bytes);

 private:
  static constexpr int64_t kHalfBytes = 4 << 20;
  struct Half {
    std::byte* data = nullptr;
    Ref<CudaEvent> used;  // the last copy that reads it; null: none
  };
  void make();

  Ref<Gpu> gpu_;
  std::mutex lock_;
  void* memory_ = nullptr;
  std::array<Half, 2> halves_;
  size_t next_ = 0;
};

}  // namespace tiny::cuda

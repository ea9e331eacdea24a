// Memory in 2 MB pages for large buffers; what is given back is kept for the next ones, which need
// not wait for pages to be made and cleared.
//
//   Bounded   what is kept is at most `limit` bytes, and together with what is in use never more
//             than was in use at once before: a process does not grow by what is kept.
//   Threads   all functions may be called from any thread; no giving back needs memory.
//   Lifetime  outlives the device: its buffers may.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/ref.h"

namespace tiny {

class KeptMemory : public RefCounted {
 public:
  // Pages with the place in them where a buffer begins.
  struct Mapping {
    std::byte* base = nullptr;
    size_t bytes = 0;
    std::byte* data = nullptr;
    size_t room() const { return static_cast<size_t>(base + bytes - data); }
  };

  explicit KeptMemory(int64_t limit) : limit_(static_cast<size_t>(limit)) {}
  ~KeptMemory() override { drop_all(); }

  // Room for `bytes`, which begins `stagger` behind a large page where it is new.
  // Error{OutOfMemory} if it cannot be had.
  Mapping take(int64_t bytes, int64_t stagger);
  void give(const Mapping& mapping);
  // Nothing is kept any more.
  void drop_all();
  int64_t kept();

 private:
  void drop(size_t index);
  void drop_to(size_t kept_most);

  static constexpr size_t kMost = 16;
  std::mutex lock_;
  std::array<Mapping, kMost> mappings_;  // the first `count_`, the oldest first
  size_t count_ = 0, kept_ = 0, used_ = 0, used_most_ = 0;
  const size_t limit_;
};

}  // namespace tiny

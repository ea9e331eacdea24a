// Whether work is worth sharing now.  Where another process keeps a core busy, a worker may hold a
// piece while it does not run, and whoever shares waits for it, a time slice of the system's. After
// such a wait work is done alone for a while, longer each time it happens again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tiny {

// All times in nanoseconds; from any thread.
class Company {
 public:
  bool is_welcome(int64_t now) const { return now >= alone_until_.load(std::memory_order_relaxed); }
  // What a shared job that ended at `now` showed: how long its caller waited with nothing left to
  // claim, and how long a piece takes.
  void noticed(int64_t now, int64_t waited, int64_t piece) {
    if (waited < kStall || waited < kPieces * piece) return;
    const int64_t last = alone_.load(std::memory_order_relaxed);
    const bool again = now < alone_until_.load(std::memory_order_relaxed) + last;
    const int64_t alone = again ? std::min(2 * last, kAloneMax) : kStalls * waited;
    alone_.store(std::min(alone, kAloneMax), std::memory_order_relaxed);
    alone_until_.store(now + alone, std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kStall = 500'000;  // less is a neighbour's cache or a page fault
  static constexpr int64_t kPieces = 3;       // a slower core's piece is no stall
  static constexpr int64_t kStalls = 4;
  static constexpr int64_t kAloneMax = 250'000'000;
  std::atomic<int64_t> alone_until_{0};
  std::atomic<int64_t> alone_{0};  // how long, the last time
};

}  // namespace tiny

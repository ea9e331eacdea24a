// Whether work is worth sharing now.  Where another process keeps a core busy, a worker may hold a
// piece while it does not run, and whoever shares waits for it, a time slice of the system's. After
// such a wait work is done alone for a while, longer each time that it happens again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tiny {

// Times are nanoseconds of work: what others do between two runs does not count.  From any thread.
class Company {
 public:
  bool is_welcome() const { return left_.load(std::memory_order_relaxed) <= 0; }
  // Work that was not shared took so long.
  void was_alone(int64_t took) {
    if (!is_welcome()) left_.fetch_sub(took, std::memory_order_relaxed);
  }
  // Shared work took so long; its caller `waited` with nothing left to claim, of pieces that take
  // `piece` each.
  void was_shared(int64_t took, int64_t waited, int64_t piece) {
    if (waited < kStall || waited < kPieces * piece) {
      since_.fetch_add(took, std::memory_order_relaxed);
      return;
    }
    // Stalls so far apart that sharing gains more than they cost do not make it longer.
    const int64_t last = last_.load(std::memory_order_relaxed);
    const bool is_again = since_.exchange(0, std::memory_order_relaxed) < kStalls * waited;
    const int64_t alone =
        std::min(std::max(is_again ? kGrowth * last : 0, kStalls * waited), kAloneMax);
    last_.store(alone, std::memory_order_relaxed);
    left_.store(alone, std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kStall = 500'000;  // less is a neighbour's cache or a page fault
  static constexpr int64_t kPieces = 3;       // a slower core's piece is no stall
  static constexpr int64_t kStalls = 8;
  static constexpr int64_t kGrowth = 4;
  static constexpr int64_t kAloneMax = 250'000'000;
  std::atomic<int64_t> left_{0};   // to be done alone
  std::atomic<int64_t> last_{0};   // what that was at first
  std::atomic<int64_t> since_{0};  // shared without a stall
};

}  // namespace tiny

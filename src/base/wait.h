// Waiting for what other threads do: looking at it for a moment first, then asleep.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tiny {

// Sleeps while the word has this value, until it is woken; may return without a reason.
void futex_wait(std::atomic<uint32_t>& word, uint32_t while_equal);
// The same, for at most so long.
void futex_wait_for(std::atomic<uint32_t>& word, uint32_t while_equal,
                    std::chrono::nanoseconds time);
void futex_wake(std::atomic<uint32_t>& word, int threads);

// How long a thread looks before it sleeps.
inline constexpr auto kSpin = std::chrono::microseconds(50);

// Looks at `ready` for at most kSpin; true as soon as it holds.
template <class Ready>
bool spin_until(const Ready& ready) {
  constexpr int kLooksPerYield = 256;
  const auto give_up = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooksPerYield; ++i)
      if (ready()) return true;
    sched_yield();
  } while (std::chrono::steady_clock::now() < give_up);
  return ready();
}

// A number of things to be done, which others wait for.
class Countdown {
 public:
  // Nobody may wait or count meanwhile.
  void start(uint32_t count) { left_.store(count, std::memory_order_relaxed); }
  bool is_done() const { return left_.load(std::memory_order_acquire) == 0; }
  void count();
  void wait();

 private:
  std::atomic<uint32_t> left_{0};
  std::atomic<uint32_t> asleep_{0};
};

}  // namespace tiny

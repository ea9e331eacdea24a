#include "base/wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tiny {

void futex_wait(std::atomic<uint32_t>& word, uint32_t while_equal, int64_t nanoseconds) {
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec limit{nanoseconds / kSecond, nanoseconds % kSecond};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, while_equal,
          nanoseconds > 0 ? &limit : nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int threads) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, threads, nullptr,
          nullptr, 0);
}

// Who falls asleep is counted before it looks, and who ends looks afterwards: one sees the other.
void Countdown::count() {
  if (left_.fetch_sub(1) == 1 && asleep_.load() != 0) futex_wake(left_, INT_MAX);
}

void Countdown::wait(const StopSignal* stop) {
  if (spin_until([&] { return is_done(); })) return;
  asleep_.fetch_add(1);
  for (uint32_t left = left_.load(); left != 0; left = left_.load()) {
    futex_wait(left_, left, stop ? kAskNanoseconds : 0);
    if (stop) stop->is_over();
  }
  asleep_.fetch_sub(1);
}

}  // namespace tiny

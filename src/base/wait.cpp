#include "base/wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace tiny {

void futex_wait(std::atomic<uint32_t>& word, uint32_t while_equal) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, while_equal, nullptr,
          nullptr, 0);
}

void futex_wait_for(std::atomic<uint32_t>& word, uint32_t while_equal,
                    std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  struct timespec left{};
  left.tv_sec = static_cast<time_t>(seconds.count());
  left.tv_nsec = static_cast<long>(std::max<int64_t>(0, (time - seconds).count()));
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, while_equal, &left,
          nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int threads) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, threads, nullptr,
          nullptr, 0);
}

// Who falls asleep is counted before it looks, and who ends looks afterwards: one sees the other.
void Countdown::count() {
  if (left_.fetch_sub(1) == 1 && asleep_.load() != 0) futex_wake(left_, INT_MAX);
}

void Countdown::wait() {
  if (spin_until([&] { return is_done(); })) return;
  asleep_.fetch_add(1);
  for (uint32_t left = left_.load(); left != 0; left = left_.load()) futex_wait(left_, left);
  asleep_.fetch_sub(1);
}

}  // namespace tiny

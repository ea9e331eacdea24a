// The lock of building calls: one at a time, in turn, with ends to waiting.
#include "base/fair_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/inside.h"

namespace tiny {
namespace {

using namespace std::chrono_literals;
using Clock = FairLock::Clock;
using Result = FairLock::Result;

TEST(FairLock, IsOneThreadsAtATime) {
  FairLock lock;
  int64_t count = 0;  // not atomic: the lock guards it
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 3000; ++i) {
        if (i % 3 == 0 ? lock.try_lock() : lock.lock() == Result::Taken) {
          ++count;
          lock.unlock();
        } else {
          --i;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(count, 6 * 3000);
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
}

TEST(FairLock, WaitsNoLongerThanIsWanted) {
  FairLock lock;
  ASSERT_TRUE(lock.try_lock());
  std::thread([&] {
    const auto start = Clock::now();
    EXPECT_EQ(lock.lock(start + 20ms), Result::TimedOut);
    EXPECT_GE(Clock::now() - start, 20ms);
    EXPECT_EQ(lock.lock(start), Result::TimedOut);
  }).join();
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());  // who gave up left nothing behind
  lock.unlock();
}

TEST(FairLock, ACancelledWaiterGoesAndTheNextComes) {
  FairLock lock;
  const auto token = make_ref<CancelToken>();
  lock.set_token(token);
  ASSERT_TRUE(lock.try_lock());
  std::thread waiter([&] { EXPECT_EQ(lock.lock(), Result::Cancelled); });
  std::this_thread::sleep_for(5ms);
  token->set();
  waiter.join();
  token->clear();
  std::thread next([&] {
    EXPECT_EQ(lock.lock(), Result::Taken);
    lock.unlock();
  });
  std::this_thread::sleep_for(5ms);
  lock.unlock();
  next.join();
}

struct Asked {
  std::atomic<int> calls{0};
  int ends_at = 0;
  static int32_t ask(void* user) {
    auto& self = *static_cast<Asked*>(user);
    return ++self.calls >= self.ends_at ? 1 : 0;
  }
};

TEST(FairLock, AWaiterAsksAndGoes) {
  FairLock lock;
  ASSERT_TRUE(lock.try_lock());
  Asked asked;
  asked.ends_at = 3;
  std::thread([&] {
    EXPECT_EQ(lock.lock(Clock::time_point::max(), {Asked::ask, &asked}), Result::Ended);
  }).join();
  EXPECT_EQ(asked.calls, 3);
  lock.unlock();
  EXPECT_EQ(lock.lock(Clock::time_point::max(), {Asked::ask, &asked}), Result::Taken);
  EXPECT_EQ(asked.calls, 3);  // who need not wait is not asked
  lock.unlock();
}

// Whoever takes the lock again at once does not keep it: it is handed to who has waited long.
TEST(FairLock, IsHandedToWhoHasWaited) {
  FairLock lock;
  std::atomic<bool> is_over{false};
  std::thread greedy([&] {
    while (!is_over.load()) {
      ASSERT_EQ(lock.lock(), Result::Taken);
      std::this_thread::sleep_for(200us);
      lock.unlock();
    }
  });
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(lock.lock(Clock::now() + 10s), Result::Taken);
    lock.unlock();
  }
  is_over.store(true);
  greedy.join();
}

TEST(FairLock, WhoTookItLastIsKnown) {
  FairLock lock;
  EXPECT_FALSE(lock.was_mine());
  ASSERT_TRUE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.was_mine());
  std::thread([&] { EXPECT_FALSE(lock.was_mine()); }).join();
}

TEST(Inside, IsOfThisThreadAndOfWhatIsAround) {
  int outer = 0, inner = 0;
  EXPECT_FALSE(Inside::is(&outer));
  {
    const Inside first(&outer);
    {
      const Inside second(&inner);
      EXPECT_TRUE(Inside::is(&outer) && Inside::is(&inner));
      std::thread([&] { EXPECT_FALSE(Inside::is(&outer)); }).join();
    }
    EXPECT_TRUE(Inside::is(&outer) && !Inside::is(&inner));
  }
  EXPECT_FALSE(Inside::is(&outer));
}

}  // namespace
}  // namespace tiny

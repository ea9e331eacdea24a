// When work is to end, and who is asked.
#include "base/stop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"

namespace tiny {
namespace {

Status status_of(const StopSignal& stop) {
  try {
    stop.check();
  } catch (const Error& e) {
    return e.status();
  }
  return Status::Ok;
}

TEST(Stop, WithoutAReasonItNeverIsOver) {
  StopSignal stop;
  EXPECT_FALSE(stop.is_over());
  stop.begin(0);
  EXPECT_FALSE(stop.is_over());
  EXPECT_EQ(kStay.ask(&kStay), 0);
}

TEST(Stop, ATokenEndsItUntilTheNextBeginning) {
  StopSignal stop;
  const Ref<CancelToken> token = make_ref<CancelToken>();
  stop.set_token(token);
  stop.begin(0);
  EXPECT_EQ(stop.ask(&stop), 0);
  token->set();
  EXPECT_FALSE(stop.is_known_over());
  EXPECT_NE(stop.ask(&stop), 0);
  EXPECT_TRUE(stop.is_known_over());
  token->clear();
  EXPECT_EQ(status_of(stop), Status::Cancelled) << "a kernel may have left";
  stop.begin(0);
  EXPECT_EQ(status_of(stop), Status::Ok);
}

TEST(Stop, TimeEndsItOnAnyThread) {
  StopSignal stop;
  stop.begin(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  bool over = false;
  std::thread([&] { over = stop.is_over(); }).join();
  EXPECT_TRUE(over);
  EXPECT_EQ(status_of(stop), Status::Limit);
}

TEST(Stop, TheFunctionIsAskedNowAndThenByTheCaller) {
  using Clock = StopSignal::Clock;
  using namespace std::chrono_literals;
  constexpr size_t kCalls = 3;
  struct Asked {
    std::vector<Clock::time_point> calls;
    static int32_t ask(void* user) {
      auto& calls = static_cast<Asked*>(user)->calls;
      calls.push_back(Clock::now());
      return calls.size() > kCalls ? 1 : 0;
    }
  } asked;
  StopSignal stop;
  stop.set_poll({Asked::ask, &asked});
  stop.begin(0);
  const auto look_for = [&](Clock::duration time) {
    const auto end = Clock::now() + time;
    while (Clock::now() < end && !stop.is_over()) continue;
  };
  EXPECT_FALSE(stop.is_over());
  EXPECT_TRUE(asked.calls.empty()) << "not in short calls";
  std::thread([&] { look_for(12ms); }).join();
  EXPECT_TRUE(asked.calls.empty()) << "not by other threads";
  look_for(20s);  // long before that it has been asked often enough, however busy the machine
  EXPECT_EQ(status_of(stop), Status::Cancelled);
  ASSERT_EQ(asked.calls.size(), kCalls + 1);
  for (size_t i = 1; i <= kCalls; ++i) EXPECT_GE(asked.calls[i] - asked.calls[i - 1], 4ms) << i;
}

TEST(Stop, PiecesThatHaveNotBegunAreLeftOut) {
  ThreadPool pool(2);
  StopSignal stop;
  const Ref<CancelToken> token = make_ref<CancelToken>();
  stop.set_token(token);
  stop.begin(0);
  std::atomic<int> done{0};
  EXPECT_THROW(for_each_piece(&pool, 1000, stop,
                              [&](int64_t, int) {
                                if (++done == 10) token->set();
                              }),
               Error);
  EXPECT_GE(done, 10);
  EXPECT_LT(done, 1000);
}

}  // namespace
}  // namespace tiny

// When work is to end, and who is asked.
#include "base/stop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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
  struct Asked {
    int calls = 0;
    int32_t answer = 0;
    static int32_t ask(void* user) {
      auto& self = *static_cast<Asked*>(user);
      ++self.calls;
      return self.answer;
    }
  } asked;
  StopSignal stop;
  stop.set_poll({Asked::ask, &asked});
  stop.begin(0);
  const auto look_for = [&](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end && !stop.is_over()) continue;
  };
  EXPECT_FALSE(stop.is_over());
  EXPECT_EQ(asked.calls, 0) << "not in short calls";
  std::thread([&] { look_for(std::chrono::milliseconds(12)); }).join();
  EXPECT_EQ(asked.calls, 0) << "not by other threads";
  look_for(std::chrono::milliseconds(22));
  EXPECT_GE(asked.calls, 1);
  EXPECT_LE(asked.calls, 5);
  asked.answer = 1;
  look_for(std::chrono::seconds(5));
  EXPECT_EQ(status_of(stop), Status::Cancelled);
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

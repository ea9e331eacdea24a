#include "base/stop.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace tiny {
namespace {

// The caller's function is asked no more often.  Work is to end within 20 milliseconds.
constexpr int64_t kPollNanoseconds = 5'000'000;

int64_t nanoseconds(StopSignal::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

int64_t now() {
  return nanoseconds(StopSignal::Clock::now());
}

}  // namespace

void StopSignal::begin(int64_t milliseconds, Since since) {
  limit_ = milliseconds;
  reason_.store(Reason::None, std::memory_order_relaxed);
  caller_ = pthread_self();
  next_poll_ = 0;  // the first look asks the clock: most calls are over before
  if (limit_ <= 0) return;
  end_ =
      (since ? nanoseconds(*since) : now()) + std::min(limit_, INT64_MAX / 4'000'000) * 1'000'000;
}

// Asks whoever may end it.
bool StopSignal::look() const noexcept {
  const auto found = [&](Reason reason) {
    reason_.store(reason, std::memory_order_relaxed);
    return true;
  };
  if (token_ && token_->is_set()) return found(Reason::Token);
  if (limit_ <= 0 && !poll_.ask) return false;
  const int64_t time = now();
  if (limit_ > 0 && time >= end_) return found(Reason::Time);
  if (!poll_.ask || !pthread_equal(caller_, pthread_self()) || time < next_poll_) return false;
  const bool is_first = next_poll_ == 0;
  const bool ends = !is_first && poll_.ask(poll_.user) != 0;
  next_poll_ = (is_first ? time : now()) + kPollNanoseconds;
  return ends && found(Reason::Poll);
}

int32_t StopSignal::ask_signal(const KernelPoll* self) noexcept {
  return static_cast<const StopSignal*>(self)->is_over() ? 1 : 0;
}

void StopSignal::fail() const {
  const Reason reason = reason_.load(std::memory_order_relaxed);
  require(reason != Reason::Token, Status::Cancelled, "the cancel token was set");
  require(reason != Reason::Poll, Status::Cancelled, "the poll function ended it");
  throw_error(Status::Limit, "the call took more than the limit time_limit = ", limit_,
              " milliseconds; a higher one is set with the option "
              "\"time_limit\"");
}

void StopSignal::step(const char* verb, const std::string& subject, int64_t done,
                      int64_t total) const {
  check();
  if (!progress_.tell) return;
  const std::string what = cat(verb, " ", subject);
  require(progress_.tell(progress_.user, what.c_str(), done, total) == 0, Status::Cancelled,
          "the progress function ended it: \"", what, "\", ", done, " of ", total, " done");
}

}  // namespace tiny

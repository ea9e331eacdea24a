#include "base/stop.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace tiny {
namespace {

int64_t now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace

void StopSignal::begin(int64_t milliseconds) {
  limit_ = milliseconds;
  if (limit_ > 0) end_ = now() + std::min(limit_, INT64_MAX / 4'000'000) * 1'000'000;
}

void StopSignal::check() const {
  require(!token_ || !token_->is_set(), Status::Cancelled, "the cancel token was set");
  require(limit_ <= 0 || now() < end_, Status::Limit,
          "the call took more than the limit time_limit = ", limit_,
          " milliseconds; a higher one is set with the option \"time_limit\"");
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

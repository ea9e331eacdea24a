// Work that ends early: because somebody set a token, or because a call has taken too long.
//
// Long work calls check() between its steps.  A token may be set and cleared by any thread; a
// signal belongs to the thread that works.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/ref.h"

namespace tiny {

class CancelToken : public RefCounted {
 public:
  void set() { set_.store(true, std::memory_order_relaxed); }
  void clear() { set_.store(false, std::memory_order_relaxed); }
  bool is_set() const { return set_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> set_{false};
};

class StopSignal {
 public:
  void set_token(Ref<CancelToken> token) { token_ = std::move(token); }
  const Ref<CancelToken>& token() const { return token_; }

  // The beginning of a call that may take this many milliseconds; 0: as long as it wants.
  void begin(int64_t milliseconds) {
    limit_ = milliseconds;
    if (limit_ > 0) end_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_);
  }
  // Error{Cancelled} if the token is set, Error{Limit} if the time is up.
  void check() const {
    require(!token_ || !token_->is_set(), Status::Cancelled, "the cancel token was set");
    require(limit_ <= 0 || std::chrono::steady_clock::now() < end_, Status::Limit,
            "the call took more than the limit time_limit = ", limit_,
            " milliseconds; a higher one is set with the option \"time_limit\"");
  }

 private:
  Ref<CancelToken> token_;
  int64_t limit_ = 0;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace tiny

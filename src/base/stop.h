// Work that ends early: because somebody set a token, or because a call has taken too long.
//
// Long work calls check() between its steps.  A token may be set and cleared by any thread; a
// signal belongs to the thread that works.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

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
  void begin(int64_t milliseconds);
  // Error{Cancelled} if the token is set, Error{Limit} if the time is up.
  void check() const;

 private:
  Ref<CancelToken> token_;
  int64_t limit_ = 0;
  int64_t end_ = 0;  // nanoseconds of the steady clock
};

}  // namespace tiny

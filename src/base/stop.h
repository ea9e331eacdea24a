// Work that ends early: because somebody set a token, because a call has taken too long, or because
// whoever is told of its progress says so.
//
// Long work calls check() between its steps, or step() where they can be counted.  A token may be
// set and cleared by any thread; a signal belongs to the thread that works.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
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

// Whom long work tells how far it is, on the thread that works: `done` of `total` steps of `what`.
// What is not 0 ends it.
struct Progress {
  int32_t (*tell)(void* user, const char* what, int64_t done, int64_t total) = nullptr;
  void* user = nullptr;
};

class StopSignal {
 public:
  void set_progress(const Progress& progress) { progress_ = progress; }
  void set_token(Ref<CancelToken> token) { token_ = std::move(token); }
  const Ref<CancelToken>& token() const { return token_; }

  // The beginning of a call that may take this many milliseconds; 0: as long as it wants.
  void begin(int64_t milliseconds);
  // Error{Cancelled} if the token is set, Error{Limit} if the time is up.
  void check() const;
  // check(), and tells that `done` of `total` steps of `verb subject` are done; Error{Cancelled} if
  // that is to be the end.
  void step(const char* verb, const std::string& subject, int64_t done, int64_t total) const;

 private:
  Ref<CancelToken> token_;
  Progress progress_;
  int64_t limit_ = 0;
  int64_t end_ = 0;  // nanoseconds of the steady clock
};

}  // namespace tiny

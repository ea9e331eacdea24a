// Work that ends early: because somebody set a token, because a call has taken too long, because
// whoever is told of its progress says so, or who is asked now and then.
//
// Long work calls check() between its steps, or step() where they can be counted; kernels ask in
// the middle of theirs (base/kernel_abi.h), from any worker.  A token may be set and cleared by any
// thread; a signal belongs to the thread that called begin().
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/kernel_abi.h"
#include "base/ref.h"

namespace tiny {

class CancelToken : public RefCounted {
 public:
  void set() { set_.store(true, std::memory_order_relaxed); }
  void clear() { set_.store(false, std::memory_order_relaxed); }
  bool is_set() const { return set_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> set_{false};
  static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers set tokens");
};

// Whom long work tells how far it is, on the thread that works: `done` of `total` steps of `what`.
// What is not 0 ends it.
struct Progress {
  int32_t (*tell)(void* user, const char* what, int64_t done, int64_t total) = nullptr;
  void* user = nullptr;
};

// Whom long work asks every few milliseconds, on the thread that called.  What is not 0 ends it.
struct Poll {
  int32_t (*ask)(void* user) = nullptr;
  void* user = nullptr;
};

class StopSignal : public KernelPoll {
 public:
  using Clock = std::chrono::steady_clock;
  // When a call began; none: now.
  using Since = std::optional<Clock::time_point>;

  StopSignal() : KernelPoll{ask_signal} {}

  void set_progress(const Progress& progress) { progress_ = progress; }
  void set_poll(const Poll& poll) { poll_ = poll; }
  void set_token(Ref<CancelToken> token) { token_ = std::move(token); }
  const Ref<CancelToken>& token() const { return token_; }

  // A call, or another part of one, that may take this many milliseconds in all; 0: as long as it
  // wants.
  void begin(int64_t milliseconds, Since since = {});
  // Whether the work is to end.  Once it is, it stays so until the next begin().
  bool is_over() const noexcept {
    if (is_known_over()) return true;
    return (token_ || limit_ > 0 || poll_.ask) && look();
  }
  // The same, of what somebody has found before: reads one word.
  bool is_known_over() const noexcept {
    return reason_.load(std::memory_order_relaxed) != Reason::None;
  }
  // If is_over(): Error{Cancelled}, or Error{Limit} if the time is up.
  void check() const {
    if (is_over()) fail();
  }
  // If is_known_over(), the same: after kernels, which may have left early.
  void check_known() const {
    if (is_known_over()) fail();
  }
  // check(), and tells that `done` of `total` steps of `verb subject` are done; Error{Cancelled} if
  // that is to be the end.
  void step(const char* verb, const std::string& subject, int64_t done, int64_t total) const;

 private:
  enum class Reason : uint8_t { None, Token, Time, Poll };

  static int32_t ask_signal(const KernelPoll* self) noexcept;
  bool look() const noexcept;
  [[noreturn]] void fail() const;

  Ref<CancelToken> token_;
  Progress progress_;
  Poll poll_;
  int64_t limit_ = 0;
  int64_t end_ = 0;  // nanoseconds of the steady clock
  pthread_t caller_{};
  mutable int64_t next_poll_ = 0;  // the same clock; read and written by the caller alone
  mutable std::atomic<Reason> reason_{Reason::None};
};

}  // namespace tiny

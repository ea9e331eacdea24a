// A lock for which threads wait asleep, each no longer than it wants.
//
// Free, it costs one exchange to take.  While threads wait, others may overtake them, until the
// first of them has waited for kPatience: then the lock is handed to it.
//
// Fork: a child has one thread.  The lock is free in the child if no other thread of the parent
// held it; otherwise it is lost, since what it guards stays as that thread left it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/ref.h"
#include "base/stop.h"

namespace tiny {

class FairLock {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Result : uint8_t { Taken, TimedOut, Cancelled, Ended, Lost };

  // `in_child` (may be null) is called with `user` once in a forked child that may go on.
  explicit FairLock(void (*in_child)(void* user) = nullptr, void* user = nullptr);
  FairLock(const FairLock&) = delete;
  FairLock& operator=(const FairLock&) = delete;
  ~FairLock();

  bool try_lock();
  // A thread that holds the lock must not call this.  While it waits it asks `poll`, if there is
  // one, every few milliseconds, and leaves with Ended if that says so.
  Result lock(Clock::time_point until = Clock::time_point::max(), const Poll& poll = {});
  void unlock();
  bool is_lost();
  // Whether this thread was the last to take it.
  bool was_mine() const;
  // Who waits ends with Cancelled when it is set; may be null.
  void set_token(Ref<CancelToken> token);
  Ref<CancelToken> token() const;

 private:
  // On a page that a forked child finds zeroed.
  struct Words {
    std::atomic<uint64_t> known;  // process(), once this process has looked at the lock
    std::atomic<uint32_t> state;
    std::atomic<uint32_t> guard;  // of the queue: held for a few instructions
  };
  struct Waiter {
    std::atomic<uint32_t> word{0};
    Clock::time_point since{};
    bool is_ended = false;  // the poll has said so
    Waiter* previous = nullptr;
    Waiter* next = nullptr;
  };
  class Guard;

  uint64_t process() const;
  bool is_known() const { return words_->known.load(std::memory_order_acquire) == process(); }
  void adopt();
  bool try_take();
  void own();
  void hand_over();
  Result wait(Waiter& self, Clock::time_point until, const Poll& poll);
  void append(Waiter& waiter);
  void remove(Waiter& waiter);

  Words* words_ = nullptr;
  bool wiped_on_fork_ = false;
  std::atomic<const void*> owner_{nullptr};  // a mark of the thread that took it last
  std::atomic<bool> is_held_{false};         // what a child finds
  std::atomic<bool> lost_{false};
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  Ref<CancelToken> token_;
  void (*in_child_)(void*);
  void* user_;
};

}  // namespace tiny

#include "base/fair_lock.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/wait.h"

namespace tiny {

namespace {

// Bits of the state.
constexpr uint32_t kHeld = 1;
constexpr uint32_t kWaited = 2;  // somebody waits: who unlocks looks at the queue

// Values of a waiter's word.
constexpr uint32_t kAsleep = 0;
constexpr uint32_t kWoken = 1;    // to try again
constexpr uint32_t kGranted = 2;  // the lock is this waiter's

// Long beside the switch from one thread to another (microseconds), short for who waits.
constexpr auto kPatience = std::chrono::milliseconds(1);
// How often a waiter looks at the cancel token, and asks.
constexpr auto kLook = std::chrono::milliseconds(5);

// Its address marks the thread.
thread_local char thread_mark;

}  // namespace

// The queue's own lock.
class FairLock::Guard {
 public:
  explicit Guard(std::atomic<uint32_t>& word) : word_(word) { lock(); }
  ~Guard() { unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // 0: free, 1: held, 2: held and waited for.
  void lock() {
    uint32_t seen = 0;
    if (word_.compare_exchange_strong(seen, 1)) return;
    while (word_.exchange(2) != 0) futex_wait(word_, 2);
  }
  void unlock() {
    if (word_.exchange(0) == 2) futex_wake(word_, 1);
  }

 private:
  std::atomic<uint32_t>& word_;
};

FairLock::FairLock(void (*in_child)(void* user), void* user) : in_child_(in_child), user_(user) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, Status::OutOfMemory, "no memory for a lock");
  wiped_on_fork_ = madvise(memory, page, MADV_WIPEONFORK) == 0;
  words_ = new (memory) Words{};
  words_->known.store(process());
}

FairLock::~FairLock() {
  munmap(words_, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

// Where no page can be had that a child finds zeroed, a child is told by its number.
uint64_t FairLock::process() const {
  return wiped_on_fork_ ? 1 : static_cast<uint64_t>(getpid());
}

// The first look of a forked child: of the parent's threads only the calling one, or the one that
// started it, is here.
void FairLock::adopt() {
  const Guard guard(words_->guard);
  if (is_known()) return;
  first_ = last_ = nullptr;
  words_->state.store(is_held_.load() ? kHeld : 0);
  if (is_held_.load() && !was_mine()) lost_.store(true);
  if (!lost_.load() && in_child_) in_child_(user_);
  words_->known.store(process(), std::memory_order_release);
}

bool FairLock::try_take() {
  uint32_t seen = 0;
  if (!words_->state.compare_exchange_strong(seen, kHeld)) return false;
  own();
  return true;
}

void FairLock::own() {
  owner_.store(&thread_mark, std::memory_order_relaxed);
  is_held_.store(true, std::memory_order_relaxed);
}

bool FairLock::was_mine() const {
  return owner_.load(std::memory_order_relaxed) == &thread_mark;
}

bool FairLock::try_lock() {
  if (!is_known()) adopt();
  return try_take();
}

bool FairLock::is_lost() {
  if (!is_known()) adopt();
  return lost_.load(std::memory_order_relaxed);
}

void FairLock::set_token(Ref<CancelToken> token) {
  const Guard guard(words_->guard);
  std::swap(token_, token);
}

Ref<CancelToken> FairLock::token() const {
  const Guard guard(words_->guard);
  return token_;
}

FairLock::Result FairLock::lock(Clock::time_point until, const Poll& poll) {
  if (try_lock()) return Result::Taken;
  if (is_lost()) return Result::Lost;
  Waiter self;
  self.since = Clock::now();
  const Result result = wait(self, until, poll);
  if (result != Result::Taken) return result;
  own();
  if (!self.is_ended) return result;
  unlock();
  return Result::Ended;
}

// The queue changes, and words of waiters are written, under the guard alone: a waiter that has it
// and finds the lock held can sleep, since who unlocks will look at the queue after that.
FairLock::Result FairLock::wait(Waiter& self, Clock::time_point until, const Poll& poll) {
  std::atomic<uint32_t>& state = words_->state;
  Guard guard(words_->guard);
  append(self);
  for (;;) {
    if (self.word.load() == kGranted) return Result::Taken;
    const uint32_t seen = state.fetch_or(kHeld | kWaited);
    const auto now = Clock::now();
    Result result = Result::Taken;
    if ((seen & kHeld) != 0) {
      const bool is_cancelled = token_ && token_->is_set();
      if (!is_cancelled && !self.is_ended && now < until) {
        self.word.store(kAsleep);
        const Clock::duration left =
            token_ || poll.ask ? std::min<Clock::duration>(kLook, until - now) : until - now;
        guard.unlock();
        futex_wait(self.word, kAsleep, std::chrono::nanoseconds(left).count());
        if (poll.ask && self.word.load() == kAsleep) self.is_ended = poll.ask(poll.user) != 0;
        guard.lock();
        continue;
      }
      result = is_cancelled ? Result::Cancelled : self.is_ended ? Result::Ended : Result::TimedOut;
    }
    remove(self);
    if (!first_) state.fetch_and(~kWaited);
    return result;
  }
}

void FairLock::unlock() {
  is_held_.store(false, std::memory_order_relaxed);
  uint32_t seen = kHeld;
  if (!words_->state.compare_exchange_strong(seen, 0)) hand_over();
}

void FairLock::hand_over() {
  if (!is_known()) return;  // taken before the process was forked: free in the child
  const Guard guard(words_->guard);
  if (!first_) {
    words_->state.store(0);
    return;
  }
  Waiter& next = *first_;
  if (Clock::now() - next.since >= kPatience) {
    remove(next);
    words_->state.store(first_ ? kHeld | kWaited : kHeld);
    next.word.store(kGranted);
    futex_wake(next.word, 1);
  } else {
    words_->state.store(kWaited);
    if (next.word.exchange(kWoken) == kAsleep) futex_wake(next.word, 1);
  }
}

void FairLock::append(Waiter& waiter) {
  waiter.previous = last_;
  (last_ ? last_->next : first_) = &waiter;
  last_ = &waiter;
}

void FairLock::remove(Waiter& waiter) {
  (waiter.previous ? waiter.previous->next : first_) = waiter.next;
  (waiter.next ? waiter.next->previous : last_) = waiter.previous;
  waiter.previous = waiter.next = nullptr;
}

}  // namespace tiny

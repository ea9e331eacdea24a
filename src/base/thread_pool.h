// A pool of threads that works on one job at a time: a number of pieces that whoever is free
// claims.
//
// Threads start with the first job, spin for a moment after one and then sleep.  A job is done when
// all its claimed pieces are; a thread that comes late finds nothing to claim.  Whoever finds the
// pool taken does its work alone.  A forked child starts threads of its own with its first job. The
// pool never allocates while a job runs.  Threads of the caller's may take the place of its own:
// each of their tasks is a worker that claims pieces, and the caller does what they left.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/stop.h"

namespace tiny {

// Threads of the caller's: run(user, task, data, count) calls task(data, i) once for each i below
// `count`, on any threads, and returns when these calls have.
struct OwnThreads {
  void (*run)(void* user, void (*task)(void* data, size_t index), void* data,
              size_t count) = nullptr;  // null: the pool has threads itself
  void* user = nullptr;
};

class ThreadPool {
 public:
  // Does piece `piece`; `worker` is 0 for the caller of run, else below workers().
  using Piece = void (*)(void* context, int64_t piece, int worker) noexcept;

  // `workers` counts the caller of run; 1 makes a pool without threads.
  explicit ThreadPool(int workers, const OwnThreads& own = {});
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  // Joins the threads; no job may be running.
  ~ThreadPool();

  int workers() const { return workers_; }
  // Nobody can tell whether the caller's threads sleep.
  bool is_callers() const { return own_.run != nullptr; }
  // True: the pool is the caller's until its run() returns, or release().  Never waits.
  bool try_acquire();
  void release();
  struct Share {
    int64_t did = 0;     // pieces of the calling thread (of the caller's threads: of each, about)
    int64_t waited = 0;  // nanoseconds, for pieces of others when none was left to claim
  };
  // Runs pieces 0 .. count-1, in no order.  Needs try_acquire, and releases.  With `wake` sleeping
  // threads are woken; without, only those that still spin help.  While the caller waits for others
  // it asks `stop`, if there is one, every few milliseconds: what that says is the pieces' to heed.
  Share run(int64_t count, Piece piece, void* context, bool wake, const StopSignal* stop = nullptr);

 private:
  enum State : uint64_t { kFresh = 0, kStarting = 1, kRunning = 2 };
  struct Thread {
    ThreadPool* pool;
    int worker;
    pthread_t handle;
  };

  void start();
  static void* thread_main(void* thread);
  static void own_task(void* pool, size_t index);
  void run_on_callers(int64_t count);
  void publish(int64_t count, Piece piece, void* context, bool wake);
  int64_t claim_all(int worker);
  int64_t wait_for_claimed(int64_t count, const StopSignal* stop);
  bool wait_for_job(uint32_t seen);
  uint64_t process() const;

  const int workers_;
  const OwnThreads own_;
  // Of the caller's threads, who is at work: whatever they do, no worker is two at once.
  std::vector<std::atomic<bool>> at_work_;
  // On a page that a forked child finds zeroed, which is kFresh; above the state, process().
  std::atomic<uint64_t>* state_ = nullptr;
  bool wiped_on_fork_ = false;
  std::atomic<bool> taken_{false};
  std::vector<Thread> threads_;

  // The job.  High half of ticket_: its number, odd while the fields change; low half: the next
  // piece.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  std::atomic<int64_t> count_{0};
  std::atomic<Piece> piece_{nullptr};
  std::atomic<void*> context_{nullptr};
  alignas(64) std::atomic<uint32_t> done_{0};
  std::atomic<uint32_t> waiting_{0};           // the caller sleeps until done_ is the count
  alignas(64) std::atomic<uint32_t> bell_{0};  // what sleeping threads watch
  std::atomic<uint32_t> asleep_{0};
  std::atomic<bool> stop_{false};
};

// Calls piece(i, worker) for each i below `count`, on the threads of `pool` (may be null) if they
// are free, and otherwise here.  What one throws, or `stop` before one, is thrown at the end; what
// has not begun by then is left out.
void for_each_piece(ThreadPool* pool, int64_t count, const StopSignal& stop,
                    const std::function<void(int64_t piece, int worker)>& piece);

}  // namespace tiny

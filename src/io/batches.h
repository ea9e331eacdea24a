// Batches of rows, in an order that depends on a seed alone, made ahead of time by a thread.
//
// What a batch is made of is the caller's: a function from rows to memory, which that thread calls,
// and whoever asks for a batch where no thread works ahead.  One thread at a time asks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/stop.h"
#include "runtime/device.h"

namespace tiny {

struct BatchPlan {
  int64_t rows = 0;
  int64_t batch = 1;  // rows of each, but for the last one
  bool is_shuffled = false;
  bool drops_last = false;  // one that has fewer
  uint64_t seed = 0;

  int64_t count() const { return drops_last ? rows / batch : (rows + batch - 1) / batch; }
};

// The rows of an epoch in its order: with a shuffle (Fisher and Yates; numbers are splitmix64's of
// the seed and the epoch) the same on every machine.
std::vector<int64_t> epoch_order(const BatchPlan& plan, int64_t epoch);

class BatchLoader {
 public:
  using Memory = std::vector<Ref<Buffer>>;
  using Gather = std::function<Memory(std::span<const int64_t> rows)>;

  // At most `ahead` batches wait; 0: there is no thread, and a batch is made when it is asked for.
  BatchLoader(const BatchPlan& plan, size_t ahead, Gather gather);
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;
  // Ends the thread; it may be in the middle of a batch.  Not of a stranded one.
  ~BatchLoader();
  // Whether the thread stayed behind in a fork: what it waited for cannot be destroyed.
  bool is_stranded() const;

  struct Place {
    int64_t epoch = 0;
    int64_t batch = 0;  // of the epoch; as many as there are: its end
  };
  struct Batch {
    int64_t rows = 0;  // 0: the epoch has ended
    Memory memory;
  };
  // The next batch, or the end of the epoch, behind which is the next epoch.  Throws what `gather`
  // has thrown, and then tries that batch again; or what `stop` says while it waits.
  Batch next(const StopSignal& stop);
  // What next() gives from now on.
  void seek(const Place& place);
  Place place() const { return place_; }
  const BatchPlan& plan() const { return plan_; }

 private:
  struct Made {
    Batch batch;
    std::exception_ptr failure;
  };

  Made make(const Place& place);
  Place after(const Place& place) const;
  void work();
  void require_own_process() const;

  const BatchPlan plan_;
  const size_t ahead_;
  const Gather gather_;
  const int process_;
  Place place_;  // of who asks
  // Of who makes batches.
  struct Order {
    std::vector<int64_t> rows;
    int64_t epoch = -1;
  };
  Order order_;

  std::mutex mutex_;  // of what follows
  std::condition_variable made_, taken_;
  std::deque<Made> ready_;
  Place cursor_;             // of the batch that is made next
  uint64_t generation_ = 0;  // of the cursor: a batch of an older one is nobody's
  bool has_failed_ = false;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace tiny

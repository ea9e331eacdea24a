#include "io/batches.h"

#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace tiny {

namespace {

// How often who waits for a batch looks whether it is to end.
constexpr std::chrono::milliseconds kLookEvery(5);

// Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e37'79b9'7f4a'7c15;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
    return z ^ (z >> 31);
  }
  // 0 .. n-1, each as likely as any other.
  uint64_t below(uint64_t n) {
    const uint64_t most = UINT64_MAX - UINT64_MAX % n;
    uint64_t x = next();
    while (x >= most) x = next();
    return x % n;
  }

 private:
  uint64_t state_;
};

}  // namespace

std::vector<int64_t> epoch_order(const BatchPlan& plan, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(plan.rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!plan.is_shuffled) return order;
  SplitMix64 random(SplitMix64(plan.seed).next() + static_cast<uint64_t>(epoch));
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(i))]);
  return order;
}

BatchLoader::BatchLoader(const BatchPlan& plan, size_t ahead, Gather gather)
    : plan_(plan), ahead_(ahead), gather_(std::move(gather)), process_(getpid()) {
  if (ahead_ == 0) return;
  // Signals are for the threads of the caller.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { work(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw_error(Status::OutOfMemory, "there is no thread for a loader");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BatchLoader::~BatchLoader() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  taken_.notify_all();
  thread_.join();
}

bool BatchLoader::is_stranded() const {
  return ahead_ > 0 && getpid() != process_;
}

void BatchLoader::require_own_process() const {
  require(!is_stranded(), Status::DeviceLost,
          "the loader's thread stayed behind in a fork; make another loader");
}

BatchLoader::Place BatchLoader::after(const Place& place) const {
  return place.batch < plan_.count() ? Place{place.epoch, place.batch + 1}
                                     : Place{place.epoch + 1, 0};
}

BatchLoader::Made BatchLoader::make(const Place& place) {
  Made made;
  try {
    if (place.batch >= plan_.count()) return made;
    if (order_.epoch != place.epoch) order_ = {epoch_order(plan_, place.epoch), place.epoch};
    const int64_t begin = place.batch * plan_.batch;
    made.batch.rows = std::min(plan_.batch, plan_.rows - begin);
    made.batch.memory =
        gather_(std::span(order_.rows)
                    .subspan(static_cast<size_t>(begin), static_cast<size_t>(made.batch.rows)));
  } catch (...) {
    made.failure = std::current_exception();
  }
  return made;
}

void BatchLoader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    taken_.wait(lock, [&] { return is_over_ || (!has_failed_ && ready_.size() < ahead_); });
    if (is_over_) return;
    const Place place = cursor_;
    const uint64_t generation = generation_;
    lock.unlock();
    Made made = make(place);
    lock.lock();
    if (generation != generation_) continue;  // and its memory goes
    // Who asks is told, and has this batch tried again.
    has_failed_ = static_cast<bool>(made.failure);
    if (!has_failed_) cursor_ = after(place);
    ready_.push_back(std::move(made));
    made_.notify_all();
  }
}

BatchLoader::Batch BatchLoader::next(const StopSignal& stop) {
  require_own_process();
  Made made;
  if (ahead_ == 0) {
    made = make(place_);
  } else {
    std::unique_lock lock(mutex_);
    while (ready_.empty()) {
      made_.wait_for(lock, kLookEvery);
      stop.check();
    }
    made = std::move(ready_.front());
    ready_.pop_front();
    if (made.failure) has_failed_ = false;
  }
  taken_.notify_all();
  if (made.failure) std::rethrow_exception(made.failure);
  place_ = after(place_);
  return std::move(made.batch);
}

void BatchLoader::seek(const Place& place) {
  require_own_process();
  require(place.epoch >= 0 && place.batch >= 0 && place.batch <= plan_.count(),
          Status::InvalidArgument, "batch ", place.batch, " of epoch ", place.epoch,
          "; an epoch has ", plan_.count(), " batches");
  std::deque<Made> nobodys;  // goes after the lock
  {
    const std::lock_guard lock(mutex_);
    place_ = cursor_ = place;
    ++generation_;
    has_failed_ = false;
    nobodys.swap(ready_);
  }
  taken_.notify_all();
}

}  // namespace tiny

#include "runtime/in_flight.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/device.h"

namespace tiny {

Needs::Needs(std::vector<Ref<Buffer>> buffers, std::vector<Ref<RefCounted>> others)
    : buffers_(std::move(buffers)), others_(std::move(others)) {
  std::ranges::sort(buffers_, std::less<>(), &Ref<Buffer>::get);
}

Needs::~Needs() = default;

bool Needs::has(const Buffer& buffer) const {
  return std::ranges::binary_search(buffers_, &buffer, std::less<>(), [](const Ref<Buffer>& one) {
    return static_cast<const Buffer*>(one.get());
  });
}

InFlight::InFlight(Device& device) : device_(device) {
}

InFlight::~InFlight() = default;

void InFlight::give(const Ref<const Needs>& needs, const std::function<void(const Queue&)>& work) {
  make_room();
  const std::lock_guard guard(giving_);
  if (!queue_) queue_ = device_.make_queue();
  try {
    work(*queue_);
    note(needs);
  } catch (...) {
    // A part may be under way, and nobody else will wait for it.
    try {
      device_.wait(queue_.get());
    } catch (const Error&) {  // the device is lost, and does nothing any more
    }
    throw;
  }
}

void InFlight::note(const Ref<const Needs>& needs) {
  Ref<Event> idle;
  {
    const std::lock_guard guard(lock_);
    // One that nobody else waits for.
    if (!idle_.empty() && idle_.back()->unique()) idle = std::move(idle_.back());
    if (!idle_.empty()) idle_.pop_back();
  }
  Ref<Event> done = device_.record_again(*queue_, std::move(idle));
  const std::lock_guard guard(lock_);
  given_.push_back({++last_, std::move(done), needs});
  count_ = given_.size();
}

// With its event kept for later work.
void InFlight::take_oldest(std::deque<Given>& into) {
  if (idle_.size() < kMost) idle_.push_back(std::move(given_.front().done));
  into.push_back(std::move(given_.front()));
  given_.pop_front();
}

void InFlight::make_room() {
  retire();
  while (count_ >= kMost) {
    Given oldest;
    {
      const std::lock_guard guard(lock_);
      if (given_.empty()) return;
      oldest = given_.front();
    }
    wait_until(oldest);
  }
}

void InFlight::retire() {
  std::deque<Given> done;  // goes behind the lock
  const std::lock_guard guard(lock_);
  while (!given_.empty() && device_.has_happened(*given_.front().done)) take_oldest(done);
  count_ = given_.size();
}

// And for all that was given before.  A lost device has nothing in flight.
void InFlight::wait_until(const Given& given) {
  uint64_t last = given.number;
  std::deque<Given> done;
  const auto let_go = [&] {
    const std::lock_guard guard(lock_);
    while (!given_.empty() && given_.front().number <= last) take_oldest(done);
    count_ = given_.size();
  };
  try {
    device_.wait_until(*given.done);
  } catch (const Error& e) {
    if (e.status() == Status::DeviceLost) last = UINT64_MAX;
    if (e.status() == Status::DeviceLost) let_go();
    throw;
  }
  let_go();
}

void InFlight::wait_for(const Buffer& buffer) {
  if (count_ == 0) return;
  Given newest;
  {
    const std::lock_guard guard(lock_);
    const auto found = std::find_if(given_.rbegin(), given_.rend(),
                                    [&](const Given& one) { return one.needs->has(buffer); });
    if (found == given_.rend()) return;
    newest = *found;
  }
  wait_until(newest);
}

bool InFlight::wait() {
  if (count_ == 0) return false;
  Given newest;
  {
    const std::lock_guard guard(lock_);
    if (given_.empty()) return false;
    newest = given_.back();
  }
  wait_until(newest);
  return true;
}

}  // namespace tiny

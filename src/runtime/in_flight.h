// Work that was given to a device and that nobody waits for, with what it needs: for devices whose
// queues are late.
//
//   Order   All of it goes to one queue: what is given comes after all that was given before, by
//           whichever thread.
//   Held    Buffers and code live until the work with them is done, whoever lets go of them before.
//   Errors  There is nobody to tell of a failed check or of a stop: work that may have either has a
//           queue of its own, and who gives it waits.
//   Many    What is given waits for the oldest where too much is in flight.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "base/ref.h"
#include "base/stop.h"

namespace tiny {

class Buffer;
class Device;
class Event;
class Queue;

// What work in flight needs.
class Needs : public RefCounted {
 public:
  // `others`: code, what launches were prepared to.
  Needs(std::vector<Ref<Buffer>> buffers, std::vector<Ref<RefCounted>> others);
  bool has(const Buffer& buffer) const;

 private:
  ~Needs() override;
  std::vector<Ref<Buffer>> buffers_;  // sorted
  std::vector<Ref<RefCounted>> others_;
};

class InFlight {
 public:
  // Which it belongs to.
  explicit InFlight(Device& device);
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  ~InFlight();

  // `work` gives launches and copies to the queue.
  void give(const Ref<const Needs>& needs, const std::function<void(const Queue&)>& work);
  // Until all is done that needs the buffer, or all; Error{DeviceLost}.  False where nothing was in
  // flight.
  void wait_for(const Buffer& buffer);
  bool wait();
  // What is done already is let go of.
  void retire();
  // Of work that keeps the signal: nothing ends it.
  const StopSignal& never() const { return never_; }
  size_t count() const { return count_; }

 private:
  struct Given {
    uint64_t number = 0;
    Ref<Event> done;
    Ref<const Needs> needs;
  };
  static constexpr size_t kMost = 64;
  void note(const Ref<const Needs>& needs);
  void take_oldest(std::deque<Given>& into);
  void make_room();
  void wait_until(const Given& given);

  Device& device_;
  const StopSignal never_;
  std::mutex lock_;  // of `given_`
  std::deque<Given> given_;
  std::vector<Ref<Event>> idle_;  // whose work is done
  std::atomic<size_t> count_{0};  // of those in flight
  uint64_t last_ = 0;
  std::mutex giving_;  // of the queue
  Ref<Queue> queue_;   // goes first: what is under way uses what is held
};

}  // namespace tiny

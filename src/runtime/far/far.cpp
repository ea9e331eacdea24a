#include "runtime/far/far.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "runtime/host.h"
#include "runtime/interp/interp.h"

namespace tiny {

namespace {

// Memory of the interpreter, whose address nobody learns.
class FarBuffer : public Buffer {
 public:
  FarBuffer(Device* device, Ref<Buffer> memory)
      : Buffer(device, memory->bytes()), memory_(std::move(memory)) {}
  Buffer& memory() const { return *memory_; }

 private:
  Ref<Buffer> memory_;
};

Buffer& memory_of(const Buffer& buffer) {
  return static_cast<const FarBuffer&>(buffer).memory();
}

class FarQueue;

class FarEvent : public Event {
 public:
  explicit FarEvent(const FarQueue& in) : queue(&in) {}
  const FarQueue* const queue;  // which outlives who waits
  std::chrono::steady_clock::time_point at;
  std::atomic<bool> has_happened{false};
};

// What was given and is not done.  Any thread may wait; one at a time works.
class FarQueue : public Queue {
 public:
  explicit FarQueue(Ref<Queue> done_by) : inner(std::move(done_by)) {}

  void give(std::function<void()> work) const {
    const std::lock_guard guard(lock_);
    work_.push_back(std::move(work));
  }
  void finish() const {
    work_until([] { return false; });
  }
  void finish(const FarEvent& event) const {
    work_until([&] { return event.has_happened.load(); });
  }

  const Ref<Queue> inner;

 private:
  template <class IsEnough>
  void work_until(const IsEnough& is_enough) const {
    const std::lock_guard working(working_);
    while (!is_enough()) {
      std::function<void()> next;
      {
        const std::lock_guard guard(lock_);
        if (work_.empty()) return;
        next = std::move(work_.front());
        work_.pop_front();
      }
      try {
        next();
      } catch (...) {
        const std::lock_guard guard(lock_);
        work_.clear();
        throw;
      }
    }
  }

  mutable std::mutex working_, lock_;
  mutable std::deque<std::function<void()>> work_;
};

const FarQueue& far(const Queue& queue) {
  return static_cast<const FarQueue&>(queue);
}

// A launch on the interpreter, with copies of what its arguments and variables are now.
struct KeptLaunch {
  explicit KeptLaunch(const Launch& of)
      : variables(of.variables.begin(), of.variables.end()), launch(of) {
    for (const Argument& a : of.arguments) {
      check_range(*a.buffer, a.byte_offset, 0);
      arguments.push_back({&memory_of(*a.buffer), a.byte_offset});
    }
    launch.arguments = arguments;
    launch.variables = variables;
    launch.after = {};
  }
  KeptLaunch(const KeptLaunch&) = delete;
  KeptLaunch& operator=(const KeptLaunch&) = delete;

  std::vector<Argument> arguments;
  std::vector<int64_t> variables;
  Launch launch;
};

// Copies of launches, made anew where something has changed.
class KeptLaunches : public Prepared {
 public:
  KeptLaunches(Device& inner, std::span<const Launch> launches)
      : inner_(inner), launches_(launches) {}
  void changed() override { kept_.clear(); }
  void run(const Queue* queue, const StopSignal& stop) override {
    if (kept_.empty())
      for (const Launch& launch : launches_) kept_.push_back(std::make_shared<KeptLaunch>(launch));
    for (const auto& kept : kept_) launch_late(inner_, far(*queue), kept, stop);
  }

  static void launch_late(Device& inner, const FarQueue& queue,
                          std::shared_ptr<const KeptLaunch> kept, const StopSignal& stop) {
    queue.give([&inner, of = queue.inner.get(), kept = std::move(kept), stop = &stop] {
      stop->check();
      inner.launch(of, kept->launch, *stop);
      stop->check_known();
    });
  }

 private:
  Device& inner_;
  std::span<const Launch> launches_;
  std::vector<std::shared_ptr<const KeptLaunch>> kept_;
};

class FarDevice : public Device {
 public:
  const std::string& name() const override { return name_; }
  bool sees_host() const override { return false; }
  bool is_late() const override { return true; }

  Ref<Buffer> wrap(void*, int64_t) override {
    throw_error(Status::Device, "the device ", name_, " does not see the host's memory");
  }
  void copy_in(const Queue* queue, Buffer& to, int64_t offset, const void* from,
               int64_t bytes) override {
    check_range(to, offset, bytes);
    settle(to);
    counts().copied(bytes);
    give(queue, [this, memory = &memory_of(to), offset, from, bytes] {
      inner_->copy_in(nullptr, *memory, offset, from, bytes);
    });
  }
  void copy_out(const Queue* queue, void* to, const Buffer& from, int64_t offset,
                int64_t bytes) override {
    check_range(from, offset, bytes);
    settle(from);
    counts().copied(bytes);
    give(queue, [this, to, memory = &memory_of(from), offset, bytes] {
      inner_->copy_out(nullptr, to, *memory, offset, bytes);
    });
  }
  void copy(const Queue* queue, Buffer& to, int64_t to_offset, const Buffer& from,
            int64_t from_offset, int64_t bytes) override {
    check_range(to, to_offset, bytes);
    check_range(from, from_offset, bytes);
    settle(to);
    settle(from);
    counts().copied(bytes);
    give(queue,
         [this, memory = &memory_of(to), to_offset, source = &memory_of(from), from_offset, bytes] {
           inner_->copy(nullptr, *memory, to_offset, *source, from_offset, bytes);
         });
  }

  using Device::load;
  std::vector<Ref<Executable>> load(std::span<const Code> codes, const StopSignal& stop) override {
    return inner_->load(codes, stop);
  }
  void launch(const Queue* queue, const Launch& launch, const StopSignal& stop) override {
    if (queue)
      KeptLaunches::launch_late(*inner_, far(*queue), std::make_shared<KeptLaunch>(launch), stop);
    else
      inner_->launch(nullptr, KeptLaunch(launch).launch, stop);
  }
  Ref<Prepared> prepare(std::span<const Launch> launches) override {
    return make_ref<KeptLaunches>(*inner_, launches);
  }

  Ref<Queue> make_queue() override { return make_ref<FarQueue>(inner_->make_queue()); }
  void wait(const Queue* queue) override {
    if (queue) far(*queue).finish();
  }
  void clear_status(const Queue& queue) override {
    give(&queue, [this, inner = far(queue).inner.get()] { inner_->clear_status(*inner); });
  }
  int64_t status(const Queue& queue) override {
    far(queue).finish();
    return inner_->status(*far(queue).inner);
  }
  Ref<Event> record(const Queue& queue) override {
    auto event = make_ref<FarEvent>(far(queue));
    give(&queue, [event] {
      event->at = std::chrono::steady_clock::now();
      event->has_happened = true;
    });
    return event;
  }
  void wait_until(const Event& event) override {
    const auto& of = static_cast<const FarEvent&>(event);
    of.queue->finish(of);
  }
  bool has_happened(const Event& event) override {
    return static_cast<const FarEvent&>(event).has_happened;
  }
  double seconds(const Event& from, const Event& to) const override {
    const auto& begin = static_cast<const FarEvent&>(from);
    const auto& end = static_cast<const FarEvent&>(to);
    require(begin.has_happened && end.has_happened, Status::Internal,
            "the time of an event was asked that has not happened");
    return std::chrono::duration<double>(end.at - begin.at).count();
  }

 protected:
  Ref<Buffer> make_buffer(int64_t bytes) override {
    return make_ref<FarBuffer>(this, inner_->allocate(bytes));
  }

 private:
  void give(const Queue* queue, std::function<void()> work) const {
    if (queue)
      far(*queue).give(std::move(work));
    else
      work();
  }

  const std::string name_ = "far";
  std::unique_ptr<Device> inner_ = make_interpreter_device();
};

}  // namespace

bool has_far_device() {
  return true;
}

std::unique_ptr<Device> make_far_device() {
  return std::make_unique<FarDevice>();
}

}  // namespace tiny

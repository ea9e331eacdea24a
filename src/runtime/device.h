// What the engine asks of a backend: memory, copies, code and launches.  Knows bytes, not UOps.
//
// Above a backend nothing is a pointer: an argument is a buffer and a byte offset.  Every copy and
// launch takes a queue and may finish later: until `wait` (or `status`, which waits too) has
// returned, buffers, code, memory of the host and the stop signal that it names must stay.  What
// was given to one queue is done in that order; what was given to another comes after nothing.
// Host devices do the work before they return, which a caller must not rely on.  Without a queue
// (null) all do.  What nobody waits for is `in_flight`; copies come after what is in flight with
// their buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/code.h"
#include "base/flags.h"
#include "base/ref.h"
#include "base/stop.h"

namespace tiny {

class Device;
class InFlight;

// How many bytes the buffers of a device take, and how many they may.  Outlives the device: its
// buffers may.
class MemoryUse : public RefCounted {
 public:
  // 0: no limit.  Set before the first buffer is made.
  void set_limit(int64_t bytes) { limit_ = bytes; }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  // Error{Limit} if there are not that many left.
  void take(int64_t bytes);
  void give_back(int64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> used_{0};
  int64_t limit_ = 0;
};

// Memory of the host that counts as a buffer does, for as long as this lives.
class MemoryRoom {
 public:
  // Error{Limit} if there is no room; none is taken from nobody.
  MemoryRoom(Ref<MemoryUse> use, int64_t bytes) : use_(std::move(use)), bytes_(bytes) {
    if (use_) use_->take(bytes_);
  }
  MemoryRoom(const MemoryRoom&) = delete;
  MemoryRoom& operator=(const MemoryRoom&) = delete;
  ~MemoryRoom() {
    if (use_) use_->give_back(bytes_);
  }

 private:
  Ref<MemoryUse> use_;
  int64_t bytes_;
};

// A piece of a device's memory.
class Buffer : public RefCounted {
 public:
  Buffer(Device* device, int64_t bytes) : device_(device), bytes_(bytes) {}
  // The bytes were taken from `use`; the buffer gives them back at its end.
  void count_in(Ref<MemoryUse> use) { use_ = std::move(use); }
  Device& device() const { return *device_; }
  int64_t bytes() const { return bytes_; }
  // The address that a host may dereference, or null where memory is not the host's.
  virtual std::byte* host() const { return nullptr; }
  // Of one that Device::wrap made: from now on it is this memory.  False for any other.
  virtual bool rewrap(void*, int64_t) { return false; }

 protected:
  void resize(int64_t bytes) { bytes_ = bytes; }
  ~Buffer() override {
    if (use_) use_->give_back(bytes_);
  }

 private:
  Device* device_;
  int64_t bytes_;
  Ref<MemoryUse> use_;
};

// Loaded code.
class Executable : public RefCounted {};

struct KernelArgs;
// What a device whose memory is the host's calls in the place of a kernel, on the thread that
// executes; it may throw.
class HostFunction : public RefCounted {
 public:
  virtual void run(const KernelArgs& args) const = 0;
};

struct Argument {
  Buffer* buffer = nullptr;
  int64_t byte_offset = 0;
};

struct Launch {
  Executable* executable = nullptr;
  std::span<const Argument> arguments;  // one per parameter slot
  std::span<const int64_t> variables;
  int64_t begin = 0;  // of the THREAD range; begin + 1 == end for a kernel without one
  int64_t end = 1;
  // Of launches that are given together: those before it, by position, that it must come after.
  std::span<const uint32_t> after{};
};

// What is done one after the other.  Has a status word (base/kernel_abi.h), to which the kernels
// that are launched on it report; without a queue nobody asks them.  One thread at a time uses it.
class Queue : public RefCounted {};

// A point of a queue's work in time.
class Event : public RefCounted {};

// Launches that are given together again and again, as their device wants them.  They stay where
// they are, with their arguments and variables, as long as this lives.
class Prepared : public RefCounted {
 public:
  // Something of them has changed in its place since the last run.
  virtual void changed() {}
  // As Device::launch_all.
  virtual void run(const Queue* queue, const StopSignal& stop) = 0;
};

// What a device was asked for, in all.  Counted by the device; read by anyone.
struct DeviceCounts {
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> allocated_bytes{0};
  std::atomic<int64_t> copies{0};
  std::atomic<int64_t> copied_bytes{0};
  std::atomic<int64_t> launches{0};
  std::atomic<int64_t> interpreted{0};  // of the launches, those of bytecode
  // Of the launches, as the engine counts them: arithmetic operations, bytes of their buffers, and
  // seconds of those that were timed.
  std::atomic<double> operations{0};
  std::atomic<double> bytes{0};
  std::atomic<double> seconds{0};

  void allocated(int64_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  void copied(int64_t bytes) {
    copies.fetch_add(1, std::memory_order_relaxed);
    copied_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
};

class Device {
 public:
  Device();
  virtual ~Device();
  DeviceCounts& counts() { return counts_; }
  virtual const std::string& name() const = 0;

  // Error{OutOfMemory} if it cannot be had, Error{Limit} if it may not.  Contents are undefined.
  // Aligned to 256 bytes.
  Ref<Buffer> allocate(int64_t bytes);
  MemoryUse& memory() { return *memory_; }
  // Bytes of buffers that are gone and whose memory is kept for the next ones.
  virtual int64_t kept_bytes() { return 0; }
  virtual void release_kept() {}
  // Whether its queues do things later.
  virtual bool is_late() const { return false; }
  // What of a late device nobody has waited for.
  InFlight& in_flight() { return *in_flight_; }
  // Whether a signal that launches are given must stay until they are done.
  virtual bool keeps_signals() const { return is_late(); }
  // Where later buffers come from, of a device that sees the host's memory.
  void set_allocator(const Allocator& allocator) { allocator_ = allocator; }
  // Whether its memory is the host's: buffers have an address, and `wrap` takes the caller's.
  virtual bool sees_host() const = 0;
  // The caller's memory as a buffer; the caller keeps it alive and unmoved.  Error{Device} where
  // the device cannot see host memory.
  virtual Ref<Buffer> wrap(void* data, int64_t bytes) = 0;
  virtual void copy_in(const Queue* queue, Buffer& to, int64_t offset, const void* from,
                       int64_t bytes) = 0;
  virtual void copy_out(const Queue* queue, void* to, const Buffer& from, int64_t offset,
                        int64_t bytes) = 0;
  virtual void copy(const Queue* queue, Buffer& to, int64_t to_offset, const Buffer& from,
                    int64_t from_offset, int64_t bytes) = 0;
  // Devices of one driver, which may copy between them, have the same; null: alone.
  virtual const void* driver() const { return nullptr; }
  // From memory of another device of the driver, done when this returns; false where there is no
  // way but over the host.
  virtual bool copy_peer(const Argument&, const Argument&, int64_t) { return false; }
  // Threads of the host that work for it, and between launches for others; null: none.
  virtual ThreadPool* threads() { return nullptr; }
  // A batch becomes executable at once: W^X memory is sealed per batch.  Throws what `stop` says.
  virtual std::vector<Ref<Executable>> load(std::span<const Code> codes,
                                            const StopSignal& stop) = 0;
  std::vector<Ref<Executable>> load(std::span<const Code> codes) {
    return load(codes, StopSignal());
  }
  // Error{Unsupported} where the host's functions do not see the device's memory.
  virtual Ref<Executable> load_function(const std::string& name, Ref<const HostFunction> function);
  // What it must come after is done.  What it computes is void if `stop` is over afterwards:
  // kernels ask it, and leave early.
  virtual void launch(const Queue* queue, const Launch& launch, const StopSignal& stop) = 0;
  // Launches of which each may begin when those that it must come after are done.  Throws what
  // `stop` says between two of them, or in one, and leaves out the rest; a device that does the
  // work later throws it from `wait`.
  virtual void launch_all(const Queue* queue, std::span<const Launch> launches,
                          const StopSignal& stop);
  virtual Ref<Prepared> prepare(std::span<const Launch> launches);
  virtual Ref<Queue> make_queue() = 0;
  // If that throws, what was not done yet is left out.
  virtual void wait(const Queue* queue) = 0;
  // The queue's status word becomes 0, after what was given before.
  virtual void clear_status(const Queue& queue) = 0;
  // Waits; then 0, or the first check that failed since.
  virtual int64_t status(const Queue& queue) = 0;
  // When what was given before is done.
  virtual Ref<Event> record(const Queue& queue) = 0;
  // By an event whose time nobody asks any more (may be null), where the device can.
  virtual Ref<Event> record_again(const Queue& queue, Ref<Event>) { return record(queue); }
  // Any thread may wait, and ask, while the queue lives; what waits leaves later work as it is.
  virtual void wait_until(const Event&) {}
  virtual bool has_happened(const Event&) { return true; }
  // From one to the other, by the device's clock; both have happened.
  virtual double seconds(const Event& from, const Event& to) const = 0;

 protected:
  virtual Ref<Buffer> make_buffer(int64_t bytes) = 0;
  // Before a copy: what is in flight with the buffer is done.
  void settle(const Buffer& buffer);

 private:
  Ref<Buffer> allocate_now(int64_t bytes);

  DeviceCounts counts_;
  Allocator allocator_;
  Ref<MemoryUse> memory_ = make_ref<MemoryUse>();
  std::unique_ptr<InFlight> in_flight_;
};

// Copies between two devices, by their driver where it can and else over the host; all before was
// done, and this is when it returns.  Throws what `stop` says.
void copy_between(const Argument& to, const Argument& from, int64_t bytes, const StopSignal& stop);

}  // namespace tiny

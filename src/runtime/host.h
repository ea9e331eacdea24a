// What the devices whose memory is the host's have in common: buffers, copies, queues, and a launch
// that calls the kernel in the calling thread.  A device derives from it and adds `load`.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/kernel_abi.h"
#include "runtime/device.h"

namespace tiny {

// Memory from the host's heap.  Error{OutOfMemory} if it cannot be had.
struct AlignedMemory {
  explicit AlignedMemory(int64_t bytes);
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;
  ~AlignedMemory();
  std::byte* data = nullptr;  // aligned to 256, also if `bytes` is 0
  int64_t bytes = 0;
};

// A kernel that runs in the caller's thread.
class HostExecutable : public Executable {
 public:
  HostExecutable(std::string name, int64_t scratch_bytes)
      : name_(std::move(name)), scratch_bytes_(scratch_bytes) {}
  const std::string& name() const { return name_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }
  virtual void run(const KernelArgs& args) const = 0;
  // Throws if the kernel reads more arguments than the launch has, where the code tells.
  virtual void check_launch(const Launch&) const {}

 private:
  std::string name_;
  int64_t scratch_bytes_;
};

// Error{InvalidArgument} unless the bytes from `offset` on are inside the buffer.
void check_range(const Buffer& buffer, int64_t offset, int64_t bytes);

// All that was given to it is done.
class HostQueue : public Queue {
 public:
  mutable int64_t status = 0;
};

class HostDevice : public Device {
 public:
  explicit HostDevice(std::string name) : name_(std::move(name)) {}
  ~HostDevice() override;
  const std::string& name() const override { return name_; }
  bool sees_host() const override { return true; }
  Ref<Buffer> wrap(void* data, int64_t bytes) override;
  void copy_in(const Queue* queue, Buffer& to, int64_t offset, const void* from,
               int64_t bytes) override;
  void copy_out(const Queue* queue, void* to, const Buffer& from, int64_t offset,
                int64_t bytes) override;
  void copy(const Queue* queue, Buffer& to, int64_t to_offset, const Buffer& from,
            int64_t from_offset, int64_t bytes) override;
  // One call with worker 0; the executable is a HostExecutable.
  void launch(const Queue* queue, const Launch& launch, const StopSignal& stop) override;
  Ref<Executable> load_function(const std::string& name, Ref<const HostFunction> function) override;
  Ref<Queue> make_queue() override;
  void wait(const Queue* queue) override;
  void clear_status(const Queue& queue) override;
  int64_t status(const Queue& queue) override;
  Ref<Event> record(const Queue& queue) override;
  double seconds(const Event& from, const Event& to) const override;

 protected:
  Ref<Buffer> make_buffer(int64_t bytes) override;
  static constexpr int64_t kPageBytes = 4096;
  // How far behind an aligned address the next large buffer begins.  Loads wait for stores whose
  // address differs by whole pages, and such lines share sets of caches: buffers that are made one
  // after the other, as inputs and outputs often are, begin well apart in their pages.
  int64_t next_stagger() {
    return (staggered_.fetch_add(1, std::memory_order_relaxed) & 15) * (kPageBytes + 1536);
  }

 private:
  std::string name_;
  std::atomic<int64_t> staggered_{0};
  // Scratch that the last launch gave back; a launch that finds none, or too little, makes its own.
  std::atomic<AlignedMemory*> scratch_{nullptr};
};

}  // namespace tiny

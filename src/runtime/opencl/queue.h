// What is given to an OpenCL device, in order: copies, launches and points in time.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/code.h"
#include "runtime/device.h"
#include "runtime/opencl/connection.h"

namespace tiny::opencl {

class ClBuffer : public Buffer {
 public:
  ClBuffer(Device* device, Ref<Connection> connection, int64_t bytes)
      : Buffer(device, bytes),
        connection_(std::move(connection)),
        memory_(connection_->take_memory(bytes)) {}
  cl_mem memory() const { return memory_; }

 protected:
  ~ClBuffer() override { connection_->give_memory(memory_, bytes()); }

 private:
  Ref<Connection> connection_;
  cl_mem memory_;
};

// A unit of kernels, built.
class ClProgram : public RefCounted {
 public:
  // Error{Device} with what the compiler said.
  ClProgram(Ref<Connection> connection, const std::string& text, const std::string& what);
  // A kernel of its own arguments, which the caller releases.
  cl_kernel make_kernel(const std::string& entry) const;
  Connection& connection() const { return *connection_; }

 protected:
  ~ClProgram() override;

 private:
  Ref<Connection> connection_;
  cl_program program_ = nullptr;
};

// A kernel and its arguments: one thread at a time sets them.
class ClKernel {
 public:
  ClKernel(Ref<ClProgram> program, const Code& code);
  ClKernel(const ClKernel&) = delete;
  ClKernel& operator=(const ClKernel&) = delete;
  ~ClKernel();

  void set_arguments(const Launch& launch, cl_mem status);
  // With the arguments that were set; nothing where begin == end.
  void enqueue(cl_command_queue queue, const Launch& launch);

 private:
  void set(cl_uint index, size_t bytes, const void* value);

  Ref<ClProgram> program_;
  std::string name_;
  std::array<int64_t, 3> group_;
  int64_t most_threads_ = 1;  // of a group, as it was compiled
  cl_kernel kernel_ = nullptr;
};

class ClExecutable : public Executable {
 public:
  ClExecutable(Ref<ClProgram> program, const Code& of)
      : program_(std::move(program)), code_(of), kernel_(program_, code_) {}
  // For who launches again and again.
  std::unique_ptr<ClKernel> make_kernel() const {
    return std::make_unique<ClKernel>(program_, code_);
  }
  // For who launches once: held while the arguments are set and the launch is given.
  std::mutex& lock() { return lock_; }
  ClKernel& kernel() { return kernel_; }

 private:
  Ref<ClProgram> program_;
  const Code code_;
  std::mutex lock_;
  ClKernel kernel_;
};

class ClEvent : public Event {
 public:
  ClEvent(Ref<Connection> connection, cl_event event)
      : connection_(std::move(connection)), event_(event) {}
  void wait() const;
  bool has_happened() const;
  // Nanoseconds of the device's clock.
  cl_ulong time() const;

 protected:
  ~ClEvent() override;

 private:
  Ref<Connection> connection_;
  cl_event event_;
};

class ClQueue : public Queue {
 public:
  explicit ClQueue(Device* device, Ref<Connection> connection);

  Connection& connection() const { return *connection_; }
  cl_command_queue queue() const { return queue_; }
  cl_mem status_memory() const { return status_->memory(); }

  void write(cl_mem to, int64_t offset, const void* from, int64_t bytes, bool waits) const;
  void read(void* to, cl_mem from, int64_t offset, int64_t bytes, bool waits) const;
  void copy(cl_mem to, int64_t to_offset, cl_mem from, int64_t from_offset, int64_t bytes) const;
  void clear_status() const;
  int64_t status() const;
  Ref<ClEvent> record() const;
  void flush() const;
  void finish() const;

 protected:
  ~ClQueue() override;

 private:
  Ref<Connection> connection_;
  Ref<ClBuffer> status_;
  cl_command_queue queue_ = nullptr;
};

// So that work can end early: what is given is never far ahead of what is done.
class Pace {
 public:
  Pace(const ClQueue& queue, const StopSignal& stop) : queue_(queue), stop_(stop) {}
  // Before each launch; throws what the signal says.
  void step();

 private:
  static constexpr int64_t kLaunches = 32;
  const ClQueue& queue_;
  const StopSignal& stop_;
  int64_t given_ = 0;
  Ref<ClEvent> last_;
};

// Launches whose kernels have their arguments set.
class ClPrepared : public Prepared {
 public:
  explicit ClPrepared(std::span<const Launch> launches);
  void changed() override { is_set_for_ = nullptr; }
  void run(const Queue* queue, const StopSignal& stop) override;

 private:
  std::span<const Launch> launches_;
  std::vector<std::unique_ptr<ClKernel>> kernels_;
  const Queue* is_set_for_ = nullptr;  // whose status word they have
};

}  // namespace tiny::opencl

// What the engine asks of a backend: memory, copies, code and launches.  Knows bytes, not UOps.
//
// Above a backend nothing is a pointer: an argument is a buffer and a byte offset.  Every copy and
// launch takes a queue and may finish later; only `wait` and `read` wait.  Host devices do the work
// before they return, which a caller must not rely on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"

namespace tiny {

class Device;

// A piece of a device's memory.
class Buffer : public RefCounted {
 public:
  Buffer(Device* device, int64_t bytes) : device_(device), bytes_(bytes) {}
  Device& device() const { return *device_; }
  int64_t bytes() const { return bytes_; }
  // The address that a host may dereference, or null where memory is not the host's.
  virtual std::byte* host() const { return nullptr; }

 private:
  Device* device_;
  int64_t bytes_;
};

// Loaded code.
class Executable : public RefCounted {};

// Code as a renderer leaves it.
enum class CodeKind : uint8_t { MachineCode, Bytecode, C };
struct Code {
  CodeKind kind = CodeKind::Bytecode;
  std::string name;              // of the kernel, for profilers and files
  std::string entry;             // the symbol to call, where the kind has symbols
  std::vector<std::byte> bytes;  // machine code or bytecode
  std::string text;              // source
  int64_t scratch_bytes = 0;     // a worker
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
  int64_t* status = nullptr;  // the run's status word (base/kernel_abi.h)
};

class Queue : public RefCounted {};

// What a device was asked for, in all.  Counted by the device; read by anyone.
struct DeviceCounts {
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> allocated_bytes{0};
  std::atomic<int64_t> copies{0};
  std::atomic<int64_t> copied_bytes{0};
  std::atomic<int64_t> launches{0};

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
  virtual ~Device() = default;
  DeviceCounts& counts() { return counts_; }
  virtual const std::string& name() const = 0;

  // Error{OutOfMemory} if it cannot be had.  Contents are undefined.  Aligned to 256 bytes.
  virtual Ref<Buffer> allocate(int64_t bytes) = 0;
  // The caller's memory as a buffer; the caller keeps it alive and unmoved.  Error{Device} where
  // the device cannot see host memory.
  virtual Ref<Buffer> wrap(void* data, int64_t bytes) = 0;
  virtual void copy_in(const Queue* queue, Buffer& to, int64_t offset, const void* from,
                       int64_t bytes) = 0;
  virtual void copy_out(const Queue* queue, void* to, const Buffer& from, int64_t offset,
                        int64_t bytes) = 0;
  virtual void copy(const Queue* queue, Buffer& to, int64_t to_offset, const Buffer& from,
                    int64_t from_offset, int64_t bytes) = 0;
  // A batch becomes executable at once: W^X memory is sealed per batch.
  virtual std::vector<Ref<Executable>> load(std::span<const Code> codes) = 0;
  virtual void launch(const Queue* queue, const Launch& launch) = 0;
  virtual Ref<Queue> make_queue() = 0;
  virtual void wait(const Queue* queue) = 0;

 private:
  DeviceCounts counts_;
};

}  // namespace tiny

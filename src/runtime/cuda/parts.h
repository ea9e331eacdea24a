// What a CUDA device is made of: buffers, kernels, queues, events, and the arguments of a launch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/code.h"
#include "base/stop.h"
#include "runtime/cuda/gpu.h"
#include "runtime/device.h"

namespace tiny::cuda {

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(Device* device, Ref<Gpu> gpu, int64_t bytes)
      : Buffer(device, bytes), gpu_(std::move(gpu)), address_(gpu_->take(bytes)) {}
  Address address() const { return address_; }

 private:
  ~CudaBuffer() override { gpu_->give(address_); }

  Ref<Gpu> gpu_;
  Address address_;
};

// Units of PTX as one CUBIN for the device, by the driver's assembler; Error{Device} with what that
// says.
std::vector<std::byte> assemble(Gpu& gpu, std::span<const std::string* const> texts,
                                const std::string& kernel);

// The driver's module: what one PTX text or CUBIN has.
class Module : public RefCounted {
 public:
  Module(Ref<Gpu> gpu, const void* image, const std::string& name);
  CUfunc_st* function(const std::string& entry) const;
  // Null if there is no such entry.
  CUfunc_st* find(const std::string& entry) const;
  Gpu& gpu() const { return *gpu_; }

 private:
  ~Module() override;

  Ref<Gpu> gpu_;
  CUmod_st* module_ = nullptr;
};

class CudaExecutable : public Executable {
 public:
  CudaExecutable(const Code& code, Ref<Module> module);
  const std::string& name() const { return name_; }
  // For arguments that are aligned (kCudaAlignment), or not.
  CUfunc_st* function(bool is_aligned) const { return is_aligned ? function_ : any_; }
  bool is_grouped() const { return group_[0] > 0; }
  const std::array<unsigned, 3>& group() const { return group_; }
  unsigned shared_bytes() const { return shared_bytes_; }

 private:
  const std::string name_;
  const Ref<Module> module_;
  CUfunc_st *function_, *any_;
  std::array<unsigned, 3> group_{};  // 0: a thread a block
  unsigned shared_bytes_;
};

// A stream, and its status in the device's memory: docs/architecture/ptx.md.
class CudaQueue : public Queue {
 public:
  explicit CudaQueue(Ref<Gpu> gpu);
  CUstream_st* stream() const { return stream_; }
  Address status_address() const { return status_; }
  // What waits for the queue throws what the signals of its launches say.
  void obey(const StopSignal& stop) const { stop_ = &stop; }
  void wait() const;
  void clear_status() const;
  int64_t status() const;

 private:
  ~CudaQueue() override;
  void drop();

  Ref<Gpu> gpu_;
  CUstream_st* stream_ = nullptr;
  Address status_ = 0;
  void* copied_ = nullptr;  // of the host: the status as it was read
  mutable const StopSignal* stop_ = nullptr;
};

class CudaEvent : public Event {
 public:
  explicit CudaEvent(Ref<Gpu> gpu);
  void record(const CudaQueue& queue) const;
  void wait() const;
  bool has_happened() const;
  double seconds_to(const CudaEvent& later) const;
  CUevent_st* handle() const { return event_; }

 private:
  ~CudaEvent() override;

  Ref<Gpu> gpu_;
  CUevent_st* event_ = nullptr;
};

// The parameters of a kernel's launch, by the order of docs/architecture/ptx.md, and its geometry.
class LaunchArguments {
 public:
  LaunchArguments(const Launch& launch, const CudaQueue& queue, int64_t blocks_most);
  LaunchArguments(const LaunchArguments&) = delete;
  LaunchArguments& operator=(const LaunchArguments&) = delete;
  LaunchArguments(LaunchArguments&&) = default;
  // Whether there is anything to do.
  bool is_empty() const { return blocks_ == 0; }
  // Points into this.
  KernelNode node() const;
  bool operator==(const LaunchArguments& other) const {
    return values_ == other.values_ && blocks_ == other.blocks_ && is_aligned_ == other.is_aligned_;
  }

 private:
  const CudaExecutable* executable_;
  unsigned blocks_ = 0;
  bool is_aligned_ = true;
  std::vector<int64_t> values_;
  std::vector<void*> pointers_;  // to each of `values_`
};

}  // namespace tiny::cuda

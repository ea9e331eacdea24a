// A device of OpenCL as everything that is made on it shares it: its facts, its context, its
// memory.  Outlives the Device: buffers and code may.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "base/ref.h"
#include "runtime/device_number.h"
#include "runtime/opencl/loader.h"

namespace tiny::opencl {

// What a driver says of a device.
struct Facts {
  std::string name;      // the device's, as "opencl", "opencl:1" or "opencl:1.0/2"
  std::string model;     // of who made it
  std::string platform;  // with the driver's version
  std::string missing;   // why kernels cannot run on it; empty: they can
  int64_t memory_bytes = 0;
  int64_t buffer_bytes = 0;  // the largest
  int64_t shared_bytes = 0;  // a group
  int64_t group_threads = 0;
  int64_t units = 0;          // that run groups
  bool is_processor = false;  // of all kinds that a device can be, and nothing else
  int32_t vector_bytes = 0;   // of what it adds at once: its native vectors of float32
  bool has_float64 = false;
  bool rounds_divisions = false;  // of float32, correctly
};

// Each device of each platform, in the order in which they are numbered.
struct FoundDevice {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  Facts facts;
};
std::vector<FoundDevice> find_devices(const Functions& functions);

class Connection : public RefCounted {
 public:
  // Error{Device} or Error{Unsupported} where there is no such device, or it cannot be used.
  Connection(const DeviceNumber& which, int64_t kept_most);

  const Functions& cl() const { return functions_; }
  const Facts& facts() const { return found_.facts; }
  cl_device_id id() const { return found_.id; }
  cl_context context() const { return context_; }

  // Whether this is the process that made it; in a child nothing is its own.
  bool is_here() const;
  // Error{DeviceLost} once the device was lost, and in a child of the process.
  void check_usable() const;
  // Error unless the call succeeded.  What a lost device says is kept, for those who come later.
  void check(cl_int code, const char* call, const std::string& what);
  // The same of a call that waits for kernels: a driver that has no resources left then has lost
  // what it ran.
  void check_done(cl_int code, const char* call, const std::string& what);

  // Buffers of device memory in whole units of 256 bytes; of those that are given back as many are
  // kept for the next ones as were in use at once.
  cl_mem take_memory(int64_t bytes);
  void give_memory(cl_mem memory, int64_t bytes);
  int64_t kept_bytes();
  void release_kept();

 protected:
  ~Connection() override;

 private:
  void become_part(const DeviceNumber& which);
  void lose(cl_int code, const char* call);
  cl_mem new_memory(int64_t bytes, cl_int& code) const;
  void drop_all();

  Functions functions_;
  FoundDevice found_;
  bool is_part_ = false;  // of a driver's device, and to be given back
  cl_context context_ = nullptr;
  const int64_t process_;  // that may use it
  std::atomic<bool> is_lost_{false};
  std::string lost_by_;

  std::mutex lock_;  // of what follows, and of lost_by_
  struct Kept {
    int64_t bytes;
    cl_mem memory;
  };
  static constexpr size_t kMost = 256;  // giving back needs no memory
  std::vector<Kept> kept_;
  int64_t kept_bytes_ = 0, used_ = 0, used_most_ = 0;
  const int64_t kept_most_;
};

}  // namespace tiny::opencl

// The devices "cuda", "cuda:1", ..: NVIDIA's GPUs by their driver, libcuda.so.1, which is opened
// when a device, or the list of them, is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/collectives.h"
#include "runtime/device.h"

namespace tiny {

struct CudaFacts {
  std::string name;        // of the product
  std::string missing;     // why it cannot be used; "": it can
  int compute = 0;         // its capability: major * 10 + minor
  int driver_version = 0;  // 1000 * major + 10 * minor
  int multiprocessors = 0;
  int group_threads = 0;     // the most
  int64_t shared_bytes = 0;  // of a group, the most that a kernel may ask for
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  // What a multiprocessor holds at a time, and rates; 0: the driver does not say.
  int resident_threads = 0, resident_groups = 0, registers = 0;
  int64_t resident_shared_bytes = 0;
  double clock = 0;             // cycles a second
  double memory_bandwidth = 0;  // bytes a second
};

class CudaDevice : public Device {
 public:
  virtual const CudaFacts& facts() const = 0;
  // PTX as code of kind Cubin, by the driver's assembler; Error{Device} with what that says. Of
  // several units, the result is the first with what the others have beside it.
  virtual Code assemble(std::span<const Code> units) = 0;
  // NCCL over these devices, of which this is the first; null where its library is not there, or
  // a device is among them twice.
  virtual Ref<Collectives> collectives(std::span<CudaDevice* const> devices) = 0;
};

// What a kernel's entry may rely on: its arguments' addresses are multiples of that. Where they are
// not, the entry of this name behind it is launched, if there is one; else it relies on nothing.
inline constexpr int64_t kCudaAlignment = 16;
inline constexpr const char* kAnyAlignment = "_any";

struct CudaOptions {
  int64_t memory_kept = INT64_MAX;  // bytes at most of buffers that are gone
};

// Error{Device} that says why there is none: no driver, one that is too old, too few devices.
std::unique_ptr<CudaDevice> make_cuda_device(int64_t number, const CudaOptions& options = {});

// All that the driver has.  Throws as above.
std::vector<CudaFacts> list_cuda_devices();

}  // namespace tiny

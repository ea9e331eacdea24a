// The devices "opencl", "opencl:1" ..: what OpenCL's drivers find, in their order; "opencl:0.1/2"
// is a part of one.  Memory that the host does not see, and in-order queues.  Nothing of it is
// opened before a device is asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/opencl/connection.h"

namespace tiny {

// What is chosen by: the limits of a device, as it names them.
class OpenClDevice : public Device {
 public:
  virtual const opencl::Facts& facts() const = 0;
};

// Error{Device} where there is no driver or no such device, Error{Unsupported} where it cannot run
// kernels; `memory_kept`: the most that is kept of buffers that are gone, in bytes.
std::unique_ptr<OpenClDevice> make_opencl_device(const DeviceNumber& which, int64_t memory_kept);

// What there is.  Error{Device} where no driver can be asked.
std::vector<opencl::Facts> opencl_devices();

}  // namespace tiny

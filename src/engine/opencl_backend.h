// The devices of OpenCL's drivers, "opencl", "opencl:1" ..: OpenCL C, compiled by the driver.  A
// build with TINY_OPENCL off has without_opencl.cpp in its place.
#pragma once

#include <memory>
#include <vector>

#include "engine/backend.h"

namespace tiny {

std::unique_ptr<Backend> make_opencl_backend(const Flags& flags, const DeviceNumber& which);

// Asks the drivers.  One row that says why where there is none.
std::vector<BackendInfo> list_opencl_backends();

}  // namespace tiny

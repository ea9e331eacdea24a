// The devices of CUDA's driver, "cuda", "cuda:1" ..: PTX, assembled by the driver.  A build with
// TINY_CUDA off has without_cuda.cpp in its place.
#pragma once

#include <memory>
#include <vector>

#include "engine/backend.h"

namespace tiny {

std::unique_ptr<Backend> make_cuda_backend(const Flags& flags, const DeviceNumber& which);

// Asks the driver.  One row that says why where there is none.
std::vector<BackendInfo> list_cuda_backends();

}  // namespace tiny

// Devices whose kernels are text to be read or compiled elsewhere: "hip", "metal", "wgsl".
// Choices are those for such a processor and the text is complete, but nothing is computed.  They
// go with TINY_OPENCL: a build without has without_opencl.cpp in their place.
#pragma once

#include <memory>

#include "engine/backend.h"

namespace tiny {

// The one that `flags.device` names.
std::unique_ptr<Backend> make_text_backend(const Flags& flags, const DeviceNumber& which);

BackendInfo hip_info();
BackendInfo metal_info();
BackendInfo wgsl_info();

}  // namespace tiny

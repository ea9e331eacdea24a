// A build without devices of OpenCL, and without those that write the text of others.
#include "base/error.h"
#include "engine/opencl_backend.h"
#include "engine/text_backend.h"

namespace tiny {
namespace {

constexpr const char* kNone =
    "this build of the library has no devices of OpenCL (TINY_OPENCL was OFF)";

constexpr const char* kNoText =
    "this build of the library writes no kernels for other devices (TINY_OPENCL was OFF)";

BackendInfo none_of(const char* name) {
  return {.name = name, .description = "", .available = false, .reason = kNoText};
}

}  // namespace

std::unique_ptr<Backend> make_opencl_backend(const Flags&, const DeviceNumber&) {
  throw_error(Status::Unsupported, "the device \"opencl\": ", kNone);
}

std::vector<BackendInfo> list_opencl_backends() {
  return {{.name = "opencl", .description = "", .available = false, .reason = kNone}};
}

std::unique_ptr<Backend> make_text_backend(const Flags& flags, const DeviceNumber&) {
  throw_error(Status::Unsupported, "the device \"", flags.device, "\": ", kNoText);
}

BackendInfo hip_info() {
  return none_of("hip");
}

BackendInfo metal_info() {
  return none_of("metal");
}

BackendInfo wgsl_info() {
  return none_of("wgsl");
}

}  // namespace tiny

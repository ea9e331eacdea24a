// A build without devices of OpenCL.
#include "base/error.h"
#include "engine/opencl_backend.h"

namespace tiny {
namespace {

constexpr const char* kNone =
    "this build of the library has no devices of OpenCL (TINY_OPENCL was OFF)";

}  // namespace

std::unique_ptr<Backend> make_opencl_backend(const Flags&, int64_t) {
  throw Error(Status::Unsupported, cat("the device \"opencl\": ", kNone));
}

std::vector<BackendInfo> list_opencl_backends() {
  return {{.name = "opencl", .description = "", .available = false, .reason = kNone}};
}

}  // namespace tiny

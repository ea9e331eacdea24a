// A build without devices of CUDA.
#include "base/error.h"
#include "engine/cuda_backend.h"

namespace tiny {
namespace {

constexpr const char* kNone =
    "this build of the library has no devices of CUDA (TINY_CUDA was OFF)";

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const Flags&, const DeviceNumber&) {
  throw_error(Status::Unsupported, "the device \"cuda\": ", kNone);
}

std::vector<BackendInfo> list_cuda_backends() {
  return {{.name = "cuda", .description = "", .available = false, .reason = kNone}};
}

}  // namespace tiny

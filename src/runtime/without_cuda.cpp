// A build without CUDA's devices.
#include "base/error.h"
#include "runtime/cuda/cuda.h"

namespace tiny {
namespace {

[[noreturn]] void refuse() {
  throw Error(Status::Unsupported, "this build of the library has no CUDA (TINY_CUDA was OFF)");
}

}  // namespace

bool has_cuda_runtime() {
  return false;
}

std::unique_ptr<CudaDevice> make_cuda_device(int, int64_t) {
  refuse();
}

std::vector<CudaFacts> list_cuda_devices() {
  refuse();
}

}  // namespace tiny

// A build without device_contexts.cpp: each of its functions answers that.  No handle of what they
// make exists, so calls that take one can only have got NULL.  Made by scripts/make-without.py.
#include "api/boundary.h"

namespace {

tiny_status refuse(const char* call) noexcept {
  return tiny::fail(
      call, tiny::Status::Unsupported,
      "this build of the library has one device a context (TINY_CUDA and TINY_OPENCL were OFF)");
}

template <class T>
tiny_status refuse(const char* call, T* out) noexcept {
  if (out) *out = {};
  return refuse(call);
}

}  // namespace

extern "C" {

tiny_status tiny_context_on_device(tiny_context*, const char*, tiny_context** out) {
  return refuse(__func__, out);
}

tiny_status tiny_tensor_to(const tiny_tensor*, tiny_context*, tiny_tensor** out) {
  return refuse(__func__, out);
}

}  // extern "C"

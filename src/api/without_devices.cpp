// A build without device_contexts.cpp and collective.cpp: each of its functions answers that.  No
// handle of what they make exists, so calls that take one can only have got NULL.  Made by
// scripts/make-without.py.
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

template <class T>
tiny_status refuse(const char* call, T** outs, size_t count) noexcept {
  for (size_t i = 0; outs && i < count; ++i) outs[i] = nullptr;
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

tiny_status tiny_processes_open(const char*, tiny_processes** out) {
  return refuse(__func__, out);
}

void tiny_processes_retain(tiny_processes*) {
}

void tiny_processes_release(tiny_processes*) {
}

tiny_status tiny_processes_rank(const tiny_processes*, int64_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_processes_count(const tiny_processes*, int64_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_allreduce(tiny_tensor* const*, size_t, tiny_reduce_op, const tiny_processes*,
                           tiny_tensor** outs, size_t count) {
  return refuse(__func__, outs, count);
}

tiny_status tiny_allgather(tiny_tensor* const*, size_t, int64_t, const tiny_processes*,
                           tiny_tensor** outs, size_t count) {
  return refuse(__func__, outs, count);
}

}  // extern "C"

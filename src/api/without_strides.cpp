// A build without strides.cpp: each of its functions answers that.  No handle of what they make
// exists, so calls that take one can only have got NULL.  Made by scripts/make-without.py.
#include "api/boundary.h"

namespace {

tiny_status refuse(const char* call) noexcept {
  return tiny::fail(call, tiny::Status::Unsupported,
                    "this build of the library has no functions of strides (TINY_NODES was OFF)");
}

template <class T>
tiny_status refuse(const char* call, T* out) noexcept {
  if (out) *out = {};
  return refuse(call);
}

}  // namespace

extern "C" {

tiny_status tiny_as_strided(const tiny_tensor*, const int64_t*, const int64_t*, size_t, int64_t,
                            tiny_tensor** out) {
  return refuse(__func__, out);
}

tiny_status tiny_empty_strided(tiny_context*, tiny_dtype, const int64_t*, const int64_t*, size_t,
                               tiny_tensor** out) {
  return refuse(__func__, out);
}

tiny_status tiny_get_buffer_size(tiny_context*, const int64_t*, const int64_t*, const int64_t*,
                                 const int64_t*, size_t, int64_t, int64_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_get_real_view(tiny_context*, const int64_t*, const int64_t*, const int64_t*,
                               const int64_t*, size_t, int64_t, int64_t*, size_t, size_t* count) {
  return refuse(__func__, count);
}

tiny_status tiny_to_movement_ops(tiny_context*, const int64_t*, const int64_t*, const int64_t*,
                                 const int64_t*, size_t, int64_t, int64_t*, size_t, size_t* count) {
  return refuse(__func__, count);
}

tiny_status tiny_apply_movement_op(const tiny_tensor*, tiny_movement, const int64_t*, size_t,
                                   tiny_tensor** out) {
  return refuse(__func__, out);
}

}  // extern "C"

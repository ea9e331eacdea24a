// A build without node.cpp: each of its functions answers that.  No handle of what they make
// exists, so calls that take one can only have got NULL.  Made by scripts/make-without.py.
#include "api/boundary.h"

namespace {

tiny_status refuse(const char* call) noexcept {
  return tiny::fail(call, tiny::Status::Unsupported,
                    "this build of the library shows no nodes of the graph (TINY_NODES was OFF)");
}

template <class T>
tiny_status refuse(const char* call, T* out) noexcept {
  if (out) *out = {};
  return refuse(call);
}

}  // namespace

extern "C" {

tiny_status tiny_ops(tiny_report** out) {
  return refuse(__func__, out);
}

tiny_status tiny_tensor_node(const tiny_tensor*, tiny_node** out) {
  return refuse(__func__, out);
}

void tiny_node_retain(tiny_node*) {
}

void tiny_node_release(tiny_node*) {
}

tiny_status tiny_node_context(const tiny_node*, tiny_context** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_id(const tiny_node*, int64_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_op(const tiny_node*, const char** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_dtype(const tiny_node*, tiny_dtype* out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_argument(const tiny_node*, tiny_report** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_source_count(const tiny_node*, size_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_source(const tiny_node*, size_t, tiny_node** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_has_shape(const tiny_node*, int32_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_shape(const tiny_node*, int64_t*, size_t, size_t* rank) {
  return refuse(__func__, rank);
}

tiny_status tiny_node_in_memory(const tiny_node*, int32_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_range(const tiny_node*, int64_t*, int64_t* max) {
  return refuse(__func__, max);
}

tiny_status tiny_node_text(const tiny_node*, tiny_report** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_simplify(const tiny_node*, tiny_node** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_integer(tiny_context*, tiny_dtype, int64_t, tiny_node** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_float(tiny_context*, tiny_dtype, double, tiny_node** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_variable(tiny_context*, const char*, int64_t, int64_t, tiny_node** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_make(tiny_context*, const char*, tiny_dtype, tiny_node* const*, size_t,
                           tiny_node** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_with_sources(const tiny_node*, tiny_node* const*, size_t, tiny_node** out) {
  return refuse(__func__, out);
}

tiny_status tiny_node_tensor(const tiny_node*, tiny_tensor** out) {
  return refuse(__func__, out);
}

tiny_status tiny_schedule_store(tiny_tensor* const*, size_t, size_t, size_t, tiny_node** out) {
  return refuse(__func__, out);
}

}  // extern "C"

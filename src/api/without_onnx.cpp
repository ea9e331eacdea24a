// A build without model.cpp and value.cpp and export.cpp: each of its functions answers that.  No
// handle of what they make exists, so calls that take one can only have got NULL.  Made by
// scripts/make-without.py.
#include "api/boundary.h"

namespace {

tiny_status refuse(const char* call) noexcept {
  return tiny::fail(call, tiny::Status::Unsupported,
                    "this build of the library has no ONNX importer (TINY_ONNX was OFF)");
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

int64_t tiny_supported_opset(void) {
  return 0;
}

int32_t tiny_op_supported(const char*, const char*, int64_t) {
  return 0;
}

tiny_status tiny_op(tiny_context*, const char*, const char*, int64_t, tiny_tensor* const*, size_t,
                    const char*, tiny_tensor** outputs, size_t output_count) {
  return refuse(__func__, outputs, output_count);
}

tiny_status tiny_value_from_tensor(tiny_tensor*, tiny_value** out) {
  return refuse(__func__, out);
}

tiny_status tiny_value_texts(tiny_context*, const int64_t*, size_t, const void*, size_t,
                             const int64_t*, size_t, tiny_value** out) {
  return refuse(__func__, out);
}

tiny_status tiny_value_sequence(tiny_context*, tiny_value* const*, size_t, tiny_value** out) {
  return refuse(__func__, out);
}

tiny_status tiny_value_map(tiny_value*, tiny_value*, tiny_value** out) {
  return refuse(__func__, out);
}

tiny_status tiny_value_nothing(tiny_context*, tiny_value** out) {
  return refuse(__func__, out);
}

tiny_status tiny_value_load(tiny_context*, const char*, tiny_kind, tiny_value** out) {
  return refuse(__func__, out);
}

void tiny_value_retain(tiny_value*) {
}

void tiny_value_release(tiny_value*) {
}

tiny_status tiny_value_kind(const tiny_value*, tiny_kind* out) {
  return refuse(__func__, out);
}

tiny_status tiny_value_count(const tiny_value*, size_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_value_element(const tiny_value*, size_t, tiny_value** out) {
  return refuse(__func__, out);
}

tiny_status tiny_value_tensor(const tiny_value*, tiny_tensor** out) {
  return refuse(__func__, out);
}

tiny_status tiny_value_shape(const tiny_value*, int64_t*, size_t, size_t* rank) {
  return refuse(__func__, rank);
}

tiny_status tiny_value_text_lengths(const tiny_value*, int64_t*, size_t, size_t* count) {
  return refuse(__func__, count);
}

tiny_status tiny_value_read_texts(const tiny_value*, void*, size_t) {
  return refuse(__func__);
}

tiny_status tiny_model_load(tiny_context*, const char*, tiny_model** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_load_memory(tiny_context*, const void*, size_t, const char*,
                                   tiny_model** out) {
  return refuse(__func__, out);
}

void tiny_model_retain(tiny_model*) {
}

void tiny_model_release(tiny_model*) {
}

tiny_status tiny_model_info(const tiny_model*, tiny_report** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_header(const tiny_model*, tiny_report** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_input_count(const tiny_model*, size_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_output_count(const tiny_model*, size_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_input_name(const tiny_model*, size_t, const char** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_output_name(const tiny_model*, size_t, const char** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_input_index(const tiny_model*, const char*, size_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_output_index(const tiny_model*, const char*, size_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_input_kind(const tiny_model*, size_t, tiny_kind* out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_output_kind(const tiny_model*, size_t, tiny_kind* out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_input_dtype(const tiny_model*, size_t, tiny_dtype* out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_input_shape(const tiny_model*, size_t, int64_t*, size_t, size_t* rank) {
  return refuse(__func__, rank);
}

tiny_status tiny_model_input_dim_name(const tiny_model*, size_t, size_t, const char** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_output_dtype(const tiny_model*, size_t, tiny_dtype* out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_output_shape(const tiny_model*, size_t, int64_t*, size_t, size_t* rank) {
  return refuse(__func__, rank);
}

tiny_status tiny_model_output_dim_name(const tiny_model*, size_t, size_t, const char** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_metadata_count(const tiny_model*, size_t* out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_metadata_key(const tiny_model*, size_t, const char** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_metadata_value(const tiny_model*, size_t, const char** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_metadata(const tiny_model*, const char*, const char** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_compile(tiny_model*, const int64_t*, size_t, tiny_program** out) {
  return refuse(__func__, out);
}

tiny_status tiny_model_run(tiny_model*, tiny_tensor* const*, size_t, tiny_tensor** outputs,
                           size_t output_count) {
  return refuse(__func__, outputs, output_count);
}

tiny_status tiny_model_set_seed(tiny_model*, int64_t) {
  return refuse(__func__);
}

tiny_status tiny_model_run_values(tiny_model*, tiny_value* const*, size_t, tiny_value** outputs,
                                  size_t output_count) {
  return refuse(__func__, outputs, output_count);
}

tiny_status tiny_model_apply(tiny_model*, tiny_tensor* const*, size_t, tiny_tensor** outputs,
                             size_t output_count) {
  return refuse(__func__, outputs, output_count);
}

tiny_status tiny_export_onnx(tiny_tensor* const*, size_t, tiny_tensor* const*, size_t,
                             const char*) {
  return refuse(__func__);
}

}  // extern "C"

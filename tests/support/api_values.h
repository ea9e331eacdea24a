// A context of tiny.h and tensors in it, for the fixtures of tests through the C ABI.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tiny.h"

namespace tiny::testing {

using Dims = std::vector<int64_t>;

// Whether the message of the last failure has this text.
inline bool error_has(const char* text) {
  return std::strstr(tiny_last_error(), text) != nullptr;
}

class ApiValues {
 protected:
  static tiny_context* make_context(const char* device) {
    tiny_options* options = nullptr;
    tiny_context* context = nullptr;
    EXPECT_EQ(tiny_options_create(&options), TINY_OK);
    EXPECT_EQ(tiny_options_set_string(options, "device", device), TINY_OK);
    EXPECT_EQ(tiny_options_set_int(options, "cache", 0), TINY_OK);
    EXPECT_EQ(tiny_context_create(options, &context), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
    return context;
  }
  void open(const char* device) { context_ = make_context(device); }
  void close() {
    for (tiny_tensor* t : tensors_) tiny_tensor_release(t);
    tiny_context_release(context_);
  }

  // Released at the end.
  tiny_tensor* keep(tiny_tensor* t) {
    tensors_.push_back(t);
    return t;
  }
  tiny_tensor* keep(tiny_status status, tiny_tensor* t) {
    EXPECT_EQ(status, TINY_OK) << tiny_last_error();
    return keep(t);
  }
  template <class T>
  tiny_tensor* tensor(tiny_dtype dtype, const Dims& dims, const std::vector<T>& values) {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_tensor_from_data(context_, dtype, dims.data(), dims.size(),
                                                     values.data(), values.size() * sizeof(T), &t);
    return keep(status, t);
  }
  tiny_tensor* floats(const Dims& dims, const std::vector<float>& values) {
    return tensor(TINY_FLOAT32, dims, values);
  }
  tiny_tensor* input(const Dims& dims, tiny_dtype dtype = TINY_FLOAT32) {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_input(context_, dtype, dims.data(), dims.size(), &t);
    return keep(status, t);
  }
  template <class T = float>
  std::vector<T> read(const tiny_tensor* t) {
    int64_t count = 0;
    EXPECT_EQ(tiny_tensor_numel(t, &count), TINY_OK);
    std::vector<T> values(static_cast<size_t>(count));
    EXPECT_EQ(tiny_tensor_read(t, values.data(), values.size() * sizeof(T)), TINY_OK)
        << tiny_last_error();
    return values;
  }
  Dims shape(const tiny_tensor* t) {
    Dims dims(TINY_RANK_MAX);
    size_t rank = 0;
    EXPECT_EQ(tiny_tensor_shape(t, dims.data(), dims.size(), &rank), TINY_OK);
    dims.resize(rank);
    return dims;
  }

  tiny_context* context_ = nullptr;
  std::vector<tiny_tensor*> tensors_;
};

}  // namespace tiny::testing

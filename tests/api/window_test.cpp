// Windows through the C ABI: what each setter means, what calls make of it, and what is refused.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tiny.h"

namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

class Window : public ::testing::Test {
 protected:
  void SetUp() override {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", "interp"), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
  }
  void TearDown() override {
    for (tiny_tensor* t : tensors_) tiny_tensor_release(t);
    for (tiny_window* w : windows_) tiny_window_release(w);
    tiny_context_release(context_);
  }

  tiny_window* window(size_t axes) {
    tiny_window* out = nullptr;
    EXPECT_EQ(tiny_window_create(axes, &out), TINY_OK) << tiny_last_error();
    windows_.push_back(out);
    return out;
  }
  tiny_tensor* made(const std::function<tiny_status(tiny_tensor**)>& call) {
    tiny_tensor* out = nullptr;
    EXPECT_EQ(call(&out), TINY_OK) << tiny_last_error();
    tensors_.push_back(out);
    return out;
  }
  // 1, 2, 3, ..
  tiny_tensor* counted(const Ints& dims) {
    Floats data(static_cast<size_t>(
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>())));
    std::iota(data.begin(), data.end(), 1.F);
    return made([&](tiny_tensor** out) {
      return tiny_tensor_from_data(context_, TINY_FLOAT32, dims.data(), dims.size(), data.data(),
                                   data.size() * sizeof(float), out);
    });
  }
  tiny_tensor* moved(tiny_tensor* t, const Ints& axes) {
    return made([&](tiny_tensor** out) { return tiny_permute(t, axes.data(), axes.size(), out); });
  }
  tiny_tensor* conv(tiny_tensor* x, tiny_tensor* weight, const tiny_window* w) {
    return made([&](tiny_tensor** out) { return tiny_conv(x, weight, nullptr, w, out); });
  }
  Ints shape(tiny_tensor* t) {
    Ints dims(TINY_RANK_MAX);
    size_t rank = 0;
    EXPECT_EQ(tiny_tensor_shape(t, dims.data(), dims.size(), &rank), TINY_OK);
    dims.resize(rank);
    return dims;
  }
  template <class T = float>
  std::vector<T> values(tiny_tensor* t) {
    int64_t count = 0;
    EXPECT_EQ(tiny_tensor_numel(t, &count), TINY_OK);
    std::vector<T> out(static_cast<size_t>(count));
    EXPECT_EQ(tiny_tensor_read(t, out.data(), out.size() * sizeof(T)), TINY_OK)
        << tiny_last_error();
    return out;
  }
  void expect_error(tiny_status got, tiny_status want, const std::string& part) {
    EXPECT_EQ(got, want) << tiny_last_error();
    EXPECT_NE(std::string(tiny_last_error()).find(part), std::string::npos)
        << part << " in: " << tiny_last_error();
  }

  tiny_context* context_ = nullptr;
  std::vector<tiny_tensor*> tensors_;
  std::vector<tiny_window*> windows_;
};

TEST_F(Window, SaysWhatAConvolutionSees) {
  tiny_tensor* x = counted({1, 2, 5});
  tiny_tensor* w = counted({2, 1, 2});  // two groups: (1, 2) and (3, 4)
  tiny_window* window_of_one = window(1);
  const Ints two{2}, one{1}, none{0};
  ASSERT_EQ(tiny_window_set_strides(window_of_one, two.data(), 1), TINY_OK);
  ASSERT_EQ(tiny_window_set_dilations(window_of_one, two.data(), 1), TINY_OK);
  ASSERT_EQ(tiny_window_set_padding(window_of_one, one.data(), none.data(), 1), TINY_OK);
  ASSERT_EQ(tiny_window_set_groups(window_of_one, 2), TINY_OK);
  // Elements (-, 2) and (2, 4) of 1 .. 5, then (-, 7) and (7, 9).
  EXPECT_EQ(values(conv(x, w, window_of_one)), (Floats{4, 10, 28, 57}));
}

// The two ways to say it, for every kernel, stride and dilation that are small.
TEST_F(Window, SamePaddingIsWhatItSays) {
  for (int64_t kernel = 1; kernel <= 4; ++kernel)
    for (int64_t stride = 1; stride <= 3; ++stride)
      for (int64_t dilation = 1; dilation <= 2; ++dilation)
        for (int64_t size = 7; size <= 9; ++size)
          for (const tiny_padding mode : {TINY_PADDING_SAME_UPPER, TINY_PADDING_SAME_LOWER}) {
            const int64_t count = (size + stride - 1) / stride;
            const int64_t reach = (kernel - 1) * dilation + 1;
            const int64_t total = std::max<int64_t>(0, (count - 1) * stride + reach - size);
            const bool upper = mode == TINY_PADDING_SAME_UPPER;
            const Ints before{upper ? total / 2 : (total + 1) / 2}, after{total - before[0]};
            tiny_window *said = window(1), *same = window(1);
            for (tiny_window* w : {said, same}) {
              ASSERT_EQ(tiny_window_set_strides(w, &stride, 1), TINY_OK);
              ASSERT_EQ(tiny_window_set_dilations(w, &dilation, 1), TINY_OK);
            }
            ASSERT_EQ(tiny_window_set_padding(said, before.data(), after.data(), 1), TINY_OK);
            ASSERT_EQ(tiny_window_set_auto_padding(same, mode), TINY_OK);
            tiny_tensor *x = counted({1, 1, size}), *w = counted({1, 1, kernel});
            tiny_tensor* got = conv(x, w, same);
            EXPECT_EQ(shape(got), (Ints{1, 1, count}));
            EXPECT_EQ(values(got), values(conv(x, w, said)));
            tiny_tensor* spread = made(
                [&](tiny_tensor** out) { return tiny_conv_transpose(x, w, nullptr, same, out); });
            EXPECT_EQ(shape(spread), (Ints{1, 1, size * stride}));
          }
}

// The last of what is said about padding holds.
TEST_F(Window, PaddingIsExplicitOrFollows) {
  tiny_window* w = window(1);
  const int64_t two = 2;
  tiny_tensor *x = counted({1, 1, 4}), *weight = counted({1, 1, 3});
  ASSERT_EQ(tiny_window_set_padding(w, &two, &two, 1), TINY_OK);
  EXPECT_EQ(shape(conv(x, weight, w))[2], 6);
  ASSERT_EQ(tiny_window_set_auto_padding(w, TINY_PADDING_VALID), TINY_OK);
  EXPECT_EQ(shape(conv(x, weight, w))[2], 2);
  ASSERT_EQ(tiny_window_set_padding(w, &two, &two, 1), TINY_OK);
  EXPECT_EQ(shape(conv(x, weight, w))[2], 6);
  ASSERT_EQ(tiny_window_set_auto_padding(w, TINY_PADDING_EXPLICIT), TINY_OK);
  EXPECT_EQ(shape(conv(x, weight, w))[2], 2);
  EXPECT_EQ(values(conv(x, weight, w)), values(conv(x, weight, nullptr)));
}

// Whatever has channels last is what has them first, seen in another way.
TEST_F(Window, ChannelsLieFirstOrLast) {
  tiny_tensor *x = counted({2, 4, 5, 6}), *w = counted({4, 2, 3, 2}), *bias = counted({4});
  const Ints first_to_last{0, 2, 3, 1}, last_to_first{0, 3, 1, 2};
  tiny_tensor *x_last = moved(x, first_to_last), *w_last = moved(w, first_to_last);
  tiny_window *first = window(2), *last = window(2);
  const Ints kernel{3, 2}, strides{2, 1}, before{1, 0}, after{0, 1};
  for (tiny_window* each : {first, last}) {
    ASSERT_EQ(tiny_window_set_kernel(each, kernel.data(), 2), TINY_OK);
    ASSERT_EQ(tiny_window_set_strides(each, strides.data(), 2), TINY_OK);
    ASSERT_EQ(tiny_window_set_padding(each, before.data(), after.data(), 2), TINY_OK);
    ASSERT_EQ(tiny_window_set_groups(each, 2), TINY_OK);
    ASSERT_EQ(tiny_window_set_output_padding(each, before.data(), 2), TINY_OK);
    ASSERT_EQ(tiny_window_set_flags(each, TINY_FLAG_CEIL_MODE | TINY_FLAG_COUNT_INCLUDE_PAD),
              TINY_OK);
  }
  ASSERT_EQ(tiny_window_set_layout(last, TINY_LAYOUT_CHANNELS_LAST), TINY_OK);
  using Call = std::function<tiny_status(tiny_tensor*, tiny_tensor*, tiny_window*, tiny_tensor**)>;
  const std::vector<Call> calls = {
      [&](tiny_tensor* a, tiny_tensor* f, tiny_window* how, tiny_tensor** out) {
        return tiny_conv(a, f, bias, how, out);
      },
      [&](tiny_tensor* a, tiny_tensor* f, tiny_window* how, tiny_tensor** out) {
        return tiny_conv_transpose(a, f, bias, how, out);
      },
      [](tiny_tensor* a, tiny_tensor*, tiny_window* how, tiny_tensor** out) {
        return tiny_max_pool(a, how, out);
      },
      [](tiny_tensor* a, tiny_tensor*, tiny_window* how, tiny_tensor** out) {
        return tiny_avg_pool(a, how, out);
      }};
  for (const Call& call : calls) {
    tiny_tensor* want = made([&](tiny_tensor** out) { return call(x, w, first, out); });
    tiny_tensor* got = made([&](tiny_tensor** out) { return call(x_last, w_last, last, out); });
    EXPECT_EQ(shape(got), shape(moved(want, first_to_last)));
    EXPECT_EQ(values(moved(got, last_to_first)), values(want));
  }
  tiny_tensor* want = made([&](tiny_tensor** o) { return tiny_max_pool_indices(x, first, o); });
  tiny_tensor* got = made([&](tiny_tensor** o) { return tiny_max_pool_indices(x_last, last, o); });
  EXPECT_EQ(values<int64_t>(moved(got, last_to_first)), values<int64_t>(want));
}

TEST_F(Window, PoolsAreToldByFlags) {
  tiny_tensor* x = counted({1, 1, 4});
  tiny_window* w = window(1);
  const auto largest = [&] {
    return values(made([&](tiny_tensor** out) { return tiny_max_pool(x, w, out); }));
  };
  const auto means = [&] {
    return values(made([&](tiny_tensor** out) { return tiny_avg_pool(x, w, out); }));
  };
  const int64_t three = 3, two = 2, one = 1, none = 0;
  ASSERT_EQ(tiny_window_set_kernel(w, &three, 1), TINY_OK);
  ASSERT_EQ(tiny_window_set_strides(w, &two, 1), TINY_OK);
  EXPECT_EQ(largest(), Floats{3});
  ASSERT_EQ(tiny_window_set_flags(w, TINY_FLAG_CEIL_MODE), TINY_OK);
  EXPECT_EQ(largest(), (Floats{3, 4}));
  ASSERT_EQ(tiny_window_set_padding(w, &one, &none, 1), TINY_OK);
  ASSERT_EQ(tiny_window_set_flags(w, TINY_FLAG_COUNT_INCLUDE_PAD), TINY_OK);
  EXPECT_EQ(means(), (Floats{1, 3}));
  ASSERT_EQ(tiny_window_set_flags(w, 0), TINY_OK);
  EXPECT_EQ(means(), (Floats{1.5F, 3}));
}

TEST_F(Window, WhatCannotBeIsRefusedAndChangesNothing) {
  tiny_window* none = nullptr;
  expect_error(tiny_window_create(0, &none), TINY_ERROR_INVALID_ARGUMENT, "nspatial is 0; 1 to 14");
  expect_error(tiny_window_create(15, &none), TINY_ERROR_INVALID_ARGUMENT, "nspatial is 15");
  EXPECT_EQ(tiny_window_create(2, nullptr), TINY_ERROR_INVALID_ARGUMENT);
  tiny_window* w = window(2);
  const Ints good{3, 2}, bad{0, 1}, less{-1, 0}, huge{INT64_MAX, 1};
  expect_error(tiny_window_set_strides(w, bad.data(), 2), TINY_ERROR_INVALID_ARGUMENT,
               "tiny_window_set_strides: window: strides [0, 1]; each from 1");
  expect_error(tiny_window_set_dilations(w, huge.data(), 2), TINY_ERROR_INVALID_ARGUMENT,
               "dilations [9223372036854775807, 1]");
  expect_error(tiny_window_set_kernel(w, less.data(), 2), TINY_ERROR_INVALID_ARGUMENT,
               "kernel [-1, 0]; each from 1");
  expect_error(tiny_window_set_output_padding(w, less.data(), 2), TINY_ERROR_INVALID_ARGUMENT,
               "output padding [-1, 0]; each from 0");
  expect_error(tiny_window_set_padding(w, good.data(), nullptr, 2), TINY_ERROR_INVALID_ARGUMENT,
               "after is NULL");
  expect_error(tiny_window_set_kernel(w, good.data(), 1), TINY_ERROR_SHAPE,
               "kernel has 1 values for a window of 2 spatial axes");
  expect_error(tiny_window_set_groups(w, 0), TINY_ERROR_INVALID_ARGUMENT, "groups is 0");
  expect_error(tiny_window_set_auto_padding(w, 9), TINY_ERROR_INVALID_ARGUMENT,
               "unknown padding 9; known: TINY_PADDING_EXPLICIT (0)");
  expect_error(tiny_window_set_layout(w, -1), TINY_ERROR_INVALID_ARGUMENT,
               "TINY_LAYOUT_CHANNELS_LAST (1)");
  expect_error(tiny_window_set_flags(w, TINY_FLAG_KEEPDIMS), TINY_ERROR_INVALID_ARGUMENT,
               "TINY_FLAG_CEIL_MODE (64), TINY_FLAG_COUNT_INCLUDE_PAD (128)");
  expect_error(tiny_window_set_groups(nullptr, 1), TINY_ERROR_INVALID_ARGUMENT, "window is NULL");
  tiny_tensor *x = counted({1, 2, 6, 6}), *weight = counted({2, 2, 3, 3});
  EXPECT_EQ(values(conv(x, weight, w)), values(conv(x, weight, nullptr)));
}

TEST_F(Window, CallsSayWhatDoesNotFit) {
  tiny_tensor *x = counted({1, 2, 6, 6}), *weight = counted({2, 2, 3, 3}), *out = x;
  tiny_window* w = window(1);
  expect_error(tiny_conv(x, weight, nullptr, w, &out), TINY_ERROR_SHAPE,
               "x of shape [1, 2, 6, 6] with a window of 1 spatial axes");
  EXPECT_EQ(out, nullptr);
  expect_error(tiny_max_pool(x, w, &out), TINY_ERROR_INVALID_ARGUMENT, "the window has no kernel");
  expect_error(tiny_avg_pool(x, nullptr, &out), TINY_ERROR_INVALID_ARGUMENT, "window is NULL");
  w = window(2);
  const Ints kernel{3, 2}, more{7, 1}, less{-1, 0}, zeros{0, 0};
  ASSERT_EQ(tiny_window_set_kernel(w, kernel.data(), 2), TINY_OK);
  expect_error(tiny_conv(x, weight, nullptr, w, &out), TINY_ERROR_SHAPE,
               "the window's kernel is [3, 2], the weight's [3, 3]");
  ASSERT_EQ(tiny_window_set_kernel(w, more.data(), 2), TINY_OK);
  expect_error(tiny_max_pool(x, w, &out), TINY_ERROR_SHAPE, "kernel [7, 1] does not fit");
  ASSERT_EQ(tiny_window_set_padding(w, less.data(), zeros.data(), 2), TINY_OK);
  expect_error(tiny_max_pool(x, w, &out), TINY_ERROR_INVALID_ARGUMENT,
               "padding [-1, 0] before and [0, 0] after; each at least 0");
  ASSERT_EQ(tiny_window_set_groups(w, 3), TINY_OK);
  ASSERT_EQ(tiny_window_set_padding(w, zeros.data(), zeros.data(), 2), TINY_OK);
  tiny_window* grouped = window(2);
  ASSERT_EQ(tiny_window_set_groups(grouped, 3), TINY_OK);
  expect_error(tiny_conv(x, weight, nullptr, grouped, &out), TINY_ERROR_SHAPE,
               "2 channels in 3 groups");
}

}  // namespace

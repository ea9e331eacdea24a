// Views by their strides over the C ABI: lists that are as long as there is room, masks, mistakes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tiny.h"

namespace {

using Ints = std::vector<int64_t>;

class Strides : public ::testing::Test {
 protected:
  void SetUp() override {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", "interp"), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK);
    tiny_options_release(options);
  }
  void TearDown() override {
    for (tiny_tensor* t : kept_) tiny_tensor_release(t);
    tiny_context_release(context_);
  }
  tiny_tensor* keep(tiny_tensor* t) {
    kept_.push_back(t);
    return t;
  }
  static void expect_error(tiny_status got, tiny_status want, const std::string& text) {
    EXPECT_EQ(got, want);
    EXPECT_NE(std::string(tiny_last_error()).find(text), std::string::npos) << tiny_last_error();
  }
  tiny_tensor* empty(const Ints& dims, const Ints& strides) {
    tiny_tensor* made = nullptr;
    EXPECT_EQ(
        tiny_empty_strided(context_, TINY_FLOAT32, dims.data(), strides.data(), dims.size(), &made),
        TINY_OK)
        << tiny_last_error();
    return keep(made);
  }
  static Ints strides_of(const tiny_tensor* t) {
    Ints out(TINY_RANK_MAX);
    size_t rank = 0;
    EXPECT_EQ(tiny_tensor_strides(t, out.data(), out.size(), &rank), TINY_OK);
    out.resize(rank);
    return out;
  }
  static int64_t offset_of(const tiny_tensor* t) {
    int64_t offset = -1;
    EXPECT_EQ(tiny_tensor_offset(t, &offset), TINY_OK);
    return offset;
  }

  tiny_context* context_ = nullptr;
  std::vector<tiny_tensor*> kept_;
};

TEST_F(Strides, TensorsHaveTheStridesThatWereAskedFor) {
  EXPECT_EQ(strides_of(empty({2, 3}, {10, 2})), (Ints{10, 2}));
  EXPECT_EQ(strides_of(empty({1, 5}, {100, 2})), (Ints{100, 2}));
  EXPECT_EQ(strides_of(empty({0, 3}, {3, 1})), (Ints{3, 1}));
  const tiny_tensor* backwards = empty({3}, {-2});
  EXPECT_EQ(offset_of(backwards), 4);
  const int64_t dims[] = {2, 1}, strides[] = {2, 77};
  tiny_tensor* view = nullptr;
  ASSERT_EQ(tiny_as_strided(backwards, dims, strides, 2, -4, &view), TINY_OK) << tiny_last_error();
  EXPECT_EQ(strides_of(keep(view)), (Ints{2, 77}));
  EXPECT_EQ(offset_of(view), 0);
  tiny_tensor* none = nullptr;
  expect_error(tiny_as_strided(backwards, dims, strides, 2, -5, &none), TINY_ERROR_SHAPE,
               "reaches elements -1 to 1 of memory that has 5");
}

TEST_F(Strides, ListsAreWrittenAsFarAsThereIsRoom) {
  const int64_t dims[] = {4, 3}, strides[] = {0, -2};
  size_t count = 0;
  EXPECT_EQ(tiny_get_real_view(context_, dims, strides, nullptr, nullptr, 2, 5, nullptr, 0, &count),
            TINY_OK);
  EXPECT_EQ(count, 3u);
  Ints view(4, -9);
  EXPECT_EQ(
      tiny_get_real_view(context_, dims, strides, nullptr, nullptr, 2, 5, view.data(), 2, &count),
      TINY_OK);
  EXPECT_EQ(view, (Ints{3, 2, -9, -9}));
  Ints ops(32);
  EXPECT_EQ(tiny_to_movement_ops(context_, dims, strides, nullptr, nullptr, 2, 5, ops.data(),
                                 ops.size(), &count),
            TINY_OK);
  ops.resize(count);
  EXPECT_EQ(ops,
            (Ints{TINY_MOVEMENT_SHRINK, 2, 1, 6, TINY_MOVEMENT_STRIDE, 1, 2, TINY_MOVEMENT_FLIP, 1,
                  0, TINY_MOVEMENT_RESHAPE, 2, 1, 3, TINY_MOVEMENT_EXPAND, 2, 4, 3}));
  expect_error(
      tiny_to_movement_ops(context_, dims, strides, nullptr, nullptr, 2, 5, nullptr, 3, &count),
      TINY_ERROR_INVALID_ARGUMENT, "the buffer is NULL but has room for 3");
}

TEST_F(Strides, MasksAreAsLongAsTheView) {
  const int64_t dims[] = {5}, strides[] = {1}, begin[] = {1}, end[] = {4}, far[] = {6};
  int64_t size = -1;
  EXPECT_EQ(tiny_get_buffer_size(context_, dims, strides, begin, end, 1, -1, &size), TINY_OK);
  EXPECT_EQ(size, 3);
  expect_error(tiny_get_buffer_size(context_, dims, strides, begin, nullptr, 1, -1, &size),
               TINY_ERROR_INVALID_ARGUMENT, "mask_end is NULL and mask_begin is not");
  expect_error(tiny_get_buffer_size(context_, dims, strides, begin, far, 1, -1, &size),
               TINY_ERROR_SHAPE, "wanted 0 <= begin <= end <= size");
  expect_error(tiny_get_buffer_size(context_, dims, strides, nullptr, nullptr, 1, -1, &size),
               TINY_ERROR_SHAPE, "reaches element -1; the memory's first is 0");
  EXPECT_EQ(size, 0);
  expect_error(tiny_get_buffer_size(nullptr, dims, strides, nullptr, nullptr, 1, 0, &size),
               TINY_ERROR_INVALID_ARGUMENT, "context is NULL");
}

TEST_F(Strides, SizesOfVariablesComeOutAsTheyGoIn) {
  tiny_variable* variable = nullptr;
  ASSERT_EQ(tiny_variable_create(context_, "n", 1, 8, &variable), TINY_OK);
  int64_t n = 0, triple = 0, size = 0;
  ASSERT_EQ(tiny_variable_dim(variable, &n), TINY_OK);
  ASSERT_EQ(tiny_dim_mul(context_, n, 3, &triple), TINY_OK);
  const int64_t dims[] = {3, n}, strides[] = {n, 1}, other[] = {n - 1, 1};
  EXPECT_EQ(tiny_get_buffer_size(context_, dims, strides, nullptr, nullptr, 2, 0, &size), TINY_OK);
  EXPECT_EQ(size, triple);
  expect_error(tiny_get_buffer_size(context_, dims, other, nullptr, nullptr, 2, 0, &size),
               TINY_ERROR_INVALID_ARGUMENT, "strides[0]");
  tiny_variable_release(variable);
}

TEST_F(Strides, MovementsHaveTheirNumbers) {
  const tiny_tensor* x = empty({2, 3}, {3, 1});
  const int64_t one[] = {1};
  tiny_tensor* none = nullptr;
  expect_error(tiny_apply_movement_op(x, TINY_MOVEMENT_PAD, one, 1, &none), TINY_ERROR_SHAPE,
               "pad with 1 numbers for shape [2, 3]; wanted two for each axis");
  expect_error(tiny_apply_movement_op(x, TINY_MOVEMENT_STRIDE, one, 1, &none), TINY_ERROR_SHAPE,
               "stride with 1 numbers for shape [2, 3]; wanted one for each axis");
  expect_error(tiny_apply_movement_op(x, 8, one, 1, &none), TINY_ERROR_INVALID_ARGUMENT,
               "unknown movement 8; known: TINY_MOVEMENT_RESHAPE (0)");
}

}  // namespace

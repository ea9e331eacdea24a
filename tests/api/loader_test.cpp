// Loaders through tiny.h: batches that are tensors, places that come back, mistakes that are named.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tiny.h"

namespace {

class Loader : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(tiny_context_create(nullptr, &context_), TINY_OK); }
  void TearDown() override {
    for (tiny_tensor* t : made_) tiny_tensor_release(t);
    tiny_loader_release(loader_);
    tiny_context_release(context_);
  }
  tiny_tensor* floats(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
    tiny_tensor* t = nullptr;
    EXPECT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, dims.data(), dims.size(), values.data(),
                                    values.size() * sizeof(float), &t),
              TINY_OK);
    made_.push_back(t);
    return t;
  }
  tiny_status create(std::vector<tiny_tensor*> arrays, int64_t batch, tiny_flags flags = 0,
                     size_t ahead = 2) {
    tiny_loader_release(loader_);
    return tiny_loader_create(arrays.data(), arrays.size(), batch, 3, ahead, flags, &loader_);
  }
  int64_t next() {
    int64_t rows = -1;
    EXPECT_EQ(tiny_loader_next(loader_, &rows), TINY_OK) << tiny_last_error();
    return rows;
  }
  std::vector<float> batch(size_t index = 0) {
    tiny_tensor* t = nullptr;
    EXPECT_EQ(tiny_loader_tensor(loader_, index, &t), TINY_OK) << tiny_last_error();
    if (!t) return {};
    int64_t count = 0;
    EXPECT_EQ(tiny_tensor_numel(t, &count), TINY_OK);
    std::vector<float> values(static_cast<size_t>(count));
    EXPECT_EQ(tiny_tensor_read(t, values.data(), values.size() * sizeof(float)), TINY_OK);
    tiny_tensor_release(t);
    return values;
  }
  static bool says(const std::string& text) {
    return std::string(tiny_last_error()).find(text) != std::string::npos;
  }

  tiny_context* context_ = nullptr;
  tiny_loader* loader_ = nullptr;
  std::vector<tiny_tensor*> made_;
};

TEST_F(Loader, RowsOfViewsAreGatheredAsTheyAre) {
  tiny_tensor* turned = nullptr;
  const int64_t order[] = {2, 0, 1};
  ASSERT_EQ(tiny_permute(floats({2, 2, 3}), order, 3, &turned), TINY_OK);
  made_.push_back(turned);
  ASSERT_EQ(create({turned}, 2), TINY_OK) << tiny_last_error();
  EXPECT_EQ(next(), 2);
  EXPECT_EQ(batch(), (std::vector<float>{0, 3, 6, 9, 1, 4, 7, 10}));
  EXPECT_EQ(next(), 1);
  EXPECT_EQ(batch(), (std::vector<float>{2, 5, 8, 11}));
  EXPECT_EQ(next(), 0);
}

TEST_F(Loader, ABatchMayBeAssignedToAndOutlivesTheLoader) {
  ASSERT_EQ(create({floats({4, 1})}, 2), TINY_OK);
  EXPECT_EQ(next(), 2);
  tiny_tensor *t = nullptr, *again = nullptr;
  ASSERT_EQ(tiny_loader_tensor(loader_, 0, &t), TINY_OK);
  ASSERT_EQ(tiny_loader_tensor(loader_, 0, &again), TINY_OK);
  EXPECT_EQ(t, again);
  tiny_tensor_release(again);
  EXPECT_EQ(next(), 2);
  tiny_loader_release(loader_);
  loader_ = nullptr;
  EXPECT_EQ(tiny_assign(t, floats({2, 1})), TINY_OK) << tiny_last_error();
  float values[2] = {};
  EXPECT_EQ(tiny_tensor_read(t, values, sizeof values), TINY_OK);
  EXPECT_EQ(values[1], 1);
  tiny_tensor_release(t);
}

TEST_F(Loader, AnotherGoesOnWhereOneWas) {
  tiny_tensor* rows = floats({50, 2});
  ASSERT_EQ(create({rows}, 8, TINY_FLAG_SHUFFLE | TINY_FLAG_DROP_LAST), TINY_OK);
  int64_t count = 0, epoch = 0, place = 0;
  EXPECT_EQ(tiny_loader_batch_count(loader_, &count), TINY_OK);
  EXPECT_EQ(count, 6);
  while (next() > 0) {
  }
  next();
  EXPECT_EQ(tiny_loader_place(loader_, &epoch, &place), TINY_OK);
  EXPECT_EQ(epoch, 1);
  EXPECT_EQ(place, 1);
  next();
  const std::vector<float> wanted = batch();
  ASSERT_EQ(create({rows}, 8, TINY_FLAG_SHUFFLE | TINY_FLAG_DROP_LAST, 0), TINY_OK);
  EXPECT_EQ(tiny_loader_seek(loader_, epoch, place), TINY_OK);
  EXPECT_EQ(next(), 8);
  EXPECT_EQ(batch(), wanted);
}

TEST_F(Loader, MistakesAreNamed) {
  tiny_tensor *four = floats({4, 2}), *five = floats({5}), *number = nullptr;
  ASSERT_EQ(tiny_scalar_float(context_, 1, &number), TINY_OK);
  made_.push_back(number);
  EXPECT_EQ(create({four, five}, 2), TINY_ERROR_SHAPE);
  EXPECT_TRUE(says("arrays[1] has 5 rows, arrays[0] 4")) << tiny_last_error();
  EXPECT_EQ(create({number}, 2), TINY_ERROR_SHAPE);
  EXPECT_EQ(create({}, 2), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(create({four}, 0), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(create({four}, 2, TINY_FLAG_KEEPDIMS), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("TINY_FLAG_SHUFFLE (2048), TINY_FLAG_DROP_LAST (4096)")) << tiny_last_error();
  ASSERT_EQ(create({four}, 3, 0, 0), TINY_OK);
  tiny_tensor* none = nullptr;
  EXPECT_EQ(tiny_loader_tensor(loader_, 0, &none), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("there is no batch")) << tiny_last_error();
  EXPECT_EQ(tiny_loader_seek(loader_, 0, 3), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("an epoch has 2 batches")) << tiny_last_error();
  EXPECT_EQ(next(), 3);
  EXPECT_EQ(tiny_loader_tensor(loader_, 1, &none), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_assign(four, floats({4, 2})), TINY_OK);
  int64_t rows = 0;
  EXPECT_EQ(tiny_loader_next(loader_, &rows), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("tiny_realize")) << tiny_last_error();
  EXPECT_EQ(tiny_realize(&four, 1), TINY_OK);
  EXPECT_EQ(next(), 1);
}

TEST_F(Loader, AChildOfAForkIsTold) {
  ASSERT_EQ(create({floats({40, 2})}, 1), TINY_OK);
  next();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int64_t rows = 0;
    const bool told = tiny_loader_next(loader_, &rows) == TINY_ERROR_DEVICE_LOST;
    tiny_loader_release(loader_);
    _exit(told ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(next(), 1);
}

}  // namespace

// States through tiny.h: what an archive holds goes back into the tensors that it came from.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace {

class State : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tiny_context_create(nullptr, &context_), TINY_OK);
    path_ = folder_ / "state.safetensors";
    ASSERT_EQ(tiny_archive_create(context_, &state_), TINY_OK);
  }
  void TearDown() override {
    for (tiny_tensor* t : made_) tiny_tensor_release(t);
    tiny_archive_release(state_);
    tiny_context_release(context_);
  }
  tiny_tensor* floats(const std::vector<float>& values) {
    const auto count = static_cast<int64_t>(values.size());
    tiny_tensor* t = nullptr;
    EXPECT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, &count, 1, values.data(),
                                    values.size() * sizeof(float), &t),
              TINY_OK);
    made_.push_back(t);
    return t;
  }
  tiny_tensor* cast(const tiny_tensor* from, tiny_dtype dtype) {
    tiny_tensor* t = nullptr;
    EXPECT_EQ(tiny_cast(from, dtype, &t), TINY_OK);
    made_.push_back(t);
    return t;
  }
  static std::vector<float> read(const tiny_tensor* t) {
    int64_t count = 0;
    EXPECT_EQ(tiny_tensor_numel(t, &count), TINY_OK);
    std::vector<float> values(static_cast<size_t>(count));
    EXPECT_EQ(tiny_tensor_read(t, values.data(), values.size() * sizeof(float)), TINY_OK);
    return values;
  }
  void set(const char* name, const tiny_tensor* t) {
    EXPECT_EQ(tiny_archive_set(state_, name, t), TINY_OK) << tiny_last_error();
  }
  void save() { EXPECT_EQ(tiny_archive_save(state_, path_.c_str()), TINY_OK) << tiny_last_error(); }
  // Of the file.
  tiny_status put_back(tiny_flags flags = 0) {
    tiny_archive* file = nullptr;
    EXPECT_EQ(tiny_archive_load(context_, path_.c_str(), &file), TINY_OK) << tiny_last_error();
    const tiny_status status = tiny_archive_assign(state_, file, flags);
    tiny_archive_release(file);
    return status;
  }
  static bool says(const std::string& text) {
    return std::string(tiny_last_error()).find(text) != std::string::npos;
  }

  tiny_context* context_ = nullptr;
  tiny_archive* state_ = nullptr;
  std::vector<tiny_tensor*> made_;
  tiny::testing::TemporaryFolder folder_;
  std::string path_;
};

TEST_F(State, WhatWasSavedIsPutBackIntoTheSameTensors) {
  tiny_tensor *weight = floats({1, 2, 3}), *bias = floats({4});
  set("fc.weight", weight);
  set("fc.bias", bias);
  save();
  EXPECT_EQ(tiny_assign(weight, floats({0, 0, 0})), TINY_OK);
  EXPECT_EQ(tiny_assign(bias, floats({0})), TINY_OK);
  EXPECT_EQ(put_back(), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(weight), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(read(bias), std::vector<float>{4});
}

TEST_F(State, TheFileMayChangeOnceItIsPutBack) {
  std::vector<float> many(100000);
  std::iota(many.begin(), many.end(), 0.0F);
  tiny_tensor* weight = floats(many);
  set("w", weight);
  save();
  EXPECT_EQ(put_back(), TINY_OK);
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(read(weight), many);
}

TEST_F(State, OneMessageListsAllThatDoesNotFit) {
  set("a", floats({1}));
  set("b", floats({1, 2}));
  set("c", floats({1, 2, 3}));
  set("d", floats({5}));
  save();
  EXPECT_EQ(tiny_archive_remove(state_, "a"), TINY_OK);
  tiny_tensor *b = floats({7, 8, 9}), *d = floats({0});
  set("b", b);
  set("c", cast(floats({0, 0, 0}), TINY_INT32));
  set("d", d);
  set("e", floats({1}));
  EXPECT_EQ(put_back(), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("tiny_archive_assign") && says("source lacks \"e\"") &&
              says("target lacks \"a\"") &&
              says("\"b\" is float32 [3] in target and float32 [2] in source") &&
              says("\"c\" is int32 [3] in target and float32 [3] in source"))
      << tiny_last_error();
  EXPECT_EQ(read(d), std::vector<float>{0});  // nothing was assigned
  EXPECT_EQ(put_back(TINY_FLAG_PARTIAL), TINY_ERROR_SHAPE);
  EXPECT_FALSE(says("lacks")) << tiny_last_error();
  EXPECT_EQ(tiny_archive_remove(state_, "b"), TINY_OK);
  EXPECT_EQ(tiny_archive_remove(state_, "c"), TINY_OK);
  EXPECT_EQ(put_back(TINY_FLAG_PARTIAL), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(d), std::vector<float>{5});
  EXPECT_EQ(put_back(TINY_FLAG_KEEPDIMS), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("TINY_FLAG_PARTIAL (1024)")) << tiny_last_error();
}

TEST_F(State, FloatsAreConvertedAndOfOddPlacesReadToo) {
  // One bool before the floats would leave them without alignment in a file that is not ours.
  const std::string header = R"({"b":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},)"
                             R"("w":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})";
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  const float values[] = {1.5F, -2};
  file += header + '\1' + std::string(reinterpret_cast<const char*>(values), sizeof values);
  FILE* out = fopen(path_.c_str(), "wb");
  ASSERT_EQ(fwrite(file.data(), 1, file.size(), out), file.size());
  fclose(out);
  tiny_tensor* half = cast(floats({0, 0}), TINY_BFLOAT16);
  ASSERT_EQ(tiny_realize(&half, 1), TINY_OK);
  set("w", half);
  EXPECT_EQ(put_back(TINY_FLAG_PARTIAL), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(cast(half, TINY_FLOAT32)), (std::vector<float>{1.5F, -2}));
}

TEST_F(State, AStateInMemoryIsPutBackAsItWas) {
  tiny_tensor *a = floats({1}), *b = floats({2});
  tiny_archive* crossed = nullptr;
  ASSERT_EQ(tiny_archive_create(context_, &crossed), TINY_OK);
  set("a", a);
  set("b", b);
  EXPECT_EQ(tiny_archive_set(crossed, "a", b), TINY_OK);
  EXPECT_EQ(tiny_archive_set(crossed, "b", a), TINY_OK);
  EXPECT_EQ(tiny_archive_assign(state_, crossed, 0), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(a), std::vector<float>{2});
  EXPECT_EQ(read(b), std::vector<float>{1});
  tiny_archive_release(crossed);
}

TEST_F(State, NamesGoAndComeBack) {
  set("x", floats({1}));
  set("y", floats({2}));
  set("z", floats({3}));
  const char* lent = nullptr;
  EXPECT_EQ(tiny_archive_name(state_, 1, &lent), TINY_OK);
  EXPECT_EQ(tiny_archive_remove(state_, "y"), TINY_OK);
  EXPECT_STREQ(lent, "y");
  EXPECT_EQ(tiny_archive_remove(state_, "y"), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("no tensor is named \"y\"")) << tiny_last_error();
  const char* name = nullptr;
  EXPECT_EQ(tiny_archive_name(state_, 1, &name), TINY_OK);
  EXPECT_STREQ(name, "z");
  set("y", floats({4}));
  EXPECT_EQ(tiny_archive_name(state_, 2, &name), TINY_OK);
  EXPECT_EQ(name, lent);
  size_t count = 0;
  EXPECT_EQ(tiny_archive_count(state_, &count), TINY_OK);
  EXPECT_EQ(count, 3u);
}

TEST_F(State, TextsStayWhereTheyAre) {
  const char* text = nullptr;
  EXPECT_EQ(tiny_archive_metadata(state_, "step", &text), TINY_OK);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(tiny_archive_set_metadata(state_, "step", "7"), TINY_OK);
  EXPECT_EQ(tiny_archive_metadata(state_, "step", &text), TINY_OK);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(tiny_archive_set_metadata(state_, std::to_string(i).c_str(), ""), TINY_OK);
  EXPECT_STREQ(text, "7");
}

}  // namespace

// Files of tensors through tiny.h: by name, written from what tensors hold, refused with a message.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace {

namespace fs = std::filesystem;

class Archive : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tiny_context_create(nullptr, &context_), TINY_OK);
    path_ = folder_ / "w.safetensors";
  }
  void TearDown() override { tiny_context_release(context_); }
  tiny_tensor* floats(const std::vector<float>& values) {
    const auto count = static_cast<int64_t>(values.size());
    tiny_tensor* t = nullptr;
    EXPECT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, &count, 1, values.data(),
                                    values.size() * sizeof(float), &t),
              TINY_OK);
    return t;
  }
  // The elements of the tensor, which is released.
  static std::vector<float> read(tiny_tensor* t) {
    int64_t count = 0;
    EXPECT_EQ(tiny_tensor_numel(t, &count), TINY_OK);
    std::vector<float> values(static_cast<size_t>(count));
    EXPECT_EQ(tiny_tensor_read(t, values.data(), values.size() * sizeof(float)), TINY_OK);
    tiny_tensor_release(t);
    return values;
  }
  static std::vector<float> read(const tiny_archive* archive, const char* name) {
    tiny_tensor* t = nullptr;
    EXPECT_EQ(tiny_archive_get(archive, name, &t), TINY_OK) << tiny_last_error();
    return t ? read(t) : std::vector<float>();
  }
  tiny_archive* load() {
    tiny_archive* archive = nullptr;
    EXPECT_EQ(tiny_archive_load(context_, path_.c_str(), &archive), TINY_OK) << tiny_last_error();
    return archive;
  }
  // A file of "a" = 1, 2 and "b" = 3.
  void write_two() {
    tiny_archive* archive = nullptr;
    ASSERT_EQ(tiny_archive_create(context_, &archive), TINY_OK);
    tiny_tensor *a = floats({1, 2}), *b = floats({3});
    EXPECT_EQ(tiny_archive_set(archive, "a", a), TINY_OK) << tiny_last_error();
    EXPECT_EQ(tiny_archive_set(archive, "b", b), TINY_OK);
    EXPECT_EQ(tiny_archive_set_metadata(archive, "format", "x"), TINY_OK);
    EXPECT_EQ(tiny_archive_set_metadata(archive, "format", "pt"), TINY_OK);
    tiny_tensor_release(a);
    tiny_tensor_release(b);
    EXPECT_EQ(tiny_archive_save(archive, path_.c_str()), TINY_OK) << tiny_last_error();
    tiny_archive_release(archive);
  }
  static bool says(const std::string& text) {
    return std::string(tiny_last_error()).find(text) != std::string::npos;
  }

  tiny_context* context_ = nullptr;
  tiny::testing::TemporaryFolder folder_;
  std::string path_;
};

TEST_F(Archive, TensorsComeBackByNameAndInOrder) {
  write_two();
  tiny_archive* archive = load();
  size_t count = 0;
  EXPECT_EQ(tiny_archive_count(archive, &count), TINY_OK);
  ASSERT_EQ(count, 2u);
  const char* name = nullptr;
  EXPECT_EQ(tiny_archive_name(archive, 1, &name), TINY_OK);
  EXPECT_STREQ(name, "b");
  EXPECT_EQ(read(archive, "b"), std::vector<float>{3});
  EXPECT_EQ(read(archive, "a"), (std::vector<float>{1, 2}));
  tiny_report* info = nullptr;
  EXPECT_EQ(tiny_archive_info(archive, &info), TINY_OK);
  EXPECT_STREQ(
      tiny_report_text(info),
      R"({"tensors":[{"name":"a","dtype":"float32","shape":[2],"bytes":8},)"
      R"({"name":"b","dtype":"float32","shape":[1],"bytes":4}],"metadata":{"format":"pt"}})");
  tiny_report_release(info);
  EXPECT_EQ(tiny_archive_get(archive, "c", nullptr), TINY_ERROR_INVALID_ARGUMENT);
  tiny_tensor* none = nullptr;
  EXPECT_EQ(tiny_archive_get(archive, "c", &none), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("\"c\"; known: \"a\", \"b\"")) << tiny_last_error();
  EXPECT_EQ(tiny_archive_name(archive, 2, &name), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(name, nullptr);
  tiny_archive_release(archive);
}

TEST_F(Archive, AFileMayBeReplacedWhileItsTensorsAreUsed) {
  write_two();
  tiny_archive* archive = load();
  tiny_tensor* twice = nullptr;
  tiny_tensor* b = nullptr;
  ASSERT_EQ(tiny_archive_get(archive, "b", &b), TINY_OK);
  ASSERT_EQ(tiny_binary(TINY_ADD, b, b, &twice), TINY_OK);
  EXPECT_EQ(tiny_archive_set(archive, "b", twice), TINY_OK);  // in the other's place
  EXPECT_EQ(tiny_archive_set(archive, "0", twice), TINY_OK);  // one more
  EXPECT_EQ(tiny_assign(twice, b), TINY_OK);                  // before it is written
  EXPECT_EQ(tiny_archive_save(archive, path_.c_str()), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(archive, "a"), (std::vector<float>{1, 2}));  // of the old file
  tiny_tensor_release(b);
  tiny_tensor_release(twice);
  tiny_archive* again = load();
  EXPECT_EQ(read(again, "a"), (std::vector<float>{1, 2}));
  EXPECT_EQ(read(again, "b"), std::vector<float>{3});
  EXPECT_EQ(read(again, "0"), std::vector<float>{3});
  tiny_archive_retain(again);
  tiny_archive_release(again);
  tiny_archive_release(archive);
  std::thread([&] { tiny_archive_release(again); }).join();
}

TEST_F(Archive, OneTensorNeedsNoName) {
  for (const char* ending : {"x.safetensors", "x.pb", "x.npy"}) {
    const std::string file = folder_ / ending;
    tiny_tensor* x = floats({5, 6});
    ASSERT_EQ(tiny_tensor_save(x, file.c_str(), "weight"), TINY_OK) << tiny_last_error();
    tiny_tensor_release(x);
    ASSERT_EQ(tiny_tensor_load(context_, file.c_str(), &x), TINY_OK) << tiny_last_error();
    EXPECT_EQ(read(x), (std::vector<float>{5, 6}));
    tiny_archive* archive = nullptr;
    ASSERT_EQ(tiny_archive_load(context_, file.c_str(), &archive), TINY_OK) << tiny_last_error();
    EXPECT_EQ(read(archive, file.ends_with(".npy") ? "" : "weight"), (std::vector<float>{5, 6}));
    EXPECT_EQ(tiny_archive_save(archive, file.c_str()), TINY_OK) << tiny_last_error();
    tiny_archive_release(archive);
  }
  write_two();
  tiny_tensor* x = nullptr;
  EXPECT_EQ(tiny_tensor_load(context_, path_.c_str(), &x), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("has 2 tensors, not one")) << tiny_last_error();
  EXPECT_TRUE(says("\"a\", \"b\"")) << tiny_last_error();
}

TEST_F(Archive, MistakesAreNamed) {
  tiny_archive* archive = nullptr;
  EXPECT_EQ(tiny_archive_create(nullptr, &archive), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_archive_load(context_, nullptr, &archive), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_archive_load(context_, "x.txt", &archive), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says(".safetensors")) << tiny_last_error();
  EXPECT_EQ(tiny_archive_load(context_, path_.c_str(), &archive), TINY_ERROR_IO);
  EXPECT_EQ(archive, nullptr);
  std::ofstream(path_) << "not such a file at all";
  EXPECT_EQ(tiny_archive_load(context_, path_.c_str(), &archive), TINY_ERROR_INVALID_MODEL);
  EXPECT_TRUE(says(path_)) << tiny_last_error();
  EXPECT_NE(std::string(tiny_last_error_json()).find("\"file\":\"" + path_), std::string::npos);
  ASSERT_EQ(tiny_archive_create(context_, &archive), TINY_OK);
  tiny_tensor* x = floats({1});
  EXPECT_EQ(tiny_archive_set(archive, nullptr, x), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_archive_set(archive, "x", nullptr), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_archive_set(nullptr, "x", x), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_archive_set_metadata(archive, "x", nullptr), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_archive_save(archive, nullptr), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_archive_save(archive, (folder_ / "x.npy").c_str()), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_archive_set(archive, "\xFF", x), TINY_OK);
  EXPECT_EQ(tiny_archive_save(archive, path_.c_str()), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("not UTF-8")) << tiny_last_error();
  tiny_context* other = nullptr;
  ASSERT_EQ(tiny_context_create(nullptr, &other), TINY_OK);
  tiny_archive* foreign = nullptr;
  ASSERT_EQ(tiny_archive_create(other, &foreign), TINY_OK);
  tiny_context_release(other);
  EXPECT_EQ(tiny_archive_set(foreign, "x", x), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("another context")) << tiny_last_error();
  tiny_archive_release(foreign);
  tiny_archive_release(archive);
  tiny_archive_release(nullptr);
  tiny_tensor_release(x);
}

TEST_F(Archive, ADtypeThatTheEngineLacksIsUnsupportedOnlyWhenItIsAskedFor) {
  const std::string header = R"({"h":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[4,6]},)"
                             R"("f":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const uint64_t length = header.size();
  std::ofstream(path_).write(reinterpret_cast<const char*>(&length), 8)
      << header << std::string(6, '\0');
  tiny_archive* archive = load();
  EXPECT_EQ(read(archive, "f"), std::vector<float>{0});
  tiny_tensor* h = nullptr;
  EXPECT_EQ(tiny_archive_get(archive, "h", &h), TINY_ERROR_UNSUPPORTED);
  EXPECT_TRUE(says("\"h\"") && says("F8_E8M0")) << tiny_last_error();
  tiny_report* info = nullptr;
  EXPECT_EQ(tiny_archive_info(archive, &info), TINY_OK);
  EXPECT_NE(std::string(tiny_report_text(info)).find(R"("dtype":"F8_E8M0","shape":[2],"bytes":2)"),
            std::string::npos);
  tiny_report_release(info);
  EXPECT_EQ(tiny_archive_save(archive, path_.c_str()), TINY_ERROR_UNSUPPORTED);
  tiny_archive_release(archive);
}

}  // namespace

// What TINY_DEBUG asks for, told to the caller's function instead of stderr.
#include <gtest/gtest.h>

#include <string>

#include "tiny.h"

namespace {

void append(void* user, const char* text) {
  *static_cast<std::string*>(user) += text;
}

// Computes something in a context of these settings, told to `log` if there is one; what stderr
// got.
std::string work(int64_t debug, std::string* log, const char* cache_dir = nullptr) {
  testing::internal::CaptureStderr();
  tiny_options* options = nullptr;
  tiny_context* context = nullptr;
  tiny_tensor* tensor = nullptr;
  tiny_tensor* sum = nullptr;
  EXPECT_EQ(tiny_options_create(&options), TINY_OK);
  EXPECT_EQ(tiny_options_set_int(options, "debug", debug), TINY_OK);
  if (cache_dir) {
    EXPECT_EQ(tiny_options_set_int(options, "spec", 0), TINY_OK);
    EXPECT_EQ(tiny_options_set_string(options, "cache_dir", cache_dir), TINY_OK);
  }
  EXPECT_EQ(tiny_options_set_log(options, append, nullptr), TINY_OK);
  EXPECT_EQ(tiny_options_set_log(options, log ? append : nullptr, log), TINY_OK);
  EXPECT_EQ(tiny_context_create(options, &context), TINY_OK);
  tiny_options_release(options);
  EXPECT_EQ(tiny_arange(context, TINY_FLOAT32, 10, &tensor), TINY_OK);
  EXPECT_EQ(tiny_reduce(TINY_SUM, tensor, nullptr, 0, 0, &sum), TINY_OK);
  float value = 0;
  EXPECT_EQ(tiny_tensor_read(sum, &value, sizeof value), TINY_OK) << tiny_last_error();
  EXPECT_EQ(value, 45);
  tiny_tensor_release(tensor);
  tiny_tensor_release(sum);
  tiny_context_release(context);
  return testing::internal::GetCapturedStderr();
}

TEST(Log, GetsAllThatStderrWouldHave) {
  std::string log;
  EXPECT_EQ(work(5, &log), "");
  const std::string other = work(5, nullptr);
  EXPECT_GT(log.size(), 500u);
  EXPECT_EQ(log.back(), '\n');
  // Times differ; the code does not.
  const size_t at = other.find("\nvoid ");
  ASSERT_NE(at, std::string::npos) << other;
  const std::string code = other.substr(at, other.find("\n}", at) - at);
  EXPECT_NE(log.find(code), std::string::npos) << code << "\n is not in \n" << log;
}

TEST(Log, GetsNothingThatWasNotAskedFor) {
  std::string log;
  EXPECT_EQ(work(0, &log), "");
  EXPECT_EQ(log, "");
}

TEST(Log, GetsWhatTheCacheHasToSay) {
  std::string log;
  EXPECT_EQ(work(1, &log, "/dev/null/none"), "");
  EXPECT_NE(log.find("no disk cache: /dev/null/none"), std::string::npos) << log;
}

TEST(Log, OfNoOptionsIsAnError) {
  EXPECT_EQ(tiny_options_set_log(nullptr, append, nullptr), TINY_ERROR_INVALID_ARGUMENT);
}

}  // namespace

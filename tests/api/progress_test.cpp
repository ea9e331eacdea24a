// Long work tells how far it is, and ends when it is told to.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tiny.h"

namespace {

struct Told {
  std::string what;
  int64_t done;
  int64_t total;
  std::thread::id thread;
};

struct Listener {
  std::vector<Told> told;
  int64_t calls_left = INT64_MAX;  // the call after them ends the work

  static int32_t tell(void* user, const char* what, int64_t done, int64_t total) {
    auto& self = *static_cast<Listener*>(user);
    self.told.push_back({what, done, total, std::this_thread::get_id()});
    return self.calls_left-- > 0 ? 0 : 7;
  }
  int64_t count(const std::string& verb) const {
    int64_t n = 0;
    for (const Told& t : told) n += t.what.starts_with(verb + " ") ? 1 : 0;
    return n;
  }
};

class Progress : public ::testing::Test {
 protected:
  void open(const std::vector<std::pair<const char*, int64_t>>& settings) {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", "cpu"), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "cache", 0), TINY_OK);
    for (const auto& [key, value] : settings)
      ASSERT_EQ(tiny_options_set_int(options, key, value), TINY_OK);
    ASSERT_EQ(tiny_options_set_progress(options, Listener::tell, &listener_), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
  }
  void TearDown() override { tiny_context_release(context_); }

  // The sum of x x, in two kernels or more: a product and its sum.
  tiny_status compile(int64_t side) {
    const int64_t dims[] = {side, side};
    tiny_tensor *x = nullptr, *product = nullptr, *total = nullptr;
    EXPECT_EQ(tiny_input(context_, TINY_FLOAT32, dims, 2, &x), TINY_OK);
    EXPECT_EQ(tiny_matmul(x, x, &product), TINY_OK);
    EXPECT_EQ(tiny_softmax(product, 0, &total), TINY_OK);
    tiny_program* program = nullptr;
    tiny_tensor* outputs[] = {product, total};
    const tiny_status status = tiny_program_compile(&x, 1, outputs, 2, &program);
    tiny_program_release(program);
    for (tiny_tensor* t : {x, product, total}) tiny_tensor_release(t);
    return status;
  }

  Listener listener_;
  tiny_context* context_ = nullptr;
};

TEST_F(Progress, KernelsAreCounted) {
  open({{"threads", 1}});
  ASSERT_EQ(compile(24), TINY_OK) << tiny_last_error();
  ASSERT_GE(listener_.told.size(), 3u);
  EXPECT_EQ(listener_.count("compile"), static_cast<int64_t>(listener_.told.size()));
  for (size_t i = 0; i < listener_.told.size(); ++i) {
    EXPECT_EQ(listener_.told[i].done, static_cast<int64_t>(i));
    EXPECT_EQ(listener_.told[i].total, static_cast<int64_t>(listener_.told.size()) - 1);
  }
  listener_.told.clear();
  ASSERT_EQ(compile(24), TINY_OK);
  EXPECT_TRUE(listener_.told.empty()) << "what is there is not compiled";
}

TEST_F(Progress, OtherThreadsCompileButDoNotTell) {
  open({{"threads", 4}});
  ASSERT_EQ(compile(24), TINY_OK) << tiny_last_error();
  ASSERT_GE(listener_.told.size(), 2u);
  EXPECT_EQ(listener_.told.front().done, 0);
  EXPECT_EQ(listener_.told.back().done, listener_.told.back().total);
  for (size_t i = 0; i < listener_.told.size(); ++i) {
    EXPECT_EQ(listener_.told[i].thread, std::this_thread::get_id());
    if (i > 0) {
      EXPECT_GT(listener_.told[i].done, listener_.told[i - 1].done);
    }
  }
}

TEST_F(Progress, ItEndsTheCallAndTheNextOneWorks) {
  open({});
  listener_.calls_left = 1;
  EXPECT_EQ(compile(24), TINY_ERROR_CANCELLED);
  EXPECT_EQ(listener_.told.size(), 2u);
  EXPECT_NE(std::string(tiny_last_error()).find(listener_.told.back().what), std::string::npos)
      << tiny_last_error();
  listener_.calls_left = INT64_MAX;
  EXPECT_EQ(compile(24), TINY_OK) << tiny_last_error();
}

TEST_F(Progress, ASearchTellsOfItsCandidatesAndCanBeEnded) {
  open({{"beam", 1}, {"threads", 1}});
  // The first is the kernel itself; then it is searched for.
  listener_.calls_left = 4;
  EXPECT_EQ(compile(16), TINY_ERROR_CANCELLED);
  EXPECT_GE(listener_.count("search"), 2);
  const Told& last = listener_.told.back();
  EXPECT_LT(last.done, last.total);
}

TEST_F(Progress, OfNoOptionsIsAnErrorAndNullIsNobody) {
  EXPECT_EQ(tiny_options_set_progress(nullptr, Listener::tell, &listener_),
            TINY_ERROR_INVALID_ARGUMENT);
  tiny_options* options = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  ASSERT_EQ(tiny_options_set_int(options, "cache", 0), TINY_OK);
  ASSERT_EQ(tiny_options_set_progress(options, Listener::tell, &listener_), TINY_OK);
  ASSERT_EQ(tiny_options_set_progress(options, nullptr, nullptr), TINY_OK);
  ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK);
  tiny_options_release(options);
  EXPECT_EQ(compile(8), TINY_OK) << tiny_last_error();
  EXPECT_TRUE(listener_.told.empty());
}

}  // namespace

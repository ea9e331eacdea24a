// Calls that copy, read, write or compile for long look often whether they are to end, and end as
// they are told to.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/onnx/model_writer.h"
#include "tests/support/api_values.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace tiny {
namespace {

namespace w = onnx::testing;
using testing::Dims;
using testing::error_has;

// Between two looks lies no more work than this: of the thread that called, whatever else the
// machine does.
constexpr double kSoon = 0.020;
constexpr int kTries = 5;
constexpr int kTriesMin = 3;  // of what is counted

double work_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The caller's function: how much was done between two times that it was asked.
struct Asked {
  double last = 0;
  double longest = 0;
  int calls = 0;
  int end_at = 0;  // the call that says so; 0: none

  static int32_t ask(void* user) {
    auto& self = *static_cast<Asked*>(user);
    self.look();
    return ++self.calls == self.end_at ? 1 : 0;
  }
  void begin(int end) { *this = {work_seconds(), 0, 0, end}; }
  void look() {
    const double now = work_seconds();
    longest = std::max(longest, now - last);
    last = work_seconds();
  }
};

class StopCalls : public ::testing::Test, protected testing::ApiValues {
 protected:
  void SetUp() override {
    if (testing::kWatchesMemory) GTEST_SKIP() << "a sanitizer's work is not the library's";
  }
  void TearDown() override { close(); }
  void open(int64_t time_limit = 0) {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    for (const char* off : {"cache", "spec", "map_files"})
      ASSERT_EQ(tiny_options_set_int(options, off, 0), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "threads", 1), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "time_limit", time_limit), TINY_OK);
    ASSERT_EQ(tiny_options_set_poll(options, Asked::ask, &asked_), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
  }
  // The call asks often, and ends when it is told to.
  void expect_stops(const char* what, const std::function<tiny_status()>& call) {
    double least = 1e9;
    for (int i = 0; i < kTries && least > kSoon; ++i) {
      asked_.begin(0);
      ASSERT_EQ(call(), TINY_OK) << what << ": " << tiny_last_error();
      asked_.look();
      least = std::min(least, asked_.longest);
    }
    EXPECT_LT(least, kSoon) << what;
    if (asked_.calls < 4) return;  // it may be over before anybody is asked again
    asked_.begin(1);
    EXPECT_EQ(call(), TINY_ERROR_CANCELLED) << what;
    EXPECT_TRUE(error_has("poll")) << tiny_last_error();
    EXPECT_EQ(asked_.calls, 1) << what;
    asked_.begin(0);
    EXPECT_EQ(call(), TINY_OK) << what << ", after it was ended: " << tiny_last_error();
  }
  // It ends by a token, which is set before it began, and goes on when that is clear.
  void expect_cancelled(const char* what, const std::function<tiny_status()>& call) {
    tiny_cancel* cancel = nullptr;
    ASSERT_EQ(tiny_cancel_create(&cancel), TINY_OK);
    ASSERT_EQ(tiny_context_set_cancel(context_, cancel), TINY_OK);
    tiny_cancel_set(cancel);
    EXPECT_EQ(call(), TINY_ERROR_CANCELLED) << what;
    tiny_cancel_clear(cancel);
    EXPECT_EQ(call(), TINY_OK) << what << ": " << tiny_last_error();
    tiny_context_set_cancel(context_, nullptr);
    tiny_cancel_release(cancel);
  }
  tiny_tensor* computed(const Dims& dims) {
    tiny_tensor* t = nullptr;
    EXPECT_EQ(tiny_full(context_, TINY_FLOAT32, dims.data(), dims.size(), 0.5, &t), TINY_OK);
    tiny_tensor *all = keep(t), *stored = nullptr;
    EXPECT_EQ(tiny_contiguous(all, &stored), TINY_OK);
    EXPECT_EQ(tiny_realize(&stored, 1), TINY_OK) << tiny_last_error();
    return keep(stored);
  }

  Asked asked_;
  testing::TemporaryFolder folder_;
};

constexpr int64_t kRows = 4000;
constexpr int64_t kColumns = 6000;  // 96 MB
constexpr size_t kBytes = kRows * kColumns * sizeof(float);

TEST_F(StopCalls, Reading) {
  open();
  tiny_tensor *x = computed({kRows, kColumns}), *turned = nullptr;
  const int64_t axes[] = {1, 0};
  ASSERT_EQ(tiny_permute(x, axes, 2, &turned), TINY_OK);
  keep(turned);
  std::vector<float> data(kRows * kColumns);
  for (const tiny_tensor* t : {x, turned}) {
    const auto read = [&] { return tiny_tensor_read(t, data.data(), kBytes); };
    expect_stops(t == x ? "tiny_tensor_read" : "tiny_tensor_read of a view", read);
    expect_cancelled("tiny_tensor_read", read);
  }
}

TEST_F(StopCalls, TensorsOfData) {
  open();
  const int64_t dims[] = {kRows, kColumns};
  const std::vector<float> data(kRows * kColumns);
  const auto make = [&] {
    tiny_tensor* t = nullptr;
    const tiny_status status =
        tiny_tensor_from_data(context_, TINY_FLOAT32, dims, 2, data.data(), kBytes, &t);
    tiny_tensor_release(t);
    return status;
  };
  expect_stops("tiny_tensor_from_data", make);
  expect_cancelled("tiny_tensor_from_data", make);
}

TEST_F(StopCalls, Files) {
  open();
  tiny_tensor* x = computed({kRows, kColumns});
  for (const char* name : {"x.npy", "x.pb", "x.safetensors"}) {
    const std::string path = folder_ / name;
    const auto save = [&] { return tiny_tensor_save(x, path.c_str(), "x"); };
    expect_stops(name, save);
    expect_cancelled(name, save);
    const auto load = [&] {
      tiny_tensor* t = nullptr;
      const tiny_status status = tiny_tensor_load(context_, path.c_str(), &t);
      tiny_tensor_release(t);
      return status;
    };
    expect_stops(name, load);
    expect_cancelled(name, load);
  }
}

TEST_F(StopCalls, Archives) {
  open();
  tiny_tensor* x = computed({kRows, kColumns});
  const std::string path = folder_ / "two.safetensors";
  tiny_archive* archive = nullptr;
  ASSERT_EQ(tiny_archive_create(context_, &archive), TINY_OK);
  ASSERT_EQ(tiny_archive_set(archive, "x", x), TINY_OK);
  const auto save = [&] { return tiny_archive_save(archive, path.c_str()); };
  expect_stops("tiny_archive_save", save);
  expect_cancelled("tiny_archive_save", save);
  tiny_archive_release(archive);
  const auto load = [&] {
    const tiny_status status = tiny_archive_load(context_, path.c_str(), &archive);
    tiny_archive_release(archive);
    return status;
  };
  expect_stops("tiny_archive_load", load);
  expect_cancelled("tiny_archive_load", load);
  ASSERT_EQ(tiny_archive_load(context_, path.c_str(), &archive), TINY_OK);
  const auto get = [&] {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_archive_get(archive, "x", &t);
    tiny_tensor_release(t);
    return status;
  };
  expect_stops("tiny_archive_get", get);
  expect_cancelled("tiny_archive_get", get);
  tiny_archive_release(archive);
}

TEST_F(StopCalls, ModelsOfMemory) {
  open();
  const std::string bytes =
      w::model(
          w::typed_graph(
              {w::node("Add", {"x", "b"}, {"y"})}, {w::floats("x", {w::dim(1)})}, {"y"},
              {w::float_tensor("b", {kRows * kColumns}, std::vector<float>(kRows * kColumns, 1))}))
          .bytes();
  const auto load = [&] {
    tiny_model* model = nullptr;
    const tiny_status status =
        tiny_model_load_memory(context_, bytes.data(), bytes.size(), nullptr, &model);
    tiny_model_release(model);
    return status;
  };
  expect_stops("tiny_model_load_memory", load);
  expect_cancelled("tiny_model_load_memory", load);
}

// One kernel of many ops: `x` goes through a chain of steps that are all different and long.
TEST_F(StopCalls, CompilingALongKernel) {
  open();
  const auto compile = [&] {
    const int64_t dims[] = {64, 100};
    std::vector<tiny_tensor*> made(1);
    EXPECT_EQ(tiny_input(context_, TINY_FLOAT32, dims, 2, made.data()), TINY_OK);
    const auto add = [&](tiny_status status, tiny_tensor* t) {
      EXPECT_EQ(status, TINY_OK) << tiny_last_error();
      made.push_back(t);
    };
    for (int i = 0; i < 700; ++i) {
      tiny_tensor *x = made.back(), *number = nullptr, *next = nullptr;
      tiny_status status = tiny_scalar_float(context_, 0.5 + i, &number);
      add(status, number);
      status = tiny_binary(TINY_POW, x, number, &next);
      add(status, next);
      x = next;
      status = tiny_unary(TINY_SIN, x, &next);
      add(status, next);
    }
    tiny_program* program = nullptr;
    const tiny_status status = tiny_program_compile(made.data(), 1, &made.back(), 1, &program);
    for (tiny_tensor* t : made) tiny_tensor_release(t);
    tiny_program_release(program);
    return status;
  };
  // A context knows what it has compiled.  Others on the machine make it take longer, and ask more.
  double least = 1e9;
  int calls = INT_MAX;
  for (int i = 0; i < kTries && (least > kSoon || i < kTriesMin); ++i) {
    close();
    open();
    asked_.begin(0);
    ASSERT_EQ(compile(), TINY_OK) << tiny_last_error();
    asked_.look();
    least = std::min(least, asked_.longest);
    calls = std::min(calls, asked_.calls);
  }
  EXPECT_LT(least, kSoon);
  EXPECT_GT(calls, 3);
  for (int end : {1, calls / 2, calls * 3 / 4}) {
    close();
    open();
    asked_.begin(end);
    EXPECT_EQ(compile(), TINY_ERROR_CANCELLED);
    EXPECT_EQ(asked_.calls, end);
  }
  const int64_t limit = 50;  // milliseconds
  close();
  open(limit);
  const double start = work_seconds();
  EXPECT_EQ(compile(), TINY_ERROR_LIMIT);
  EXPECT_LT(work_seconds() - start, 1e-3 * static_cast<double>(limit) + kSoon);
}

}  // namespace
}  // namespace tiny

// What takes long ends soon after it is told to: by a token, by a limit of time, by the caller's
// function; in the middle of kernels, on every device that computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tiny.h"

namespace {

using Clock = std::chrono::steady_clock;

// What a call may take after it was told to end, but for the time in which others had its core; one
// of some tries, since what waits for what is not known.  No try takes longer than the second.
constexpr auto kSoon = std::chrono::milliseconds(20);
constexpr auto kLate = std::chrono::milliseconds(2000);
constexpr int kTries = 12;
// When it is told to: in the middle of the kernel.
constexpr auto kBefore = std::chrono::milliseconds(60);
// How often the caller's function is asked until then, at the least.
constexpr int64_t kCallsMin = 4;

// For how long each thread of the process has stood ready without a core so far: nanoseconds, the
// second number of Linux's schedstat; nothing where there is none.
std::map<std::string, int64_t> waits_of_threads() {
  std::map<std::string, int64_t> waits;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", none)) {
    std::ifstream file(task.path() / "schedstat");
    int64_t ran = 0, waited = 0;
    if (file >> ran >> waited) waits[task.path().filename()] = waited;
  }
  return waits;
}

// When something is told to end: at `when`, or by `tell`, which is called then.
class Telling {
 public:
  explicit Telling(Clock::time_point when, const std::function<void()>& tell = {}) : told_(when) {
    thread_ = std::thread([this, when, tell] {
      std::this_thread::sleep_until(when);
      if (tell) told_ = Clock::now();
      waits_ = waits_of_threads();
      if (tell) tell();
    });
  }
  // How much later it is now, less what the thread that waited longest for a core has waited since.
  Clock::duration late() {
    const auto waits = waits_of_threads();
    const auto now = Clock::now();
    thread_.join();
    int64_t longest = 0;
    for (const auto& [thread, before] : waits_)
      if (const auto at = waits.find(thread); at != waits.end())
        longest = std::max(longest, at->second - before);
    return now - told_ - std::chrono::nanoseconds(longest);
  }

 private:
  Clock::time_point told_;
  std::map<std::string, int64_t> waits_;
  std::thread thread_;
};

struct Place {
  const char* device;
  int64_t threads;
  int64_t limit;  // milliseconds, enough for compiling; the sum takes longer
};
std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.device << "_" << place.threads;
}

class Stop : public ::testing::TestWithParam<Place> {
 protected:
  void open(int64_t time_limit = 0, int32_t (*poll)(void*) = nullptr, void* user = nullptr) {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", GetParam().device), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "threads", GetParam().threads), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "time_limit", time_limit), TINY_OK);
    ASSERT_EQ(tiny_options_set_poll(options, poll, user), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
  }
  void close() {
    for (tiny_tensor* t : tensors_) tiny_tensor_release(t);
    tensors_.clear();
    tiny_context_release(context_);
    context_ = nullptr;
  }
  void TearDown() override { close(); }

  tiny_tensor* keep(tiny_status status, tiny_tensor* tensor) {
    EXPECT_EQ(status, TINY_OK) << tiny_last_error();
    tensors_.push_back(tensor);
    return tensor;
  }
  tiny_tensor* full(const std::vector<int64_t>& dims) {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_full(context_, TINY_FLOAT32, dims.data(), dims.size(), 0.5, &t);
    return keep(status, t);
  }
  tiny_tensor* stored(const std::vector<int64_t>& dims) {
    tiny_tensor *a = full(dims), *b = nullptr;
    const tiny_status status = tiny_contiguous(a, &b);
    return keep(status, b);
  }

  // Operands, which a limit of time may leave for another call.
  void realize(tiny_tensor* a, tiny_tensor* b) {
    tiny_tensor* both[] = {a, b};
    tiny_status status = TINY_ERROR_LIMIT;
    for (int i = 0; i < kTries && status == TINY_ERROR_LIMIT; ++i) status = tiny_realize(both, 2);
    EXPECT_EQ(status, TINY_OK) << tiny_last_error();
  }

  // Works of hundreds of milliseconds and more, each of one kernel.
  tiny_tensor* product() {
    tiny_tensor *a = stored({4000, 4000}), *b = stored({4000, 4000}), *c = nullptr;
    realize(a, b);
    const tiny_status status = tiny_matmul(a, b, &c);
    return keep(status, c);
  }
  tiny_tensor* sum() {
    tiny_tensor *x = stored({1 << 19, 1}), *y = stored({1, 1 << 20}), *z = nullptr, *s = nullptr;
    realize(x, y);
    tiny_status status = tiny_binary(TINY_MUL, x, y, &z);
    keep(status, z);
    status = tiny_reduce(TINY_SUM, z, nullptr, 0, 0, &s);
    return keep(status, s);
  }
  tiny_tensor* convolution() {
    tiny_tensor *x = stored({1, 64, 700, 700}), *w = stored({128, 64, 3, 3}), *y = nullptr;
    realize(x, w);
    const tiny_status status = tiny_conv(x, w, nullptr, nullptr, &y);
    return keep(status, y);
  }
  tiny_tensor* elementwise() {
    tiny_tensor *x = stored({1 << 14, 1}), *y = stored({1, 1 << 16}), *z = nullptr, *e = nullptr;
    realize(x, y);
    tiny_status status = tiny_binary(TINY_POW, x, y, &z);
    keep(status, z);
    status = tiny_unary(TINY_SIN, z, &e);
    return keep(status, e);
  }
  std::vector<std::pair<const char*, std::function<tiny_tensor*()>>> works() {
    return {{"product", [&] { return product(); }},
            {"sum", [&] { return sum(); }},
            {"convolution", [&] { return convolution(); }},
            {"elementwise", [&] { return elementwise(); }}};
  }

  // `late` gives how much later than it should one try of the work has ended.
  void expect_soon(const char* what, const std::function<Clock::duration()>& late) {
    Clock::duration least = Clock::duration::max();
    for (int i = 0; i < kTries && least > kSoon; ++i) {
      const Clock::duration one = late();
      EXPECT_LT(one, kLate) << what;
      least = std::min(least, one);
      if (HasFailure()) return;
    }
    EXPECT_LT(least, kSoon) << what << " ended after milliseconds: "
                            << std::chrono::duration<double, std::milli>(least).count();
  }

  tiny_context* context_ = nullptr;
  std::vector<tiny_tensor*> tensors_;
};

TEST_P(Stop, ByAToken) {
  for (const auto& [name, make] : works()) {
    open();
    tiny_tensor* work = make();
    tiny_program* program = nullptr;
    ASSERT_EQ(tiny_program_compile(nullptr, 0, &work, 1, &program), TINY_OK) << tiny_last_error();
    tiny_run* run = nullptr;
    ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
    tiny_cancel* cancel = nullptr;
    ASSERT_EQ(tiny_cancel_create(&cancel), TINY_OK);
    ASSERT_EQ(tiny_run_set_cancel(run, cancel), TINY_OK);
    expect_soon(name, [&] {
      tiny_cancel_clear(cancel);
      Telling telling(Clock::now() + kBefore, [&] { tiny_cancel_set(cancel); });
      const tiny_status status = tiny_run_execute(run);
      const auto late = telling.late();
      EXPECT_EQ(status, TINY_ERROR_CANCELLED) << name << ": " << tiny_last_error();
      return late;
    });
    tiny_cancel_release(cancel);
    tiny_run_release(run);
    tiny_program_release(program);
    close();
  }
}

TEST_P(Stop, ByALimitOfTime) {
  const auto limit = std::chrono::milliseconds(GetParam().limit);
  open(limit.count());
  tiny_tensor* work = sum();
  tiny_program* program = nullptr;
  ASSERT_EQ(tiny_program_compile(nullptr, 0, &work, 1, &program), TINY_OK) << tiny_last_error();
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  expect_soon("sum", [&] {
    Telling telling(Clock::now() + limit);
    const tiny_status status = tiny_run_execute(run);
    const auto late = telling.late();
    EXPECT_EQ(status, TINY_ERROR_LIMIT) << tiny_last_error();
    return late;
  });
  tiny_run_release(run);
  tiny_program_release(program);
}

struct Asked {
  Clock::time_point end = Clock::time_point::max();
  std::thread::id thread;
  int64_t calls = 0;
  bool is_elsewhere = false;

  static int32_t ask(void* user) {
    auto& self = *static_cast<Asked*>(user);
    ++self.calls;
    self.is_elsewhere |= std::this_thread::get_id() != self.thread;
    return Clock::now() >= self.end ? 1 : 0;
  }
};

TEST_P(Stop, ByTheCallersFunction) {
  for (const auto& [name, make] : works()) {
    Asked asked;
    asked.thread = std::this_thread::get_id();
    open(0, Asked::ask, &asked);
    tiny_tensor* work = make();
    tiny_program* program = nullptr;
    ASSERT_EQ(tiny_program_compile(nullptr, 0, &work, 1, &program), TINY_OK) << tiny_last_error();
    tiny_run* run = nullptr;
    ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
    int64_t most = 0;  // calls in one try: fewer where others have the core
    const auto once = [&] {
      const int64_t before = asked.calls;
      asked.end = Clock::now() + kBefore;
      Telling telling(asked.end);
      const tiny_status status = tiny_run_execute(run);
      const auto late = telling.late();
      EXPECT_EQ(status, TINY_ERROR_CANCELLED) << name << ": " << tiny_last_error();
      most = std::max(most, asked.calls - before);
      return late;
    };
    expect_soon(name, once);
    for (int i = 0; i < kTries && most < kCallsMin; ++i) once();
    EXPECT_GE(most, kCallsMin) << name;
    EXPECT_FALSE(asked.is_elsewhere);
    tiny_run_release(run);
    tiny_program_release(program);
    close();
  }
}

// A run that was ended is executed again, and gives what it would have given.
TEST_P(Stop, ARunGoesOnAfterwards) {
  open();
  tiny_tensor *x = stored({1 << 12, 1}), *y = stored({1, 1 << 14}), *z = nullptr, *s = nullptr;
  realize(x, y);
  tiny_status status = tiny_binary(TINY_ADD, x, y, &z);
  keep(status, z);
  const int64_t axis = 1;
  status = tiny_reduce(TINY_SUM, z, &axis, 1, 0, &s);
  keep(status, s);
  tiny_program* program = nullptr;
  ASSERT_EQ(tiny_program_compile(nullptr, 0, &s, 1, &program), TINY_OK) << tiny_last_error();
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  tiny_cancel* cancel = nullptr;
  ASSERT_EQ(tiny_cancel_create(&cancel), TINY_OK);
  ASSERT_EQ(tiny_run_set_cancel(run, cancel), TINY_OK);
  std::vector<float> sums(1 << 12);
  for (int wait = 0; wait < 5; ++wait) {
    tiny_cancel_clear(cancel);
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait));
      tiny_cancel_set(cancel);
    });
    tiny_run_execute(run);
    other.join();
    tiny_cancel_clear(cancel);
    ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_read_output(run, 0, sums.data(), sums.size() * sizeof(float)), TINY_OK);
    for (float sum : sums) ASSERT_EQ(sum, 1 << 14);
  }
  tiny_cancel_release(cancel);
  tiny_run_release(run);
  tiny_program_release(program);
}

INSTANTIATE_TEST_SUITE_P(Devices, Stop,
                         ::testing::Values(Place{"cpu", 1, 200}, Place{"cpu", 2, 200},
                                           Place{"interp", 1, 200}, Place{"c", 1, 3000}));

}  // namespace

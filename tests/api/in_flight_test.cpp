// Runs that nobody waits for, through tiny.h: on the device that does nothing before somebody waits
// for it, on the emulated driver of CUDA, which is as late, and on OpenCL's drivers.
#include "runtime/in_flight.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/model_handle.h"
#include "runtime/device.h"
#include "tests/support/api_values.h"
#include "tests/support/fake_cuda.h"
#include "tiny.h"

namespace {

using tiny::testing::Dims;
using tiny::testing::error_has;
using tiny::testing::Setting;
using Floats = std::vector<float>;

constexpr int64_t kCount = 1000;  // elements of a tensor

class Work : protected tiny::testing::ApiValues {
 protected:
  tiny::Device& device() const { return context_->core->device(); }
  size_t in_flight() const { return device().in_flight().count(); }
  void make_context(const char* device, int64_t memory_limit = 0) {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", device), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "cache", 0), TINY_OK);
    ASSERT_EQ(tiny_options_set_int(options, "memory_limit", memory_limit), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
  }
  void close_all() {
    tiny_run_release(std::exchange(run_, nullptr));
    tiny_program_release(std::exchange(program_, nullptr));
    close();
    tensors_.clear();
    context_ = nullptr;
  }
  // a * b, computed; the caller releases it.
  static tiny_tensor* product(const tiny_tensor* a, const tiny_tensor* b) {
    tiny_tensor* t = nullptr;
    EXPECT_EQ(tiny_binary(TINY_MUL, a, b, &t), TINY_OK);
    EXPECT_EQ(tiny_realize(&t, 1), TINY_OK) << tiny_last_error();
    return t;
  }
  tiny_tensor* filled(float value) { return floats({kCount}, Floats(kCount, value)); }
  // Of out = softmax(in * weight + in), over rows of ten: kernels that wait for each other.
  void make_run() {
    tiny_tensor *in = input({kCount / 10, 10}), *out = nullptr, *square = nullptr;
    tiny_tensor* weight = floats({10, 10}, Floats(100, 0.5));
    ASSERT_EQ(tiny_matmul(in, weight, &square), TINY_OK);
    ASSERT_EQ(tiny_softmax(keep(square), -1, &out), TINY_OK);
    keep(out);
    tiny_tensor* again = nullptr;
    ASSERT_EQ(tiny_matmul(out, weight, &again), TINY_OK);
    keep(again);
    ASSERT_EQ(tiny_program_compile(&in, 1, &again, 1, &program_), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_create(program_, &run_), TINY_OK);
  }
  int64_t memory_used() const { return device().memory().used(); }

  tiny_program* program_ = nullptr;
  tiny_run* run_ = nullptr;
};

class InFlight : public ::testing::TestWithParam<const char*>, protected Work {
 protected:
  void SetUp() override {
    if (is_cuda()) {
      if (!fake_.is_there()) GTEST_SKIP() << tiny::testing::kNoFakeCuda;
      fake_.reset();
    }
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    tiny_options_set_string(options, "device", GetParam());
    const tiny_status made = tiny_context_create(options, &context_);
    tiny_options_release(options);
    if (made == TINY_ERROR_DEVICE) GTEST_SKIP() << tiny_last_error();
    tiny_context_release(std::exchange(context_, nullptr));
    make_context(GetParam());
  }
  void TearDown() override {
    close_all();
    if (!is_cuda() || !fake_.is_there()) return;
    EXPECT_EQ(fake_.left(), "");
    fake_.reset();
  }
  bool is_cuda() const { return std::string_view(GetParam()) == "cuda"; }
  // Where nothing is done before somebody waits.
  bool is_late() const { return std::string_view(GetParam()) != "opencl"; }

  const tiny::testing::FakeCuda fake_;
};

TEST_P(InFlight, ReadingWaitsForWhatItNeedsAlone) {
  tiny_tensor *x = filled(3), *y = filled(9), *z = filled(9);
  keep(product(x, x));
  tiny_tensor* second = keep(product(x, y));
  tiny_tensor* third = keep(product(z, z));
  if (is_late()) {
    EXPECT_EQ(in_flight(), 3u);
  }
  EXPECT_EQ(read(second), Floats(kCount, 27));
  if (is_late()) {
    EXPECT_EQ(in_flight(), 1u);
  }
  EXPECT_EQ(read(third), Floats(kCount, 81));
  EXPECT_EQ(in_flight(), 0u);
  keep(product(third, x));
  ASSERT_EQ(tiny_context_synchronize(context_), TINY_OK);
  EXPECT_EQ(in_flight(), 0u);
}

TEST_P(InFlight, MemoryIsHeldUntilItsWorkIsDone) {
  tiny_tensor* x = filled(2);
  device().in_flight().wait();
  const int64_t before = memory_used();
  for (int i = 0; i < 5; ++i) tiny_tensor_release(product(x, x));
  if (is_late()) {
    EXPECT_EQ(memory_used(), before + 5 * 4 * kCount);
  }
  ASSERT_EQ(tiny_context_synchronize(context_), TINY_OK);
  EXPECT_EQ(memory_used(), before);
}

TEST_P(InFlight, WritesComeInTheirOrder) {
  tiny_tensor *w = filled(1), *one = filled(1), *before = nullptr;
  for (int i = 0; i < 100; ++i) {
    tiny_tensor* sum = nullptr;
    ASSERT_EQ(tiny_binary(TINY_ADD, w, one, &sum), TINY_OK);
    ASSERT_EQ(tiny_assign(w, sum), TINY_OK);
    ASSERT_EQ(tiny_realize(&w, 1), TINY_OK) << tiny_last_error();
    tiny_tensor_release(sum);
    if (i == 49) before = keep(product(w, one));
  }
  EXPECT_EQ(read(before), Floats(kCount, 51));
  EXPECT_EQ(read(w), Floats(kCount, 101));
}

TEST_P(InFlight, AThousandRunsLeaveNothing) {
  make_run();
  const int64_t dims[] = {kCount / 10, 10};
  std::string left;
  int64_t used = 0;
  tiny_tensor* last = nullptr;
  for (int i = 0; i < 1000; ++i) {
    tiny_tensor *in = nullptr, *out = nullptr;
    const Floats values(kCount, static_cast<float>(i % 7));
    ASSERT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, dims, 2, values.data(),
                                    values.size() * sizeof(float), &in),
              TINY_OK);
    ASSERT_EQ(tiny_run_set_input(run_, 0, in), TINY_OK);
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_output_tensor(run_, 0, &out), TINY_OK);
    tiny_tensor_release(in);
    tiny_tensor_release(std::exchange(last, out));
    if (i % 100 != 99) continue;
    // Rows of a softmax, whose sum is one, times a half each.
    for (const float value : read(last)) ASSERT_NEAR(value, 0.5, 1e-6);
    ASSERT_EQ(tiny_context_synchronize(context_), TINY_OK);
    if (i == 199) used = memory_used(), left = is_cuda() ? fake_.left() : "";
    if (i < 299) continue;
    EXPECT_EQ(memory_used(), used) << i;
    if (is_cuda()) {
      EXPECT_EQ(fake_.left(), left) << i;
    }
  }
  keep(last);
}

TEST_P(InFlight, NoMoreIsInFlightThanThereIsRoomFor) {
  close_all();
  constexpr int64_t kBytes = 4 * kCount;
  make_context(GetParam(), 12 * kBytes);
  tiny_tensor* x = filled(2);
  for (int i = 0; i < 40; ++i) tiny_tensor_release(product(x, x));
  EXPECT_EQ(read(keep(product(x, x))), Floats(kCount, 4));
}

TEST_P(InFlight, AnIndexOutOfRangeIsToldByTheCall) {
  tiny_tensor* x = filled(2);
  tiny_tensor *index = tensor<int64_t>(TINY_INT64, {2}, {1, kCount + 7}), *out = nullptr;
  keep(product(x, x));
  ASSERT_EQ(tiny_gather(x, index, 0, &out), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_realize(&out, 1), TINY_ERROR_INDEX);
  keep(out);
  EXPECT_EQ(read(keep(product(x, x))), Floats(kCount, 4));
}

TEST_P(InFlight, ThreadsGiveAndReadAtOnce) {
  make_run();
  const int64_t dims[] = {kCount / 10, 10};
  std::vector<std::thread> threads;
  for (int of = 0; of < 3; ++of)
    threads.emplace_back([&, of] {
      tiny_run* run = nullptr;
      tiny_tensor* in = nullptr;
      const Floats values(kCount, static_cast<float>(of));
      ASSERT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, dims, 2, values.data(),
                                      values.size() * sizeof(float), &in),
                TINY_OK);
      ASSERT_EQ(tiny_run_create(program_, &run), TINY_OK);
      ASSERT_EQ(tiny_run_set_input(run, 0, in), TINY_OK);
      for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
        Floats got(kCount);
        ASSERT_EQ(tiny_run_read_output(run, 0, got.data(), got.size() * sizeof(float)), TINY_OK);
        for (const float value : got) ASSERT_NEAR(value, 0.5, 1e-6);
        tiny_tensor* mine = product(in, in);
        Floats square(kCount);
        ASSERT_EQ(tiny_tensor_read(mine, square.data(), square.size() * sizeof(float)), TINY_OK);
        ASSERT_EQ(square[7], static_cast<float>(of * of));
        tiny_tensor_release(mine);
      }
      tiny_run_release(run);
      tiny_tensor_release(in);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(InFlight, AContextMayEndWithWorkInFlight) {
  make_run();
  ASSERT_EQ(tiny_run_set_input(run_, 0, floats({kCount / 10, 10}, Floats(kCount, 1))), TINY_OK);
  ASSERT_EQ(tiny_run_execute(run_), TINY_OK);
  keep(product(tensors_.back(), tensors_.back()));
  if (is_late()) {
    EXPECT_EQ(in_flight(), 2u);
  }
}  // TearDown looks that nothing is left

// The child of a process with work in flight.
int status_of_child(const auto& child) {
  const pid_t id = fork();
  if (id == 0) child();
  int status = 0;
  EXPECT_EQ(waitpid(id, &status, 0), id);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_P(InFlight, AProcessMayExitWithWorkInFlight) {
  if (!is_late()) GTEST_SKIP() << "a driver has threads, which a fork leaves behind";
  EXPECT_EQ(status_of_child([&] {
              if (is_cuda()) fake_.reset();
              make_context(GetParam());
              tiny_tensor* x = filled(2);
              keep(product(x, x));
              std::exit(in_flight() == 1 ? 7 : 1);
            }),
            7);
}

TEST_P(InFlight, AForkLeavesWorkInFlightToItsParent) {
  if (!is_late()) GTEST_SKIP() << "a driver has threads, which a fork leaves behind";
  tiny_tensor* x = filled(2);
  tiny_tensor* y = keep(product(x, x));
  EXPECT_EQ(status_of_child([&] {
              Floats got(kCount);
              const tiny_status status =
                  tiny_tensor_read(y, got.data(), got.size() * sizeof(float));
              const bool is_told = is_cuda() ? status == TINY_ERROR_DEVICE_LOST
                                             : status == TINY_OK && got == Floats(kCount, 4);
              close_all();
              _exit(is_told ? 7 : 1);
            }),
            7);
  EXPECT_EQ(read(y), Floats(kCount, 4));
}

INSTANTIATE_TEST_SUITE_P(Kinds, InFlight, ::testing::Values("far", "cuda", "opencl"),
                         [](const auto& info) { return std::string(info.param); });

class CudaInFlight : public ::testing::Test, protected Work {
 protected:
  void SetUp() override {
    if (!fake_.is_there()) GTEST_SKIP() << tiny::testing::kNoFakeCuda;
    fake_.reset();
  }
  void TearDown() override {
    if (fake_.is_there()) fake_.reset();
  }
  // Runs, reads, writes and copies; the first status that is no success.
  tiny_status do_all() {
    tiny_status first = TINY_OK;
    const auto must = [&](tiny_status status) {
      if (first == TINY_OK) first = status;
      return first == TINY_OK;
    };
    tiny_options* options = nullptr;
    tiny_options_create(&options);
    tiny_options_set_string(options, "device", "cuda");
    tiny_options_set_int(options, "cache", 0);
    must(tiny_context_create(options, &context_));
    tiny_options_release(options);
    const int64_t dims[] = {kCount / 10, 10};
    const Floats ones(kCount, 1);
    Floats got(kCount);
    tiny_tensor *in = nullptr, *x = nullptr, *y = nullptr, *z = nullptr, *out = nullptr;
    if (first == TINY_OK)
      must(tiny_tensor_from_data(context_, TINY_FLOAT32, dims, 2, ones.data(), 4 * kCount, &x)) &&
          must(tiny_input(context_, TINY_FLOAT32, dims, 2, &in)) &&
          must(tiny_softmax(in, -1, &y)) && must(tiny_binary(TINY_ADD, y, x, &z)) &&
          must(tiny_softmax(z, 0, &out)) &&
          must(tiny_program_compile(&in, 1, &out, 1, &program_)) &&
          must(tiny_run_create(program_, &run_)) && must(tiny_run_set_input(run_, 0, x)) &&
          must(tiny_run_execute(run_)) && must(tiny_run_execute(run_)) &&
          must(tiny_run_read_output(run_, 0, got.data(), 4 * kCount));
    for (tiny_tensor* t : {in, x, y, z, out}) tiny_tensor_release(t);
    if (first == TINY_OK) {
      EXPECT_NEAR(got[5], 0.01, 1e-6);
    }
    if (context_) close_all();
    return first;
  }

  const tiny::testing::FakeCuda fake_;
};

constexpr const char* kSymbols[] = {
#define CUDA_FUNCTION(symbol, ...) #symbol,
#include "runtime/cuda/functions.def"
};

TEST_F(CudaInFlight, AnErrorOfAnyCallHarmsNothing) {
  const auto cleans_up = [](std::string_view symbol) {
    for (const std::string_view word : {"Destroy", "Free", "Release", "Unload", "PopCurrent"})
      if (symbol.find(word) != std::string_view::npos) return true;
    return false;
  };
  for (const std::string symbol : kSymbols)
    for (int n = 1; n <= 2; ++n) {
      fake_.reset();
      tiny_status status = TINY_OK;
      {
        const Setting fail("FAKE_CUDA_FAIL", symbol + ":" + std::to_string(n) + ":801");
        status = do_all();
      }
      EXPECT_TRUE(status == TINY_OK || status == TINY_ERROR_DEVICE) << symbol << ": " << status;
      if (!cleans_up(symbol)) {
        EXPECT_EQ(fake_.left(), "") << symbol << ", call " << n;
      }
      fake_.reset();
      EXPECT_EQ(do_all(), TINY_OK) << symbol << ": " << tiny_last_error();
      EXPECT_EQ(fake_.left(), "");
    }
}

// What the driver is asked for by one execution, where memory changes from one to the next and
// where it does not.
TEST_F(CudaInFlight, AReplayIsOneLaunchOfAGraph) {
  make_context("cuda");
  make_run();
  const Dims dims{kCount / 10, 10};
  tiny_tensor *one = floats(dims, Floats(kCount, 1)), *two = floats(dims, Floats(kCount, 2));
  tiny_tensor* out = floats(dims, Floats(kCount, 0));
  ASSERT_EQ(tiny_run_set_output(run_, 0, out), TINY_OK) << tiny_last_error();
  const int64_t kernels = std::ssize(run_->value->program().compiled.program->tape);
  ASSERT_GE(kernels, 2);
  const auto execute = [&](const tiny_tensor* in) {
    if (in) {
      ASSERT_EQ(tiny_run_set_input(run_, 0, in), TINY_OK);
    }
    ASSERT_EQ(tiny_run_execute(run_), TINY_OK) << tiny_last_error();
  };
  const auto calls = [&](auto... symbols) { return std::vector<int64_t>{fake_.count(symbols)...}; };
  const auto counts = [&] {
    return calls("cuGraphLaunch", "cuLaunchKernel", "cuGraphInstantiateWithFlags",
                 "cuGraphExecKernelNodeSetParams", "cuEventCreate", "cuStreamSynchronize", "calls");
  };
  const auto since = [&](std::vector<int64_t> before) {
    std::vector<int64_t> now = counts();
    for (size_t i = 0; i < now.size(); ++i) now[i] -= before[i];
    return now;
  };
  for (int i = 0; i < 3; ++i) execute(one);
  ASSERT_EQ(tiny_context_synchronize(context_), TINY_OK);  // its events serve again
  std::vector<int64_t> before = counts();
  execute(nullptr);
  // The launch and the event behind it, each with the context made current and given back.
  EXPECT_EQ(since(before), (std::vector<int64_t>{1, 0, 0, 0, 0, 0, 6}));
  before = counts();
  execute(nullptr);
  // And a look whether the one before is done.
  EXPECT_EQ(since(before), (std::vector<int64_t>{1, 0, 0, 0, 0, 0, 9}));
  // The kernel that reads the input is told where it is now.
  before = counts();
  execute(two);
  EXPECT_EQ(since(before), (std::vector<int64_t>{1, 0, 0, 1, 0, 0, 12}));
  for (const float value : read(out)) EXPECT_NEAR(value, 0.5, 1e-6);
  close_all();
}

TEST_F(CudaInFlight, ADeviceIsLostAloneWithWorkInFlight) {
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  make_context("cuda");
  tiny_context* other = nullptr;
  ASSERT_EQ(tiny_context_on_device(context_, "cuda:1", &other), TINY_OK) << tiny_last_error();
  tiny_tensor *x = filled(3), *there = nullptr;
  ASSERT_EQ(tiny_tensor_to(x, other, &there), TINY_OK) << tiny_last_error();
  tiny_tensor* square = keep(product(keep(there), there));
  tiny_tensor* y = keep(product(x, x));
  Floats got(kCount);
  const size_t bytes = got.size() * sizeof(float);
  {
    const Setting fail("FAKE_CUDA_FAIL", "cuEventSynchronize:1:719");
    EXPECT_EQ(tiny_tensor_read(y, got.data(), bytes), TINY_ERROR_DEVICE_LOST);
  }
  for (const char* part : {"cuda:0 is lost", "cuEventSynchronize", "CUDA_ERROR_LAUNCH_FAILED"})
    EXPECT_TRUE(error_has(part)) << tiny_last_error();
  // It stays lost, for all that it is asked.
  EXPECT_EQ(tiny_tensor_read(x, got.data(), bytes), TINY_ERROR_DEVICE_LOST);
  tiny_tensor* again = nullptr;
  ASSERT_EQ(tiny_binary(TINY_ADD, x, x, &again), TINY_OK);
  EXPECT_EQ(tiny_realize(&again, 1), TINY_ERROR_DEVICE_LOST);
  EXPECT_EQ(tiny_tensor_to(x, other, &there), TINY_ERROR_DEVICE_LOST);
  tiny_tensor_release(again);
  // The other goes on.
  ASSERT_EQ(tiny_tensor_read(square, got.data(), bytes), TINY_OK) << tiny_last_error();
  EXPECT_EQ(got, Floats(kCount, 9));
  close_all();
  tiny_context_release(other);
}

}  // namespace

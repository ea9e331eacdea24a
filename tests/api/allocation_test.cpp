// Memory that cannot be had, at every point of loading, building and running a small model: each
// call ends with a status and a message, nothing is lost, and the next attempt works.
//
// This program's operator new, and the library's mmap, posix_memalign and pthread_create (wrapped
// by the linker), fail when a countdown says so; what operator new gave and did not get back is
// counted. ALLOCATION_STRIDE tries only every so manieth point.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>

#include "io/safetensors.h"
#include "tests/onnx/model_writer.h"
#include "tests/support/environment.h"
#include "tiny.h"

namespace {

std::atomic<int64_t> live{0};       // blocks that operator new gave, and mappings
std::atomic<int64_t> countdown{0};  // requests until one fails; 0: none does
std::atomic<bool> for_good{false};  // after it, all do
std::atomic<int64_t> refused{0};

bool refuse() {
  const int64_t left = countdown.load();
  if (left == 0) return false;
  if (left > 1) {
    countdown = left - 1;
    return false;
  }
  if (!for_good) countdown = 0;
  ++refused;
  return true;
}

void* take(size_t size, size_t alignment) {
  if (refuse()) return nullptr;
  const size_t whole = (std::max<size_t>(size, 1) + alignment - 1) / alignment * alignment;
  void* memory = aligned_alloc(alignment, whole);
  if (memory) ++live;
  return memory;
}

void give(void* memory) {
  if (memory) --live;
  free(memory);
}

void* take_or_throw(size_t size, size_t alignment) {
  void* memory = take(size, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

constexpr size_t kUsual = alignof(std::max_align_t);

}  // namespace

void* operator new(size_t size) {
  return take_or_throw(size, kUsual);
}
void* operator new[](size_t size) {
  return take_or_throw(size, kUsual);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return take(size, kUsual);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return take(size, kUsual);
}
void* operator new(size_t size, std::align_val_t a) {
  return take_or_throw(size, static_cast<size_t>(a));
}
void* operator new[](size_t size, std::align_val_t a) {
  return take_or_throw(size, static_cast<size_t>(a));
}
void* operator new(size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(size, static_cast<size_t>(a));
}
void operator delete(void* memory) noexcept {
  give(memory);
}
void operator delete[](void* memory) noexcept {
  give(memory);
}
void operator delete(void* memory, size_t) noexcept {
  give(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  give(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  give(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  give(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  give(memory);
}

extern "C" {

void* __real_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset);
void* __wrap_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  errno = ENOMEM;
  void* memory = refuse() ? MAP_FAILED : __real_mmap(address, size, protection, flags, fd, offset);
  if (memory != MAP_FAILED) ++live;
  return memory;
}

int __real_munmap(void* address, size_t size);
int __wrap_munmap(void* address, size_t size) {
  --live;
  return __real_munmap(address, size);
}

int __real_posix_memalign(void** memory, size_t alignment, size_t size);
int __wrap_posix_memalign(void** memory, size_t alignment, size_t size) {
  return refuse() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* argument);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* argument) {
  return refuse() ? EAGAIN : __real_pthread_create(thread, attributes, start, argument);
}

}  // extern "C"

namespace tiny {
namespace {

namespace fs = std::filesystem;
namespace w = onnx::testing;

constexpr int64_t kRows = 3, kInner = 4, kColumns = 5;

// y = softmax(relu(x w + b)), x: float32 [N, 4].
std::string model_bytes() {
  const auto weight = [](const char* name, const std::vector<int64_t>& dims) {
    std::vector<float> values;
    for (int64_t i = dims[0] * (dims.size() > 1 ? dims[1] : 1); i > 0; --i)
      values.push_back(static_cast<float>(i % 7) * 0.25f - 0.5f);
    return w::float_tensor(name, dims, values);
  };
  return w::model(w::typed_graph({w::node("Gemm", {"x", "w", "b"}, {"a"}),
                                  w::node("Relu", {"a"}, {"r"}), w::node("Softmax", {"r"}, {"y"})},
                                 {w::floats("x", {w::dim("N"), w::dim(kInner)})}, {"y"},
                                 {weight("w", {kInner, kColumns}), weight("b", {kColumns})}))
      .bytes();
}

constexpr int64_t kStored = 6;  // floats of a tensor in a file

std::string archive_bytes() {
  const std::vector<float> values(kStored, 0.5f);
  const SharedBytes bytes = SharedBytes::copy(
      {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  const Archive archive{{{"weight", {kFloat32, {2, 3}, bytes}, ""}}, {{"format", "pt"}}};
  return safetensors_header(archive).bytes + std::string(bytes.text());
}

// How the first call that failed ended.
struct Ending {
  tiny_status status = TINY_OK;
  const char* call = "";
};

// Everything that one attempt holds.
struct Handles {
  tiny_options* options = nullptr;
  tiny_context* context = nullptr;
  tiny_model* model = nullptr;
  tiny_tensor* source = nullptr;
  tiny_tensor* input = nullptr;  // a part of it
  tiny_tensor* output = nullptr;
  tiny_tensor* doubled = nullptr;
  tiny_program* program = nullptr;
  tiny_run* run = nullptr;
  tiny_report* info = nullptr;
  tiny_archive* archive = nullptr;
  tiny_report* names = nullptr;
  tiny_tensor* stored = nullptr;

  Handles() = default;
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() {
    tiny_context_release(context);
    tiny_options_release(options);
    tiny_model_release(model);
    tiny_tensor_release(source);
    tiny_tensor_release(input);
    tiny_run_release(run);
    tiny_program_release(program);
    tiny_tensor_release(doubled);
    tiny_tensor_release(output);
    tiny_report_release(info);
    tiny_archive_release(archive);
    tiny_tensor_release(stored);
    tiny_report_release(names);
  }
};

// Loads, compiles, runs, computes on, reads tensors of a file and writes it anew: `got` receives
// twice the model's output.
Ending attempt(const char* device, const char* path, const char* weights, float* got) {
  const int64_t dims[] = {kRows, kInner}, whole[] = {kRows + 1, kInner}, begin[] = {1, 0};
  float x[(kRows + 1) * kInner];
  for (int i = 0; i < (kRows + 1) * kInner; ++i) x[i] = static_cast<float>(i % 5) - 2;
  float y[kRows * kColumns];
  Handles h;
#define STEP(call, ...)                                                      \
  if (const tiny_status s = tiny_##call(__VA_ARGS__); s != TINY_OK) return { \
      s, #call                                                               \
    }
  STEP(options_create, &h.options);
  STEP(options_set_string, h.options, "device", device);
  STEP(options_set_int, h.options, "threads", 2);
  STEP(options_set_int, h.options, "spec", 0);
  STEP(context_create, h.options, &h.context);
  STEP(model_load, h.context, path, &h.model);
  STEP(model_info, h.model, &h.info);
  STEP(model_compile, h.model, dims, 2, &h.program);
  STEP(tensor_from_data, h.context, TINY_FLOAT32, whole, 2, x, sizeof x, &h.source);
  STEP(slice, h.source, begin, whole, nullptr, 2, &h.input);
  STEP(run_create, h.program, &h.run);
  STEP(run_set_input, h.run, 0, h.input);
  STEP(run_execute, h.run);
  STEP(run_read_output, h.run, 0, y, sizeof y);
  STEP(model_run, h.model, &h.input, 1, &h.output, 1);
  STEP(binary, TINY_ADD, h.output, h.output, &h.doubled);
  STEP(tensor_read, h.doubled, got, sizeof y);
  STEP(archive_load, h.context, weights, &h.archive);
  STEP(archive_info, h.archive, &h.names);
  STEP(archive_get, h.archive, "weight", &h.stored);
  STEP(archive_set, h.archive, "doubled", h.doubled);
  STEP(archive_set, h.archive, "doubled", h.stored);
  STEP(archive_set_metadata, h.archive, "a longer key", "and a longer text");
  STEP(archive_save, h.archive, weights);
#undef STEP
  for (int i = 0; i < kRows * kColumns; ++i)
    if (got[i] != 2 * y[i]) return {TINY_ERROR_INTERNAL, "a result that is wrong"};
  return {};
}

class Allocation : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = (fs::temp_directory_path() / cat("tiny_allocation_", getpid(), ".onnx")).string();
    write_file(path_, model_bytes());
    weights_ = path_ + ".safetensors";
    write_file(weights_, archive_bytes());
  }
  void TearDown() override {
    fs::remove(path_);
    fs::remove(weights_);
  }

  // Fails every `stride`th point until nothing was left to fail; the number of points.
  int64_t try_every_point(bool all_from_there) {
    const uint64_t usual = std::strcmp(GetParam(), "cpu") == 0 ? 1 : 7;
    const auto stride = static_cast<int64_t>(testing::number_from("ALLOCATION_STRIDE", usual));
    float got[kRows * kColumns];
    EXPECT_EQ(attempt(GetParam(), path_.c_str(), weights_.c_str(), got).status, TINY_OK)
        << tiny_last_error();
    const int64_t held = live;
    for (int64_t n = 1;; n += stride) {
      refused = 0;
      for_good = all_from_there;
      countdown = n;
      const Ending ending = attempt(GetParam(), path_.c_str(), weights_.c_str(), got);
      countdown = 0;
      for_good = false;
      const int64_t kept = live;
      if (refused == 0) return n;
      const std::string message = tiny_last_error();
      if (ending.status != TINY_OK) {
        EXPECT_EQ(ending.status, TINY_ERROR_OUT_OF_MEMORY) << "point " << n << ": " << message;
        EXPECT_EQ(message.rfind(cat("tiny_", ending.call, ": "), 0), 0u) << message;
        EXPECT_NE(message.find("memory"), std::string::npos) << message;
      } else {
        ++unharmed_;
      }
      EXPECT_EQ(kept, held) << "point " << n << " lost memory: " << message;
      if (HasFailure()) return n;
    }
  }

  std::string path_;
  std::string weights_;
  int64_t unharmed_ = 0;  // attempts that did without what was refused
};

TEST_P(Allocation, ThatFailsOnceIsAStatusAndNothingIsLost) {
  const int64_t points = try_every_point(false);
  std::printf("%lld points, %lld did not matter\n", static_cast<long long>(points),
              static_cast<long long>(unharmed_));
  EXPECT_GT(points, 1000);
  EXPECT_LT(unharmed_, 100);
}

TEST_P(Allocation, ThatFailsFromSomePointOnIsAStatusAndNothingIsLost) {
  EXPECT_GT(try_every_point(true), 1000);
}

INSTANTIATE_TEST_SUITE_P(Devices, Allocation, ::testing::Values("cpu", "interp"));

}  // namespace
}  // namespace tiny

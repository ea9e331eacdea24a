// Where the system refuses executable memory, the whole engine gives the same answers through the
// interpreter and says so; where it does not, no page is ever both writable and executable.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "engine/context.h"
#include "runtime/cpu/cpuid.h"
#include "tensor/value.h"
#include "tests/onnx/model_writer.h"
#include "tests/reference/random_graph.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/process.h"
#include "tiny.h"

namespace tiny {
namespace {

namespace fs = std::filesystem;
namespace w = onnx::testing;

constexpr int64_t kSize = 24;

bool can_run() {
  return cpu_facts().isa != CpuIsa::None;
}

// From now on no system call of this process makes memory executable.
bool refuse_executable_memory() {
#if defined(__x86_64__)
  constexpr auto kProtection = offsetof(seccomp_data, args[2]);  // protection, in mmap and mprotect
  const auto refused = static_cast<unsigned>(SECCOMP_RET_ERRNO | EPERM);
  const auto load = [](size_t offset) {
    return sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)));
  };
  const auto give = [](unsigned value) { return sock_filter(BPF_STMT(BPF_RET | BPF_K, value)); };
  const auto equal = [](unsigned value, uint8_t yes, uint8_t no) {
    return sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no));
  };
  sock_filter rules[] = {
      load(offsetof(seccomp_data, arch)),
      equal(AUDIT_ARCH_X86_64, 1, 0),
      give(SECCOMP_RET_ALLOW),
      load(offsetof(seccomp_data, nr)),
      equal(SYS_memfd_create, 6, 0),
      equal(SYS_mmap, 3, 0),
      equal(SYS_mprotect, 2, 0),
      equal(SYS_pkey_mprotect, 1, 0),
      give(SECCOMP_RET_ALLOW),
      load(kProtection),
      sock_filter(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1)),
      give(refused),
      give(SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
  return false;
#endif
}

// y = softmax(relu(x w)), x: float32 [24, 24].
std::string model_bytes() {
  std::vector<float> values;
  for (int64_t i = 0; i < kSize * kSize; ++i)
    values.push_back(static_cast<float>(i % 13) * 0.125f - 0.75f);
  return w::model(w::typed_graph({w::node("MatMul", {"x", "w"}, {"a"}),
                                  w::node("Relu", {"a"}, {"r"}), w::node("Softmax", {"r"}, {"y"})},
                                 {w::floats("x", {w::dim(kSize), w::dim(kSize)})}, {"y"},
                                 {w::float_tensor("w", {kSize, kSize}, values)}))
      .bytes();
}

struct Answer {
  std::vector<float> values;
  size_t kernels = 0;
  size_t interpreted = 0;
};

Answer run_model(const std::string& path) {
  Answer answer;
  answer.values.resize(kSize * kSize);
  const int64_t dims[] = {kSize, kSize};
  std::vector<float> x(kSize * kSize);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) * 0.25f - 1;
  const size_t bytes = x.size() * sizeof(float);
  tiny_context* context = nullptr;
  tiny_model* model = nullptr;
  tiny_program* program = nullptr;
  tiny_run* run = nullptr;
  tiny_tensor* input = nullptr;
  EXPECT_EQ(tiny_context_create(nullptr, &context), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_model_load(context, path.c_str(), &model), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_model_compile(model, nullptr, 0, &program), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 2, x.data(), bytes, &input),
            TINY_OK);
  EXPECT_EQ(tiny_run_create(program, &run), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_run_set_input(run, 0, input), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_run_read_output(run, 0, answer.values.data(), bytes), TINY_OK);
  EXPECT_EQ(tiny_program_kernel_count(program, &answer.kernels), TINY_OK);
  EXPECT_EQ(tiny_program_interpreted_count(program, &answer.interpreted), TINY_OK);
  tiny_tensor_release(input);
  tiny_run_release(run);
  tiny_program_release(program);
  tiny_model_release(model);
  tiny_context_release(context);
  return answer;
}

// Random graphs on device cpu have the oracle's values.
void check_random_graphs(uint64_t count) {
  for (uint64_t seed = 1; seed <= count; ++seed) {
    const Ref<Context> context = testing::new_context("cpu");
    testing::GraphOptions options;
    options.transcendentals = seed % 2 == 0;
    testing::RandomGraph graph(context, seed, options);
    for (Tensor& t : graph.make()) {
      const reference::Values want = reference::evaluate(t.node());
      std::string bytes(want.size() * static_cast<size_t>(t.dtype().bytes()), '\xAA');
      read(t, bytes.data(), std::ssize(bytes));
      ASSERT_EQ(reference::difference(want, bytes.data()), "") << "seed " << seed;
    }
  }
}

class ExecutableMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_run()) GTEST_SKIP() << "no machine code on this processor";
    path_ = (fs::temp_directory_path() / cat("tiny_executable_", getpid(), ".onnx")).string();
    write_file(path_, model_bytes());
  }
  void TearDown() override {
    if (!path_.empty()) fs::remove(path_);
  }
  std::string path_;
};

TEST_F(ExecutableMemory, ThatIsRefusedMeansTheInterpreterAndTheSameAnswers) {
  const Answer free = run_model(path_);
  EXPECT_GT(free.kernels, 0u);
  EXPECT_EQ(free.interpreted, 0u);
  const testing::Ended child = testing::run_apart(280, [&] {
    if (!refuse_executable_memory()) return "no filter";
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
              MAP_FAILED);
    const Answer refused = run_model(path_);
    EXPECT_EQ(refused.kernels, free.kernels);
    EXPECT_EQ(refused.interpreted, free.kernels);
    EXPECT_EQ(
        std::memcmp(refused.values.data(), free.values.data(), free.values.size() * sizeof(float)),
        0);
    check_random_graphs(60);
    return HasFailure() ? "failed" : "";
  });
  if (child.text == "no filter") GTEST_SKIP() << "no seccomp filter can be had";
  EXPECT_EQ(child.text, "");
  EXPECT_EQ(child.status, 0);
}

// Lines of /proc/self/maps.
struct Mappings {
  int code = 0;  // kernels'
  int writable_code = 0;
  int writable_and_executable = 0;
};

Mappings look() {
  Mappings found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::string rights = line.substr(line.find(' ') + 1, 4);
    const bool code = line.find("tiny-code") != std::string::npos;
    found.code += code ? 1 : 0;
    found.writable_code += code && rights[1] == 'w' ? 1 : 0;
    found.writable_and_executable += rights[1] == 'w' && rights[2] == 'x' ? 1 : 0;
  }
  return found;
}

TEST_F(ExecutableMemory, IsNeverWritableWhileKernelsAreMadeAndRun) {
  std::atomic<bool> stop{false};
  std::atomic<int> looks{0}, wrong{0};
  std::thread watcher([&] {
    while (!stop) {
      wrong += look().writable_and_executable;
      ++looks;
    }
  });
  Flags flags = Flags::from_environment(nullptr);
  const Ref<Context> context = make_ref<Context>(flags);
  for (uint64_t seed = 1; seed <= 40 || looks < 20; ++seed) {
    testing::RandomGraph graph(context, seed, {});
    for (Tensor& t : graph.make()) {
      std::string bytes(static_cast<size_t>(element_count(t) * t.dtype().bytes()), '\0');
      read(t, bytes.data(), std::ssize(bytes));
    }
  }
  const Mappings now = look();  // the context keeps its kernels
  stop = true;
  watcher.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(now.code, 0);
  EXPECT_EQ(now.writable_code, 0);
}

}  // namespace
}  // namespace tiny

#include "runtime/cpu/cpu.h"

#include <fenv.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "render/bytecode.h"
#include "render/x86/x86.h"
#include "runtime/cpu/code_memory.h"
#include "runtime/cpu/cpuid.h"
#include "tests/support/add_number.h"
#include "tests/support/process.h"

namespace tiny {
namespace {

bool can_run() {
  return cpu_facts().isa != CpuIsa::None;
}

Code machine_code(const LinearProgram& program) {
  verify(program);
  return render_x86(program, cpu_facts().isa == CpuIsa::Avx512 ? avx512_target() : avx2_target());
}

void run_and_check(Device& device, const Ref<Executable>& executable, int64_t count) {
  const Ref<Buffer> in = device.allocate(count * 8 + 256), out = device.allocate(count * 8 + 256);
  auto* values = reinterpret_cast<int64_t*>(in->host() + 256);
  for (int64_t i = 0; i < count; ++i) values[i] = 3 * i;
  const Argument arguments[] = {{in.get(), 256}, {out.get(), 0}};
  const int64_t variables[] = {5};
  Launch launch;
  launch.executable = executable.get();
  launch.arguments = arguments;
  launch.variables = variables;
  launch.end = count;
  device.launch(nullptr, launch, StopSignal());
  const auto* got = reinterpret_cast<const int64_t*>(out->host());
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(got[i], 3 * i + 5) << i << " of " << count;
}

TEST(Cpu, ALaunchIsSplitOverAnyNumberOfThreadsWithTheSameResult) {
  if (!can_run()) GTEST_SKIP();
  for (int threads : {1, 2, 3, 7}) {
    const auto device = make_cpu_device({.threads = threads});
    const Code code = machine_code(add_number_program());
    const auto loaded = device->load(std::span(&code, 1));
    for (int64_t count : {0, 1, 2, 13, 1000, 600000}) run_and_check(*device, loaded[0], count);
  }
}

TEST(Cpu, SeveralThreadsMayLaunchAtOnce) {
  if (!can_run()) GTEST_SKIP();
  const auto device = make_cpu_device({.threads = 2});
  const Code code = machine_code(add_number_program());
  const auto loaded = device->load(std::span(&code, 1));
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) run_and_check(*device, loaded[0], 5000 + i);
    });
  for (std::thread& t : callers) t.join();
}

TEST(Cpu, AForkedChildLaunches) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends children that start threads";
#endif
  if (!can_run()) GTEST_SKIP();
  const auto device = make_cpu_device({.threads = 2});
  const Code code = machine_code(add_number_program());
  const auto loaded = device->load(std::span(&code, 1));
  run_and_check(*device, loaded[0], 100000);
  const testing::Ended child = testing::run_apart(20, [&] {
    run_and_check(*device, loaded[0], 100000);
    return HasFailure() ? "failed" : "";
  });
  EXPECT_EQ(child.text, "");
  EXPECT_EQ(child.status, 0);
}

TEST(Cpu, KernelsRoundToNearestWhateverTheCallersMode) {
  if (!can_run()) GTEST_SKIP();
  LinearProgram p;
  p.name = "div";
  p.params = {{kFloat32, true, true}};
  const LinearId a = p.add(Op::Param, kAddress), zero = p.add(Op::Const, kInt64);
  const LinearId one = p.add(Op::Const, kFloat32, {}, static_cast<int64_t>(bits_of(kFloat32, 1)));
  const LinearId x = p.add(Op::Load, kFloat32, {a, zero});
  p.add(Op::Store, kVoid, {a, zero, p.add(Op::Div, kFloat32, {one, x})});
  const auto device = make_cpu_device({.threads = 1});
  const Code code = machine_code(p);
  const auto loaded = device->load(std::span(&code, 1));
  const Ref<Buffer> buffer = device->allocate(4);
  auto* value = reinterpret_cast<float*>(buffer->host());
  *value = 3;
  const Argument argument{buffer.get(), 0};
  Launch launch;
  launch.executable = loaded[0].get();
  launch.arguments = std::span(&argument, 1);
  fesetround(FE_DOWNWARD);
  device->launch(nullptr, launch, StopSignal());
  const int mode = fegetround();
  fesetround(FE_TONEAREST);
  EXPECT_EQ(mode, FE_DOWNWARD);
  EXPECT_EQ(*value, 1.0f / 3.0f);
}

// Mappings of this process that are writable and executable.
int writable_and_executable() {
  int count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(" rwx") != std::string::npos) ++count;
  return count;
}

std::string mapping_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    size_t from = 0, to = 0;
    std::sscanf(line.c_str(), "%zx-%zx", &from, &to);
    const auto at = reinterpret_cast<size_t>(address);
    if (from <= at && at < to) return line;
  }
  return "";
}

TEST(Cpu, CodeIsNeverWritableAndExecutable) {
  if (!can_run()) GTEST_SKIP();
  std::atomic<bool> stop{false};
  std::atomic<int> seen{0}, looks{0};
  std::thread watcher([&] {
    while (!stop) {
      seen += writable_and_executable();
      ++looks;
    }
  });
  const auto device = make_cpu_device({});
  const std::vector<Code> batch(20, machine_code(add_number_program()));
  std::vector<Ref<Executable>> kept;
  for (int i = 0; i < 100 || looks < 5; ++i)
    for (auto& e : device->load(batch)) kept.push_back(e);
  stop = true;
  watcher.join();
  EXPECT_EQ(seen, 0);
  const std::byte bytes[] = {std::byte{0xC3}};
  const std::span<const std::byte> function(bytes);
  const Ref<CodeMemory> memory = CodeMemory::make(std::span(&function, 1));
  EXPECT_NE(mapping_of(memory->function(0)).find(" r-x"), std::string::npos);
  run_and_check(*device, kept.front(), 100);
  run_and_check(*device, kept.back(), 100);
}

TEST(Cpu, BytecodeIsInterpreted) {
  const auto device = make_cpu_device({.threads = 2});
  const Code code = render_bytecode(add_number_program());
  const auto loaded = device->load(std::span(&code, 1));
  for (int64_t count : {1, 1000, 50000}) run_and_check(*device, loaded[0], count);
}

TEST(Cpu, SourceIsRefused) {
  const auto device = make_cpu_device({});
  Code code;
  code.kind = CodeKind::C;
  code.name = "k";
  EXPECT_THROW(device->load(std::span(&code, 1)), Error);
}

TEST(Cpu, LargeBuffersAreAlignedAndWhole) {
  const auto device = make_cpu_device({});
  for (int64_t bytes : {0, 1, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 9 << 20}) {
    const Ref<Buffer> b = device->allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->host()) % 256, 0u);
    for (int64_t i = 0; i < bytes; i += 997) b->host()[i] = std::byte{1};
    if (bytes) b->host()[bytes - 1] = std::byte{2};
  }
  EXPECT_THROW(device->allocate(int64_t{1} << 60), Error);
}

// A kernel that loads from one while it stores to the other would wait for its stores.
TEST(Cpu, LargeBuffersMadeOneAfterTheOtherBeginApartInTheirPages) {
  const auto device = make_cpu_device({});
  for (const int64_t bytes : {256 << 10, 1605632, 2 << 20, 5 << 20}) {
    std::vector<Ref<Buffer>> buffers;
    for (int i = 0; i < 20; ++i) buffers.push_back(device->allocate(bytes));
    for (size_t i = 1; i < buffers.size(); ++i) {
      const auto apart = (reinterpret_cast<uintptr_t>(buffers[i]->host()) -
                          reinterpret_cast<uintptr_t>(buffers[i - 1]->host())) %
                         4096;
      EXPECT_GE(apart, 1024u) << bytes;
      EXPECT_LE(apart, 3072u) << bytes;
    }
  }
}

TEST(Cpu, ProfilersFindTheKernelsNames) {
  if (!can_run()) GTEST_SKIP();
  const std::string path = cat("/tmp/perf-", getpid(), ".map");
  const auto device = make_cpu_device({.perf_map = true});
  const Code code = machine_code(add_number_program());
  device->load(std::span(&code, 1));
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  EXPECT_NE(line.find(" tiny:E_n"), std::string::npos);
  unlink(path.c_str());
}

TEST(Cpuid, FactsAreSensible) {
  const CpuFacts f = cpu_facts();
  EXPECT_FALSE(f.brand.empty());
  EXPECT_GE(f.l1_bytes, 8 << 10);
  EXPECT_GE(f.l2_bytes, f.l1_bytes);
  EXPECT_GE(f.cores, 1);
}

TEST(Cpuid, AWishNeverAddsAnything) {
  EXPECT_EQ(limit_isa(CpuIsa::Avx2, "avx512"), CpuIsa::Avx2);
  EXPECT_EQ(limit_isa(CpuIsa::None, "avx2"), CpuIsa::None);
  EXPECT_EQ(limit_isa(CpuIsa::Avx512, "avx2"), CpuIsa::Avx2);
  EXPECT_EQ(limit_isa(CpuIsa::Avx512, "auto"), CpuIsa::Avx512);
  EXPECT_EQ(limit_isa(CpuIsa::Avx512, "none"), CpuIsa::None);
  EXPECT_THROW(limit_isa(CpuIsa::Avx512, "sse9"), Error);
}

}  // namespace
}  // namespace tiny

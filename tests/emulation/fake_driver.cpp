#include "tests/emulation/fake_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/emulation/fake_cuda.h"

namespace tiny::emulation {

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text != '\0' ? std::strtoll(text, nullptr, 10) : otherwise;
}

std::vector<CUctx_st*>& pushed() {
  thread_local std::vector<CUctx_st*> stack;
  return stack;
}

FakeDriver& FakeDriver::get() {
  static FakeDriver driver;
  return driver;
}

cuda::Result FakeDriver::planned(std::string_view symbol) {
  const char* text = std::getenv("FAKE_CUDA_FAIL");
  if (!text || *text == '\0') {
    planned_text_.clear();
    return cuda::kSuccess;
  }
  const std::string plan = text;
  const size_t first = plan.find(':'), second = plan.find(':', first + 1);
  const auto number = [&](size_t colon, int64_t otherwise) {
    return colon == std::string::npos ? otherwise
                                      : std::strtoll(plan.c_str() + colon + 1, nullptr, 10);
  };
  if (plan != planned_text_) {
    planned_text_ = plan;
    calls_until_failure_ = number(first, 1);
  }
  constexpr int64_t kUnknown = 999;
  if (plan.substr(0, first) != symbol || --calls_until_failure_ != 0) return cuda::kSuccess;
  return static_cast<cuda::Result>(number(first == std::string::npos ? first : second, kUnknown));
}

void FakeDriver::finish(CUstream_st& stream) {
  while (!stream.work.empty()) step(stream);
}

void FakeDriver::step(CUstream_st& stream) {
  const std::function<void()> next = std::move(stream.work.front());
  stream.work.pop_front();
  if (stream.context->lost == cuda::kSuccess) next();
}

namespace {

cuda::Result code_of(Fault::Of of) {
  switch (of) {
    case Fault::Of::Address:
      return cuda::kIllegalAddress;
    case Fault::Of::Misaligned:
      return cuda::kMisalignedAddress;
    case Fault::Of::Trap:
      return cuda::kIllegalInstruction;
    case Fault::Of::Time:
      return cuda::kLaunchTimeout;
    default:
      return cuda::kLaunchFailed;
  }
}

}  // namespace

void FakeDriver::run(CUctx_st& context, const KernelLaunch& launch) {
  try {
    const auto seed = static_cast<uint64_t>(setting("FAKE_CUDA_SEED", 1));
    Machine(memory, context.device, seed).run(launch);
  } catch (const Fault& f) {
    context.lost = code_of(f.of());
    fault = "kernel " + launch.entry->name + ": " + f.what();
    if (setting("FAKE_CUDA_LOG", 0) != 0) std::fprintf(stderr, "fake cuda: %s\n", fault.c_str());
  }
}

}  // namespace tiny::emulation

using tiny::emulation::FakeDriver;

extern "C" {

int64_t fake_cuda_count(const char* kind) {
  FakeDriver& driver = FakeDriver::get();
  const std::lock_guard guard(driver.lock);
  const std::string_view of = kind;
  if (of == "memory") return static_cast<int64_t>(driver.memory.allocations());
  if (of == "host memory") return std::ssize(driver.host_memory);
  if (of == "stream") return static_cast<int64_t>(driver.streams.size());
  if (of == "event") return static_cast<int64_t>(driver.events.size());
  if (of == "module") return static_cast<int64_t>(driver.modules.size());
  if (of == "link") return static_cast<int64_t>(driver.links.size());
  if (of == "graph") return static_cast<int64_t>(driver.graphs.size() + driver.executables.size());
  if (of == "context") {
    int64_t sum = 0;
    for (const CUctx_st& context : driver.contexts) sum += context.retained;
    return sum;
  }
  if (of == "calls") return driver.calls;
  if (!of.starts_with("cu")) return -1;
  const auto calls = driver.calls_of.find(of);
  return calls == driver.calls_of.end() ? 0 : calls->second;
}

const char* fake_cuda_fault() {
  return FakeDriver::get().fault.c_str();
}

void fake_cuda_reset() {
  FakeDriver& driver = FakeDriver::get();
  const std::lock_guard guard(driver.lock);
  driver.is_initialised = false;
  driver.memory = {};
  driver.contexts = {};
  for (void* one : driver.host_memory) std::free(one);
  driver.host_memory.clear();
  driver.streams.clear();
  driver.events.clear();
  driver.modules.clear();
  driver.links.clear();
  driver.graphs.clear();
  driver.executables.clear();
  driver.fault.clear();
  tiny::emulation::pushed().clear();
}
}

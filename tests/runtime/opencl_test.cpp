// Device opencl on a driver that fails on demand.
#include "runtime/opencl/device.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/stop.h"
#include "base/text.h"
#include "tests/runtime/fake_opencl.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

using fake_opencl::driver;
using testing::expect_failure;
using testing::failure_of;

class OpenCl : public ::testing::Test {
 protected:
  void SetUp() override { driver() = {}; }
  void TearDown() override { EXPECT_EQ(driver().live, 0) << "objects of the driver were lost"; }
};

constexpr int64_t kKept = 1 << 20;

Code code_of(const char* name) {
  Code code;
  code.kind = CodeKind::OpenCl;
  code.name = code.entry = name;
  code.text = "__kernel void k() {}";
  return code;
}

// Everything that a device is asked for, once.
void use_all() {
  const auto device = make_opencl_device({.part = 1, .parts = 2}, kKept);
  const Ref<Queue> queue = device->make_queue();
  const Ref<Buffer> a = device->allocate(100), b = device->allocate(300);
  char bytes[100] = {7};
  device->copy_in(queue.get(), *a, 0, bytes, 100);
  device->copy(queue.get(), *b, 100, *a, 0, 100);
  const Code code = code_of("k");
  const std::vector<Ref<Executable>> loaded = device->load({&code, 1});
  const Argument arguments[] = {{a.get(), 0}, {b.get(), 256}};
  const int64_t variable = 5;
  const Launch launch{loaded[0].get(), arguments, {&variable, 1}, 0, 3};
  device->clear_status(*queue);
  const Ref<Event> before = device->record(*queue);
  device->launch(queue.get(), launch, StopSignal());
  const std::vector<Launch> many(100, launch);
  device->prepare(many)->run(queue.get(), StopSignal());
  const Ref<Event> after = device->record(*queue);
  device->wait(queue.get());
  EXPECT_EQ(device->status(*queue), 0);
  EXPECT_GT(device->seconds(*before, *after), 0);
  std::memset(bytes, 0, sizeof bytes);
  device->copy_out(nullptr, bytes, *b, 100, 100);
  EXPECT_EQ(bytes[0], 7);
}

TEST_F(OpenCl, IsAskedForAllItHas) {
  use_all();
  for (const char* call : {"clEnqueueNDRangeKernel", "clEnqueueCopyBuffer", "clWaitForEvents"})
    EXPECT_GT(driver().calls[call], 0) << call;
}

// Each call fails in its turn: the error names it and what it said, and nothing is lost.
TEST_F(OpenCl, EveryFailingCallIsNamed) {
  use_all();
  const std::map<std::string, int> calls = driver().calls;
  for (const auto& [call, count] : calls) {
    const bool is_asking = call.starts_with("clGet") || call.starts_with("clRelease");
    if (is_asking) continue;
    driver() = {};
    driver().planted[call] = CL_INVALID_VALUE;
    expect_failure(failure_of(use_all), Status::Device, {call.c_str(), "CL_INVALID_VALUE"});
    EXPECT_EQ(driver().live, 0) << call;
  }
}

TEST_F(OpenCl, WithoutMemoryWhatIsKeptIsGivenBackFirst) {
  const auto device = make_opencl_device({0}, kKept);
  {
    const Ref<Buffer> gone = device->allocate(5000);
  }
  EXPECT_EQ(device->kept_bytes(), 5120);
  driver().planted["clCreateBuffer"] = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  const Ref<Buffer> larger = device->allocate(9000);
  EXPECT_EQ(device->kept_bytes(), 0);
  driver().planted["clCreateBuffer"] = CL_OUT_OF_RESOURCES;
  expect_failure(failure_of([&] { device->allocate(700); }), Status::OutOfMemory,
                 {"clCreateBuffer", "CL_OUT_OF_RESOURCES", "700 bytes"});
  expect_failure(failure_of([&] { device->allocate(int64_t{1} << 50); }), Status::OutOfMemory,
                 {"buffers of at most"});
}

TEST_F(OpenCl, BuffersOfASizeAreUsedAgain) {
  const auto device = make_opencl_device({0}, kKept);
  {
    const Ref<Buffer> gone = device->allocate(5000);
  }
  const int made = driver().calls["clCreateBuffer"];
  {
    const Ref<Buffer> again = device->allocate(4900);
  }
  EXPECT_EQ(driver().calls["clCreateBuffer"], made);
  device->release_kept();
  EXPECT_EQ(device->kept_bytes(), 0);
}

TEST_F(OpenCl, ALostDeviceStaysLost) {
  for (const cl_int code : {CL_DEVICE_NOT_AVAILABLE, CL_OUT_OF_RESOURCES}) {
    const auto device = make_opencl_device({0}, kKept), other = make_opencl_device({0}, kKept);
    const Ref<Queue> queue = device->make_queue();
    driver().planted["clFinish"] = code;
    expect_failure(failure_of([&] { device->wait(queue.get()); }), Status::DeviceLost,
                   {"clFinish", opencl::name_of_error(code).c_str()});
    expect_failure(failure_of([&] { device->allocate(1); }), Status::DeviceLost, {"was lost"});
    expect_failure(failure_of([&] { device->clear_status(*queue); }), Status::DeviceLost,
                   {"was lost"});
    other->allocate(1);
  }
}

TEST_F(OpenCl, AChildOfTheProcessIsTold) {
  const auto device = make_opencl_device({0}, kKept);
  const pid_t child = fork();
  if (child == 0) {
    Status status = Status::Ok;
    try {
      device->allocate(1);
    } catch (const Error& e) {
      status = e.status();
    }
    _exit(status == Status::DeviceLost ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(OpenCl, TheCompilerIsQuoted) {
  const auto device = make_opencl_device({0}, kKept);
  driver().planted["clBuildProgram"] = CL_BUILD_PROGRAM_FAILURE;
  driver().log = "line 7: no such thing";
  const Code code = code_of("k");
  expect_failure(failure_of([&] { device->load({&code, 1}); }), Status::Device,
                 {"clBuildProgram", "CL_BUILD_PROGRAM_FAILURE", "kernel k", "line 7"});
}

TEST_F(OpenCl, AGroupThatTheCompiledKernelCannotHaveIsRefused) {
  const auto device = make_opencl_device({0}, kKept);
  Code code = code_of("k");
  code.group = {16, 8, 1};
  expect_failure(failure_of([&] { device->load({&code, 1}); }), Status::Device,
                 {"groups of 128 threads", "it can have 64"});
}

TEST_F(OpenCl, DivisionsAreRoundedByTheDeviceOrInFloat64) {
  const Code code = code_of("k");
  make_opencl_device({0}, kKept)->load({&code, 1});
  EXPECT_NE(driver().options.back().find("correctly-rounded"), std::string::npos);
  driver().devices[0].floats &= ~cl_device_fp_config{CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT};
  make_opencl_device({0}, kKept)->load({&code, 1});
  EXPECT_NE(driver().options.back().find("DIVIDE_IN_FLOAT64"), std::string::npos);
  driver().devices[0].extensions = "";
  expect_failure(failure_of([] { make_opencl_device({0}, kKept); }), Status::Unsupported,
                 {"cannot be used", "divisions"});
}

TEST_F(OpenCl, DevicesAreNumberedAndSayWhyTheyCannotBeUsed) {
  driver().devices = {{}, {.model = "Old", .version = "OpenCL 1.1 old"}, {.floats = CL_FP_INF_NAN}};
  const std::vector<opencl::Facts> found = opencl_devices();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "opencl");
  EXPECT_EQ(found[0].missing, "");
  EXPECT_EQ(found[1].name, "opencl:1");
  EXPECT_NE(found[1].missing.find("OpenCL 1.1 old"), std::string::npos) << found[1].missing;
  EXPECT_NE(found[2].missing.find("rounding to nearest"), std::string::npos) << found[2].missing;
  expect_failure(failure_of([] { make_opencl_device({1}, kKept); }), Status::Unsupported,
                 {"opencl:1", "Old", "1.2 is needed"});
  expect_failure(failure_of([] { make_opencl_device({3}, kKept); }), Status::Device,
                 {"opencl:3", "there are 3"});
  driver().devices.clear();
  expect_failure(failure_of([] { make_opencl_device({0}, kKept); }), Status::Device,
                 {"no driver has a device"});
}

// All are made of one partition, whoever asks, and what is not used is given back at once.
TEST_F(OpenCl, APartHasItsShareOfTheUnits) {
  driver().units = 5;
  for (int64_t part = 0; part < 3; ++part) {
    const auto device = make_opencl_device({.number = 0, .part = part, .parts = 3}, kKept);
    EXPECT_EQ(device->name(), cat("opencl:0.", part, "/3"));
    EXPECT_EQ(device->facts().units, part < 2 ? 2 : 1);
    EXPECT_EQ(driver().calls["clCreateSubDevices"], part + 1);
    EXPECT_EQ(driver().calls["clReleaseDevice"], 2 * (part + 1) + part);
  }
  expect_failure(failure_of([] { make_opencl_device({.part = 0, .parts = 6}, kKept); }),
                 Status::Device, {"has 5 units, too few for 6 parts"});
  for (const char* call : {"clCreateSubDevices", "clCreateContext", "clCreateCommandQueue"}) {
    driver().planted[call] = CL_DEVICE_PARTITION_FAILED;
    expect_failure(failure_of([] { make_opencl_device({.part = 0, .parts = 2}, kKept); }),
                   Status::Device, {call, "CL_DEVICE_PARTITION_FAILED"});
    EXPECT_EQ(driver().live, 0) << call;
  }
}

// A processor's compiler makes loops of a group's items, inside of those that the kernel has.
TEST_F(OpenCl, ItemsOfAProcessorAreAlone) {
  const Code code = code_of("k");
  constexpr cl_device_type kTypes[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_CPU};
  for (const cl_device_type type : kTypes) {
    driver().type = type;
    const auto device = make_opencl_device({0}, kKept);
    const std::vector<Ref<Executable>> loaded = device->load({&code, 1});
    device->launch(nullptr, {loaded[0].get(), {}, {}, 0, 1000}, StopSignal());
  }
  EXPECT_EQ(driver().items, (std::vector<size_t>{64, 1}));
}

TEST_F(OpenCl, WorkThatIsToEndIsNotGiven) {
  const auto device = make_opencl_device({0}, kKept);
  const Ref<Queue> queue = device->make_queue();
  const Code code = code_of("k");
  const std::vector<Ref<Executable>> loaded = device->load({&code, 1});
  const std::vector<Launch> launches(100, Launch{loaded[0].get(), {}, {}, 0, 1});
  StopSignal stop;
  stop.set_token(make_ref<CancelToken>());
  stop.begin(0);
  const Ref<Prepared> prepared = device->prepare(launches);
  prepared->run(queue.get(), stop);
  EXPECT_EQ(driver().calls["clEnqueueNDRangeKernel"], 100);
  EXPECT_GT(driver().calls["clWaitForEvents"], 0) << "what is given is never far ahead";
  stop.token()->set();
  expect_failure(failure_of([&] { prepared->run(queue.get(), stop); }), Status::Cancelled, {});
  expect_failure(failure_of([&] { device->launch_all(queue.get(), launches, stop); }),
                 Status::Cancelled, {});
  EXPECT_EQ(driver().calls["clEnqueueNDRangeKernel"], 100);
}

}  // namespace
}  // namespace tiny

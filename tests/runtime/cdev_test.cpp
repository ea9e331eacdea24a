#include "runtime/cdev/cdev.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "runtime/host.h"
#include "tests/support/failure.h"
#include "tests/support/temporary_folder.h"

namespace tiny {
namespace {

Code c_code(const std::string& entry, const std::string& text) {
  return {CodeKind::C, entry, entry, {}, text, 0};
}

constexpr const char* kArgs =
    "struct KernelArgs { void *const *buffers; const long *variables; char *scratch; long begin, "
    "end, "
    "worker; long *status; };\n";

TEST(CDevice, RunsWhatItCompiled) {
  const auto device = make_c_device();
  const std::string text =
      std::string(kArgs) +
      "void twice(const struct KernelArgs *a) { int *x = a->buffers[0]; for (long i = "
      "a->begin; i < a->end; ++i) x[i] *= 2; }\n"
      "void count(const struct KernelArgs *a) { *a->status = a->variables[1]; }\n";
  const std::vector<Code> codes = {c_code("twice", text), c_code("count", "")};
  const auto executables = device->load(codes);
  int data[4] = {1, 2, 3, 4};
  const Ref<Buffer> buffer = device->wrap(data, sizeof data);
  const Argument argument{buffer.get(), 4};
  device->launch(nullptr, {executables[0].get(), {&argument, 1}, {}, 0, 2}, StopSignal());
  EXPECT_EQ(data[0], 1);
  EXPECT_EQ(data[1], 4);
  EXPECT_EQ(data[2], 6);
  EXPECT_EQ(data[3], 4);
  const int64_t variables[] = {5, 7};
  const Ref<Queue> queue = device->make_queue();
  device->launch(queue.get(), {executables[1].get(), {}, variables, 0, 1}, StopSignal());
  EXPECT_EQ(device->status(*queue), 7);
}

TEST(CDevice, AnExecutableOutlivesItsDevice) {
  Ref<Executable> executable;
  {
    const std::string text =
        std::string(kArgs) + "void set(const struct KernelArgs *a) { *a->status = 3; }\n";
    const Code code = c_code("set", text);
    executable = make_c_device()->load({&code, 1})[0];
  }
  int64_t status = 0;
  static_cast<const HostExecutable&>(*executable)
      .run({nullptr, nullptr, nullptr, 0, 1, 0, &status});
  EXPECT_EQ(status, 3);
}

TEST(CDevice, AMissingCompilerIsAnErrorThatNamesIt) {
  const auto device = make_c_device({.compiler = "no-such-compiler-here"});
  const Code code = c_code("f", "void f(void) {}");
  const Error e = testing::failure_of([&] { device->load({&code, 1}); });
  EXPECT_EQ(e.status(), Status::Device);
  EXPECT_NE(e.message().find("no-such-compiler-here"), std::string::npos) << e.message();
}

TEST(CDevice, WhatTheCompilerSaysIsInTheError) {
  const auto device = make_c_device();
  const Code code = c_code("f", "void f(void) { undeclared_thing(1; }");
  const Error e = testing::failure_of([&] { device->load({&code, 1}); });
  EXPECT_EQ(e.status(), Status::Device);
  EXPECT_NE(e.message().find("undeclared_thing"), std::string::npos) << e.message();
}

TEST(CDevice, AMissingEntryIsAnError) {
  const Code code = c_code("absent", "void present(void) {}");
  const Error e = testing::failure_of([&] { make_c_device()->load({&code, 1}); });
  EXPECT_EQ(e.status(), Status::Device);
  EXPECT_NE(e.message().find("absent"), std::string::npos) << e.message();
}

TEST(CDevice, LeavesNoFilesBehind) {
  const testing::TemporaryFolder folder;
  const auto device = make_c_device({.directory = folder.string()});
  const Code good = c_code("f", "void f(void) {}"), bad = c_code("f", "void f(");
  const auto executables = device->load({&good, 1});
  EXPECT_THROW(device->load({&bad, 1}), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CDevice, AFolderThatCannotBeMadeIsAnError) {
  const auto device = make_c_device({.directory = "/no/such/folder"});
  const Code code = c_code("f", "void f(void) {}");
  EXPECT_EQ(testing::failure_of([&] { device->load({&code, 1}); }).status(), Status::Device);
}

TEST(CDevice, CodeOfAnotherKindIsRefused) {
  const Code code{CodeKind::Bytecode, "f", "f", {}, "", 0};
  EXPECT_EQ(testing::failure_of([&] { make_c_device()->load({&code, 1}); }).status(),
            Status::Device);
}

}  // namespace
}  // namespace tiny

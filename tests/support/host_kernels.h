// Kernels in HIP and Metal, compiled for the host by headers that stand for those languages' own
// (tests/support/devices) and run there, thread after thread.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "ir/linear.h"
#include "render/c/hip.h"
#include "render/c/metal.h"
#include "tests/support/temporary_folder.h"

namespace tiny::testing {

// The folder of the headers; DEVICE_HEADERS names it.
inline std::string device_headers() {
  const char* folder = std::getenv("DEVICE_HEADERS");
  return folder ? folder : "tests/support/devices";
}

enum class Dialect { Hip, Metal };

inline std::string text_of(Dialect dialect, std::span<const LinearProgram> programs) {
  return dialect == Dialect::Hip ? render_hip(programs) : render_metal(programs);
}

class HostKernels {
 public:
  // What the device writes behind a failed check: its number and one, and its position.
  struct Status {
    int32_t check = 0;
    int32_t unused = 0;
    int64_t position = 0;
  };

  HostKernels(Dialect dialect, std::span<const LinearProgram> programs) {
    std::string text = text_of(dialect, programs);
    if (dialect == Dialect::Metal)
      text =
          std::regex_replace(text, std::regex(R"(threadgroup uchar (\w+)\[)"), "static uchar $1[");
    for (const LinearProgram& program : programs)
      text += dialect == Dialect::Hip ? hip_caller(program) : metal_caller(program);
    const std::string file = (folder_ / "unit.cpp").string(), library = folder_ / "unit.so";
    std::ofstream(file) << text;
    const std::string command =
        cat("clang++-19 -std=c++17 -O1 -fno-fast-math -w -ffp-contract=off -march=native -shared "
            "-fPIC -I ",
            device_headers(), " -I ", device_headers(), "/../../.. -o ", library, " ", file);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
    if (!library_) return;
    for (const LinearProgram& program : programs)
      functions_.push_back(
          reinterpret_cast<Function>(dlsym(library_, cat("run_", program.name).c_str())));
  }
  HostKernels(const HostKernels&) = delete;
  HostKernels& operator=(const HostKernels&) = delete;
  ~HostKernels() {
    if (library_) dlclose(library_);
  }

  Status run(size_t program, void* const* buffers, const int64_t* variables, int64_t begin,
             int64_t end) const {
    Status status;
    functions_.at(program)(buffers, variables, begin, end, &status);
    return status;
  }

 private:
  using Function = void (*)(void* const* buffers, const int64_t* variables, int64_t begin,
                            int64_t end, Status* status);

  static std::string caller(const LinearProgram& program, const std::string& before,
                            const std::string& arguments) {
    const auto& group = program.group;
    return cat("extern \"C\" void run_", program.name,
               "(void *const *buffers, const i64 *variables, i64 begin, i64 end, int *status) {\n",
               before, "  host::run({", group[0], ", ", group[1], ", ", group[2],
               "}, end - begin, [&] { ", program.name, "(", arguments, "); });\n}\n");
  }
  static std::string hip_caller(const LinearProgram& program) {
    std::string arguments;
    for (size_t i = 0; i < program.params.size(); ++i)
      arguments += cat("(uchar *)buffers[", i, "], 0, ");
    for (size_t i = 0; i < program.variables.size(); ++i) arguments += cat("variables[", i, "], ");
    return caller(program, "", arguments + "begin, end, status");
  }
  static std::string metal_caller(const LinearProgram& program) {
    std::string arguments, numbers;
    for (size_t i = 0; i < program.params.size(); ++i) {
      arguments += cat("(uchar *)buffers[", i, "], ");
      numbers += "0, ";
    }
    for (size_t i = 0; i < program.variables.size(); ++i) numbers += cat("variables[", i, "], ");
    return caller(program, cat("  const i64 numbers[] = {", numbers, "begin, end};\n"),
                  arguments +
                      "numbers, status, host::group_of_grid, host::thread_of_group, "
                      "host::group_of_grid");
  }

  TemporaryFolder folder_;
  void* library_ = nullptr;
  std::vector<Function> functions_;
};

}  // namespace tiny::testing

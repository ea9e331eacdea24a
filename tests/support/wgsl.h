// WGSL by what implements WebGPU in Python (package wgpu), where it is: tests/render/run_wgsl.py.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "ir/linear.h"
#include "render/wgsl/wgsl.h"
#include "tests/support/temporary_folder.h"

namespace tiny::testing {

inline constexpr const char* kNoWebGpu =
    "no package wgpu, or no device for it: scripts/setup.sh has both";

// Modules, and runs of them, that are done together.
class WgslRuns {
 public:
  using Bytes = std::vector<std::byte>;

  // To be checked.  False where WGSL cannot say the program.
  bool add(const LinearProgram& program) {
    std::string text;
    try {
      text = render_wgsl(program);
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), Status::Unsupported) << e.message();
      return false;
    }
    stems_.push_back(folder_ / cat("m", stems_.size()));
    std::ofstream(stems_.back().string() + ".wgsl") << text;
    return true;
  }
  // The one that was added last is run with such contents of its buffers, the last of which is the
  // status.
  void run_it(const LinearProgram& program, std::vector<Bytes>& buffers, const int64_t* variables,
              int64_t begin, int64_t end) {
    const std::string stem = stems_.back().string();
    std::ofstream file(stem + ".run");
    const int64_t threads = program.grouped || !program.threaded ? 1 : 64;
    file << program.name << "\n" << (end - begin + threads - 1) / threads << "\n";
    for (size_t i = 0; i < program.params.size(); ++i) file << "0 ";
    for (size_t i = 0; i < program.variables.size(); ++i) file << variables[i] << " ";
    file << begin << " " << end << "\n";
    for (size_t i = 0; i < buffers.size(); ++i)
      std::ofstream(cat(stem, ".", i), std::ios::binary)
          .write(reinterpret_cast<const char*>(buffers[i].data()), std::ssize(buffers[i]));
    runs_.push_back({stem, &buffers});
  }
  size_t size() const { return stems_.size(); }

  // False where nothing can, or is not told with what; what is refused fails the test.
  bool finish() {
    const char* python = std::getenv("PYTHON");
    const char* runner = std::getenv("WGSL_RUNNER");
    if (!runner) {
      ADD_FAILURE()
          << "WGSL_RUNNER is not set: ctest gives it the path of tests/render/run_wgsl.py";
      return false;
    }
    const std::string command = cat(python ? python : "python3", " ", runner, " ", folder_.string(),
                                    " > ", (folder_ / "log").string());
    const int status = std::system(command.c_str());
    constexpr int kSkip = 77;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kSkip) return false;
    std::ifstream log(folder_ / "log");
    EXPECT_EQ(status, 0) << std::string(std::istreambuf_iterator<char>(log), {}).substr(0, 4000);
    for (const Run& run : runs_)
      for (size_t i = 0; i < run.buffers->size(); ++i)
        std::ifstream(cat(run.stem, ".", i), std::ios::binary)
            .read(reinterpret_cast<char*>((*run.buffers)[i].data()), std::ssize((*run.buffers)[i]));
    return true;
  }

 private:
  struct Run {
    std::string stem;
    std::vector<Bytes>* buffers;
  };
  TemporaryFolder folder_;
  std::vector<std::filesystem::path> stems_;
  std::vector<Run> runs_;
};

}  // namespace tiny::testing

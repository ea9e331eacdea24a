// The assembler of PTX (PTXAS names it; scripts/setup.sh installs it), for tests of what is
// rendered.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/support/temporary_folder.h"

namespace tiny::testing {

// The program, empty where there is none: in CI that fails the test.
inline std::string ptx_assembler() {
  const char* file = std::getenv("PTXAS");
  const char* ci = std::getenv("CI");
  if (file && *file) return file;
  EXPECT_FALSE(ci && std::string(ci) == "true") << "no ptxas: scripts/setup.sh installs it";
  return "";
}

inline constexpr const char* kNoAssembler = "PTXAS names no assembler: scripts/setup.sh has one";

struct Assembled {
  int status = 0;
  std::string log;  // with what each kernel uses

  // The entries of which registers went to memory, each with the words of the assembler.
  std::vector<std::string> spilled() const {
    const std::string begin = "Function properties for ";
    std::vector<std::string> found;
    for (size_t at = 0; (at = log.find(begin, at)) != std::string::npos;) {
      at += begin.size();
      const std::string words = log.substr(at, log.find('\n', log.find('\n', at) + 1) - at);
      if (words.find(" 0 bytes spill stores, 0 bytes spill loads") == std::string::npos)
        found.push_back(words);
    }
    return found;
  }
};

// `level`: of optimisation; 0 is the quickest.
inline Assembled assemble(const std::string& assembler, const std::string& text,
                          const std::string& target, int level = 3) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "unit.ptx";
  std::ofstream(file) << text;
  const std::string command =
      cat(assembler, " -v -O", level, " -arch=", target, " ", file, " -o ", file, ".cubin 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  Assembled out;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.log.append(buffer, n);
  out.status = pclose(pipe);
  return out;
}

}  // namespace tiny::testing

// Running a program to its end, without a shell.
#pragma once

#include <string>
#include <vector>

namespace tiny {

struct ProcessResult {
  bool ok = false;      // it ran and returned 0
  std::string message;  // what it wrote to stderr, cut to a few kilobytes, or why it did not run
};

// Runs arguments[0], looked up in PATH, with stdin and stdout at /dev/null and stderr in the file
// `messages`, which is made.
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& messages);

}  // namespace tiny

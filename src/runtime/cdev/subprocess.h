// Running a program to its end, without a shell.
#pragma once

#include <string>
#include <vector>

#include "base/stop.h"

namespace tiny {

struct ProcessResult {
  bool ok = false;      // it ran and returned 0
  std::string message;  // what it wrote to stderr, cut to a few kilobytes, or why it did not run
};

// Runs arguments[0], looked up in PATH, with stdin and stdout at /dev/null and stderr in the file
// `messages`, which is made.  Once `stop` is over, the process and its children are killed.
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& messages,
                          const StopSignal& stop);

}  // namespace tiny

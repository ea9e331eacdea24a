// How a command fails: the exit codes of the command line, the exception that carries one, and the
// bridge from the library's statuses to it.
//   Every failure ends in main(), which prints it once: on stderr, and with --json on stdout.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "tiny.h"

namespace tiny::cli {

// The exit codes; scripts rely on these numbers.
enum class Exit : int {
  Ok = 0,
  Mismatch = 1,  // it ran, but a comparison or a test case failed
  Usage = 2,
  InvalidModel = 3,
  Unsupported = 4,
  File = 5,   // an input or output file
  Limit = 6,  // a limit, memory or time ran out
  Internal = 70,
  Interrupted = 130,
};

// What went wrong, as "error" shows it; empty fields are not known.
class Failure : public std::exception {
 public:
  Failure(Exit exit, std::string status, std::string message)
      : exit(exit), status(std::move(status)), message(std::move(message)) {}

  const char* what() const noexcept override { return message.c_str(); }

  Exit exit;
  std::string status;  // a name of tiny_status_name, or "MISMATCH"
  std::string message;
  std::string call;
  std::string node;
  std::string file;
};

// The exit code that a status of the library means when nothing more is known.
Exit exit_of(tiny_status status);

// The failure that the last call of this thread reported as `status`.
Failure last_failure(tiny_status status, std::string_view file = {});

// Throws last_failure() unless the status is OK.
void check(tiny_status status, std::string_view file = {});

// Wrong usage: exit 2.
Failure usage_failure(std::string message);

// A file that is missing, unreadable or does not fit: exit 5.
Failure file_failure(std::string_view file, std::string_view why);

}  // namespace tiny::cli

// What concerns the process: standard output and error, the interrupt key, crashes, child
// processes.
//   Results go to stdout in whole pieces under one lock, so that an interrupt never cuts one in
//   two. Progress goes to stderr, only to a terminal, and only for what takes longer than a second.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tiny::cli {

using Clock = std::chrono::steady_clock;

// Milliseconds since `start`.
double ms_since(Clock::time_point start);

// Makes an interrupt (SIGINT, SIGTERM, SIGHUP) end the process with 130 and a crash end it with 70;
// to be called once, before any thread is started.  With `json`, both print an object with "error"
// for `command` on stdout.
void watch_process(bool json, bool quiet, std::string_view command);

// Writes to stdout at once; throws Failure if it cannot.
void print(std::string_view text);

// A line on stderr that --quiet leaves out.
void warn(std::string_view text);

// What says how far a measurement is without a call for each run, which would cost it time.
struct Gauge {
  const std::atomic<int64_t>* done = nullptr;  // of `total` runs,
  int64_t total = 0;
  double seconds = 0;  // or it ends after this time
};

// Names what is being done, for the progress line, while it lives.
class Phase {
 public:
  explicit Phase(std::string what, Gauge gauge = {});
  ~Phase();
  Phase(const Phase&) = delete;
};
// How far the phase is, for the progress line: `done` of `total` steps of `what`.
void note_progress(std::string_view what, int64_t done, int64_t total);
// The phase that the latest exception ended, "" if there was none.
std::string failed_phase();

// How a child process ended, and all that it wrote.
struct Ended {
  int exit_code = -1;  // -1: it was killed
  int signal = 0;
  bool timed_out = false;
  double ms = 0;
  std::string out;
  std::string err;  // the last 4 KiB
};

// Child processes of this very program, several at a time.
class Children {
 public:
  Children();
  ~Children();
  Children(const Children&) = delete;

  // Starts `tiny arguments..`; it is killed after `seconds`.
  void start(size_t id, const std::vector<std::string>& arguments, double seconds);
  size_t running() const;
  // Waits until one of them has ended.
  std::pair<size_t, Ended> wait();

 private:
  struct Child;
  static bool drain(int& file, std::string& text);
  static bool serve(Child& child, bool out_ready, bool err_ready);
  static Ended bury(Child& child);

  std::vector<Child> children_;
};

// Called first by a child: it ends when its parent does.
void end_with_parent();

}  // namespace tiny::cli

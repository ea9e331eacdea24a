// The commands of the command line.  Each takes its flags and returns what is to be printed; main
// prints it, as text or as one JSON object, and exits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare.h"
#include "failure.h"
#include "inputs.h"
#include "json.h"
#include "session.h"
#include "text.h"

namespace tiny::cli {

// The result of a command: `body` holds the keys after the common ones.
struct Outcome {
  Json body = Json::object();
  std::string text;
  std::optional<Failure> failure;  // it ran, but not all is as it was asked to be
  bool printed = false;            // the command has printed everything itself
};

struct RunFlags {
  std::string model;
  InputFlags input;
  std::vector<std::string> expect;  // [NAME=]FILE
  Tolerance tolerance;
  std::vector<std::string> outputs;  // NAME,..
  std::string save;
  int64_t top = 0;
  std::string labels;
  std::string print = "summary";
  bool times = false;  // in plain text; JSON has them always
};
Outcome run_command(const RunFlags& flags, const CommonFlags& common);

struct InfoFlags {
  std::string model;
  bool check = false;
};
Outcome info_command(const InfoFlags& flags, const CommonFlags& common);

struct BenchFlags {
  std::string model;
  InputFlags input;
  double duration = 3;  // seconds
  std::optional<int64_t> runs;
  int64_t warmup = 5;
  std::vector<int64_t> threads;
  int64_t concurrency = 1;
  int64_t cold = 0;
  bool profile = false;
  std::string trace;  // the file of a trace in Chrome's format; empty: none
  bool samples = false;
  std::vector<std::string> arguments;  // of this process, for the new ones of --cold
  std::optional<int64_t> one_run;      // in such a process: one run with that many threads
};
Outcome bench_command(const BenchFlags& flags, const CommonFlags& common);

struct TestFlags {
  std::vector<std::string> folders;
  std::string filter, exclude;
  std::string known;
  int64_t jobs = 1;
  double case_timeout = 60;  // seconds
  Tolerance tolerance;
  std::vector<std::string> arguments;  // of this process, for the ones that run the cases
  std::string one_case;                // in such a process: the folder of its case
};
Outcome test_command(const TestFlags& flags, const CommonFlags& common);

struct ExportFlags {
  std::string model;
  std::string folder;
  std::string name;  // empty: the model's file says it
};
Outcome export_command(const ExportFlags& flags, const CommonFlags& common);

Outcome devices_command(const CommonFlags& common);

// The keys that every object begins with.
Json json_head(const std::string& command, const std::optional<Failure>& failure);
// The failure that a comparison or a test case makes: exit 1.
Failure mismatch(std::string message);

}  // namespace tiny::cli

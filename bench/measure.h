// Interleaved timing of contenders that do the same work in one process.
//
// A row is one piece of work and everyone who can do it.  Each round gives every contender a turn
// of some milliseconds, so that a change of the machine's speed meets all of them; every call is
// one sample.  Before the first round all results are compared with the first peer's: a contender
// that is wrong has no speed.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tiny::bench {

struct Contender {
  std::string name;
  std::string settings;  // how it was set up, for the reader
  // What it is counted as: "tiny", "peer" (does the same work per call), "single" (tiny on one
  // thread, in a row of several), "limit" (a bound of the machine, no result; of several the
  // lowest counts), "work limit" (another bound: the higher of both counts), "one limit" (the first
  // on one thread), or "other" (does less or more work per call, and is shown for
  // comparison).
  std::string kind;
  std::function<void()> call;
  std::function<std::vector<float>()> result;  // of the last call; none for a limit
  double scale = 1;  // what part of a call's time counts: a probe does more than the row's work
};

struct Row {
  std::string name;
  double flops = 0;  // of one call, products with padding included
  double bytes = 0;  // that one call must read and write
  int threads = 1;
  std::vector<Contender> contenders = {};
  double tolerance = 1e-3;   // of the results' largest magnitude
  std::string kernels = "";  // what tiny made of it, JSON
  size_t interpreted = 0;    // of them, without machine code
};

struct Samples {
  std::vector<double> seconds;
  double error = 0;  // max|a-b| / max|b| against the first peer
};

struct Pace {
  double seconds = 1;  // that a row is measured for
  int rounds = 20;     // that a row has, unless that takes several times as long
  double turn = 0.002;
  double pause = 0;  // seconds before each turn, for the threads of the last one to fall asleep
};

std::vector<Samples> measure(const Row& row, const Pace& pace);

double best(const std::vector<double>& seconds);
double median(std::vector<double> seconds);

// One JSON object of a row: its contenders with best and median milliseconds and their errors.
std::string row_json(const Row& row, const std::vector<Samples>& samples);

// The same of a row that could not be measured.
std::string failed_json(const std::string& name, const std::string& problem);

// Values in [-1, 1) that depend on nothing but the seed.
std::vector<float> random_values(size_t count, uint32_t seed);

// As many fused multiply-additions as the processor can do.
Contender fma_limit(double flops, int threads, bool is_wide);
// Copies of half of `bytes`, so that `bytes` are read or written: by memcpy and past the caches.
std::vector<Contender> copy_limits(double bytes);
// One pass over `bytes` that only reads.
Contender read_limit(double bytes);
// The same by so many threads at once, and by one of them.
std::vector<Contender> read_limits(double bytes, int threads);

}  // namespace tiny::bench

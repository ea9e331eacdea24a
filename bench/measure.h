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
  // What it is counted as: "tiny", "peer" (does the same work per call), "prepared" (a peer whose
  // constants were prepared beforehand), "limit" (a bound of the machine, no result).
  std::string kind;
  std::function<void()> call;
  std::function<std::vector<float>()> result;  // of the last call; none for a limit
};

struct Row {
  std::string name;
  double flops = 0;     // of one call, products with padding included
  double bytes = 0;     // that one call must read and write
  std::string kernels;  // what tiny made of it, JSON
  std::vector<Contender> contenders;
};

struct Samples {
  std::vector<double> seconds;
  double error = 0;  // max|a-b| / max|b| against the first peer
};

// Rounds go on for `seconds`, but are never fewer than `rounds`.
std::vector<Samples> measure(const Row& row, double seconds, int rounds);

double best(const std::vector<double>& seconds);
double median(std::vector<double> seconds);

// One JSON object of a row: its contenders with best and median milliseconds and their errors.
std::string row_json(const Row& row, const std::vector<Samples>& samples);

// Values in [-1, 1) that depend on nothing but the seed.
std::vector<float> random_values(size_t count, uint32_t seed);

// As many fused multiply-additions as the processor can do, one thread: a call does `flops`.
Contender fma_limit(double flops);
// A copy of half of `bytes`, so that `bytes` are read or written.
Contender copy_limit(double bytes);

}  // namespace tiny::bench

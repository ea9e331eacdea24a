// Comparing outputs with what was expected, and summing them up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "array.h"
#include "json.h"

namespace tiny::cli {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

// As numpy.allclose(got, want, rtol, atol, equal_nan=True) decides: element by element,
// |got - want| <= atol + rtol * |want|; infinities must be equal, NaN equals NaN.  Dtype and shape
// must be the same.
struct Comparison {
  std::string file;
  std::string reason;  // why not a single element could be compared, or ""
  bool pass = true;
  double max_abs = 0;  // over finite pairs
  double max_rel = 0;  // the same, where the wanted value is not 0
  uint64_t mismatched = 0;
  uint64_t total = 0;
  std::optional<uint64_t> first;  // the row-major index of the first mismatch
  Json got, want;                 // its values

  Json json() const;
  // "2 of 10 elements differ, the first at 3: got 1.5, wanted 1".
  std::string text() const;
};
Comparison compare(const Array& got, const Array& want, const std::string& file,
                   Tolerance tolerance);

// Element i as JSON: integers exact, floats the shortest text of their dtype, bools true or false.
Json element(const Array& array, size_t i);

struct Statistics {
  Json min, max;  // over what is no NaN; null if there is nothing
  Json mean;
  uint64_t nan = 0, inf = 0;
};
Statistics statistics(const Array& array);

struct Ranked {
  size_t index;  // row-major
  std::string label;
  Json value;
};
// The k largest elements, largest first, earlier ones first among equals; NaN never.
std::vector<Ranked> top(const Array& array, size_t k, const std::vector<std::string>& labels);

// What the elements of a vector of floats (no dimension but one is above 1) are as probabilities:
// themselves, if they add up to 1, else their softmax.  None of what is no vector, is not finite,
// or lies in [0, 1] without adding up to 1: scores that stand for themselves.
struct Probabilities {
  bool is_softmax;
  std::vector<double> values;
};
std::optional<Probabilities> probabilities(const Array& array);

// The lines of a file.
std::vector<std::string> read_labels(const std::string& path);

}  // namespace tiny::cli

// Runs cases of the ONNX test suites: folders with a model.onnx and data sets beside it.
#pragma once

#include <string>
#include <vector>

#include "tests/onnx/running.h"

namespace tiny::onnx::testing {

enum class Verdict { Pass, Unsupported, Fail, Error };
const char* to_string(Verdict verdict);

struct CaseResult {
  Verdict verdict = Verdict::Error;
  std::string reason;
  // Kernels that ran, and those that were compiled to be interpreted.
  int64_t kernels = 0;
  int64_t interpreted = 0;
};

// Whether the dimensions of inputs are those of the file, or free (equal ones with one name).
enum class Sizes { Fixed, Free };

// Runs every data set of the case in this process.
CaseResult run_case(const std::string& folder, const Tolerance& tolerance,
                    Sizes sizes = Sizes::Fixed);
// The same in a child process, so that a crash or an endless loop is a result as well.
CaseResult run_case_apart(const std::string& folder, const Tolerance& tolerance, unsigned seconds,
                          Sizes sizes = Sizes::Fixed);

// Runs the model with arange(n) / n in the shape of its one input and compares its outputs with
// `<stem>_output_<k>.pb` beside it: the form of the wheel's light models.
CaseResult run_light(const std::string& file, const Tolerance& tolerance);

// Folders below `folder` that hold a model.onnx, sorted.
std::vector<std::string> cases_below(const std::string& folder);

}  // namespace tiny::onnx::testing

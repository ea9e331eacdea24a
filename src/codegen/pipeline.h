// One kernel, from the scheduler's naive form to its linear program: the table of passes.
#pragma once

#include <string>

#include "ir/kernel.h"
#include "ir/linear.h"
#include "ir/target.h"
#include "shape/shape.h"

namespace tiny {

struct PipelineOptions {
  bool verify = false;  // every pass's result against its stage's laws
  bool optimise = true;
  int debug = 0;             // what is told on stderr (docs/debugging.md)
  std::string options_text;  // optimisations to apply instead of the heuristic's choice
};

struct CodegenResult {
  LinearProgram program;
  std::string options;     // the optimisations applied, as text
  Dim threads_extent = 0;  // iterations of the THREAD range; 0: there is none
  double operations = 0;   // arithmetic operations of one launch, symbolic sizes at their largest
  double bytes = 0;        // bytes of the buffers that one launch reads and writes
};

// The kernel that options apply to: transcendentals decomposed, ranges split at divisors and merged
// where every access walks them as one.
Kernel prepare_kernel(const Kernel& kernel);

CodegenResult generate(const Kernel& kernel, const Target& target, const PipelineOptions& options);

}  // namespace tiny

// One kernel, from the scheduler's naive form to its linear program: the table of passes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/choose/choose.h"
#include "cost/machine.h"
#include "ir/kernel.h"
#include "ir/linear.h"
#include "shape/shape.h"

namespace tiny {

struct PassTime {
  const char* name;
  double seconds;
};

struct PipelineOptions {
  bool verify = false;  // every pass's result against its stage's laws
  bool optimise = true;
  double runs = kProgramRuns;  // how often the code will run, about
  std::string options_text;    // optimisations to apply instead of the cost model's choice
  // Called after each pass, if not empty; `text` makes what the pass left.
  std::function<void(const PassTime& pass, const std::function<std::string()>& text)> after_pass;
};

// What a launch does, by the kernel's variables.
struct FiguresOfSizes {
  Dim operations = 0;
  Dim bytes = 0;
};

struct CodegenResult {
  LinearProgram program;
  Kernel kernel;                       // after the last pass that leaves UOps
  std::string options;                 // the optimisations applied, as text
  std::vector<ProposalNote> proposed;  // what they were chosen from, where several were proposed
  Dim threads_extent = 0;              // iterations of the THREAD range; 0: there is none
  double operations = 0;  // arithmetic operations of one launch, symbolic sizes at their largest
  double bytes = 0;       // bytes of the buffers that one launch reads and writes
  std::optional<FiguresOfSizes> figures_of_sizes;  // of a kernel with variables
  std::vector<PassTime> passes;                    // in the order in which they ran
};

// The kernel that options apply to: transcendentals decomposed, ranges split at divisors and merged
// where every access walks them as one.
Kernel prepare_kernel(const Kernel& kernel, const Target& target);

// What a kernel of the scheduler is estimated to take under the options that generate() would
// choose for it, in seconds.
double seconds_as_chosen(const Kernel& kernel, const Machine& target);

// The program is named after the shape of its loops (codegen/figures.h).  Throws what the signal of
// the kernel's graph says.
CodegenResult generate(const Kernel& kernel, const Machine& target, const PipelineOptions& options);

// The order of a kernel's ranges and its nodes, one a line: what TINY_DEBUG=5 shows.
std::string uops_text(const Kernel& kernel);

}  // namespace tiny

#include "codegen/pipeline.h"

#include <chrono>
#include <cstdio>

#include "codegen/heuristic.h"
#include "codegen/linear_passes.h"
#include "codegen/linearize.h"
#include "codegen/options.h"
#include "codegen/ranges.h"
#include "ir/bounds.h"
#include "ir/spec.h"
#include "rules/decompositions.h"

namespace tiny {

namespace {

// Arithmetic of one launch: every node as often as its free ranges have values.
double count_operations(const Kernel& kernel) {
  double sum = 0;
  std::vector<UOp> kept;
  for (const UOp& u : topological(kernel.roots)) {
    const bool counts = (has(u.op(), kElementwise) && u.dtype().is_float() && u.op() != Op::Cast) ||
                        u.op() == Op::Reduce;
    if (!counts) continue;
    double times = 1;
    for (const UOp& below : topological({&u, 1}))
      if (below.op() == Op::Range) times *= static_cast<double>(bounds(below.src(0)).hi);
    sum += times;
  }
  return sum;
}

double count_bytes(const Kernel& kernel) {
  double sum = 0;
  for (const UOp& u : topological(kernel.roots)) {
    if (u.op() != Op::Load && u.op() != Op::Store) continue;
    const bool store = u.op() == Op::Store;
    double elements = 1;
    const ViewArg& view = u.view_arg();
    for (size_t i = 0; i < view.shape.size(); ++i)
      if (view.strides[i] != 0 && view.shape[i] != kSymbolicDim)
        elements *= static_cast<double>(view.shape[i]);
    sum += elements * static_cast<double>((store ? u.src(1).dtype() : u.dtype()).bytes());
  }
  return sum;
}

// A pass over the linear program, and why it stands where it stands.
struct LinearPass {
  const char* name;
  void (*run)(LinearProgram&);
  const char* why_here;
};
constexpr LinearPass kLinearPasses[] = {
    {"form_sub", form_sub, "before form_fma, which would take the sum"},
    {"form_fma", form_fma, "after every rewrite that could change who reads a product"},
    {"merge_equal", merge_equal, "after form_fma: a product with two readers would not be fused"},
    {"remove_dead", remove_dead, "last: the passes before leave products that nobody reads"},
};

class Clock {
 public:
  explicit Clock(bool on) : on_(on), last_(std::chrono::steady_clock::now()) {}
  void lap(const char* pass) {
    if (!on_) return;
    const auto now = std::chrono::steady_clock::now();
    std::fprintf(stderr, "  pass %-12s %8.1f us\n", pass,
                 std::chrono::duration<double, std::micro>(now - last_).count());
    last_ = now;
  }

 private:
  bool on_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace

Kernel prepare_kernel(const Kernel& kernel) {
  Kernel out = kernel;
  out.roots = decompose(kernel.roots);
  return merge_ranges(split_at_divisors(out));
}

CodegenResult generate(const Kernel& kernel, const Target& target, const PipelineOptions& options) {
  CodegenResult result;
  Clock clock(options.debug >= 5);
  result.operations = count_operations(kernel);
  result.bytes = count_bytes(kernel);
  if (options.verify) verify_kernel(kernel.roots, "schedule");
  Kernel current = prepare_kernel(kernel);
  if (options.verify) verify_decomposed(current.roots, "prepare");
  clock.lap("prepare");
  std::vector<Option> chosen;
  if (!options.options_text.empty())
    chosen = parse_options(options.options_text);
  else if (options.optimise)
    chosen = choose_options(current, target);
  current = apply_options(current, chosen);
  if (options.verify) verify_decomposed(current.roots, "options");
  result.options = to_text(chosen);
  clock.lap("options");
  if (options.debug >= 3)
    std::fprintf(stderr, "%s  options %s\n", to_string(current).c_str(), result.options.c_str());
  if (!current.ranges.empty() && current.ranges.front().kind == RangeKind::Thread)
    result.threads_extent = Dim(UOp(current.ranges.front().range.src(0)));
  result.program = linearize(current, target);
  clock.lap("linearize");
  for (const LinearPass& pass : kLinearPasses) {
    pass.run(result.program);
    if (options.verify) verify(result.program);
    clock.lap(pass.name);
  }
  if (options.debug >= 5) std::fprintf(stderr, "%s", to_string(result.program).c_str());
  return result;
}

}  // namespace tiny

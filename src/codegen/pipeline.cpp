#include "codegen/pipeline.h"

#include <chrono>

#include "base/error.h"
#include "base/text.h"
#include "codegen/choose/choose.h"
#include "codegen/figures.h"
#include "codegen/linear/interleave.h"
#include "codegen/linear/linear_passes.h"
#include "codegen/linear/overlap.h"
#include "codegen/linear/partial_sums.h"
#include "codegen/linear/polls.h"
#include "codegen/linearize/linearize.h"
#include "codegen/options/options.h"
#include "codegen/ranges.h"
#include "ir/dot.h"
#include "ir/spec.h"
#include "rules/decompositions.h"
#include "rules/split_ranges.h"
#include "rules/weighted_mean.h"

namespace tiny {

namespace {

// A pass over the linear program, and why it stands where it stands.
struct LinearPass {
  const char* name;
  void (*run)(LinearProgram&);
  const char* why_here;
};
constexpr LinearPass kLinearPasses[] = {
    {"form_sub", form_sub, "before merge_equal, which finds equal differences"},
    {"form_fma", form_fma, "after every rewrite that could change who reads a product"},
    {"overlap", overlap_steps, "before merge_equal, which finds what loops that were joined share"},
    {"sum_in_parts", sum_in_parts, "after overlap, which joins loops that are alike"},
    {"merge_equal", merge_equal, "after form_fma: a product with two readers would not be fused"},
    {"remove_dead", remove_dead, "last: the passes before leave products that nobody reads"},
};

// Times the passes and shows what each leaves.
class PassLog {
 public:
  PassLog(const PipelineOptions& options, const StopSignal* stop, CodegenResult& result)
      : options_(options), stop_(stop), result_(result), last_(std::chrono::steady_clock::now()) {}

  // The pass that ran since the last call has left `text`.
  void done(const char* pass, const std::function<std::string()>& text) {
    if (stop_) stop_->check();
    const auto now = std::chrono::steady_clock::now();
    result_.passes.push_back({pass, std::chrono::duration<double>(now - last_).count()});
    if (options_.after_pass) options_.after_pass(result_.passes.back(), text);
    last_ = std::chrono::steady_clock::now();
  }

 private:
  const PipelineOptions& options_;
  const StopSignal* stop_;
  CodegenResult& result_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace

std::string uops_text(const Kernel& kernel) {
  static constexpr const char* kKinds[] = {"", "/UPCAST", "/UNROLL", "/VEC", "/THREAD", "/DOT"};
  std::string out = "order";
  for (const KernelRange& r : kernel.ranges)
    out += cat(" r", r.range.int_arg(), ":", expression_text(r.range.src(0)),
               kKinds[static_cast<size_t>(r.kind)], r.reduced ? "*" : "",
               r.overlaps ? "/OVERLAP" : "");
  out += "\n";
  for (const UOp& f : kernel.facts) out += cat("fact ", expression_text(f), " >= 0\n");
  return out + to_string(std::span(kernel.roots));
}

namespace {

Kernel decomposed(const Kernel& kernel, const Target& target) {
  Kernel out = kernel;
  out.roots = decompose(divide_after_sums(kernel.roots), target.scales);
  return out;
}

// Only lists from outside ask for what the target cannot do.
void require_dots(const Kernel& kernel, const Target& target) {
  RangeSet words = 0;
  for (size_t i = 0; i < kernel.ranges.size(); ++i)
    if (kernel.ranges[i].kind == RangeKind::Dot) words |= RangeSet{1} << i;
  if (!words) return;
  for (const UOp& u : topological(kernel.roots)) {
    const std::optional<DotProduct> product = dot_product(u);
    if (!product || target.has_dot(product->kind)) continue;
    for (const UOp& r : u.src().subspan(1))
      require(!(words >> kernel.position(r) & 1), Status::InvalidArgument, "option DOT r",
              r.int_arg(), ": target ", target.name, " has no dot products ",
              to_string(product->kind));
  }
}

}  // namespace

Kernel prepare_kernel(const Kernel& kernel, const Target& target) {
  return merge_ranges(split_at_divisors(decomposed(kernel, target)));
}

CodegenResult generate(const Kernel& kernel, const Machine& target,
                       const PipelineOptions& options) {
  CodegenResult result;
  Kernel& current = result.kernel;
  PassLog log(options, kernel.roots.front().graph().stop(), result);
  const auto uops = [&] { return uops_text(current); };
  const auto linear = [&] { return to_string(result.program); };
  if (options.verify) verify_kernel(kernel.roots, "schedule");
  // What depends on a range's quotient alone is evaluated once for each of those.
  current = split_at_exact_divisors(kernel);
  result.operations = count_operations(current);
  result.bytes = count_bytes(current);
  if (!current.variables.empty())
    result.figures_of_sizes = {Dim(operations_of(current)), Dim(bytes_of(current))};
  current = decomposed(current, target);
  if (options.verify) verify_decomposed(current.roots, "decompose");
  log.done("decompose", uops);
  current = merge_ranges(split_at_divisors(current));
  if (options.verify) verify_decomposed(current.roots, "ranges");
  log.done("ranges", uops);
  OptimisedKernel chosen;
  if (options.options_text.empty() && options.optimise) {
    chosen = optimise(current, target, options.runs);
  } else {
    chosen.options = parse_options(options.options_text);
    chosen.kernel = apply_options(current, chosen.options);
  }
  current = std::move(chosen.kernel);
  require_dots(current, target);
  current.name = shape_name(current);
  if (options.verify) verify_decomposed(current.roots, "options");
  result.options = to_text(chosen.options);
  result.proposed = std::move(chosen.proposed);
  log.done("options", uops);
  if (!current.ranges.empty() && current.ranges.front().kind == RangeKind::Thread)
    result.threads_extent = Dim(UOp(current.ranges.front().range.src(0)));
  result.program = linearize(current, target);
  if (options.verify) verify(result.program);
  log.done("linearize", linear);
  for (const LinearPass& pass : kLinearPasses) {
    pass.run(result.program);
    if (options.verify) verify(result.program);
    log.done(pass.name, linear);
  }
  interleave(result.program, target);  // of what the passes have left
  if (options.verify) verify(result.program);
  log.done("interleave", linear);
  // Last: what is counted in a loop stays there.
  const Dim extent = result.threads_extent;
  place_polls(result.program, extent.is_const() ? extent.value() : 0);
  if (options.verify) verify(result.program);
  log.done("place_polls", linear);
  return result;
}

}  // namespace tiny

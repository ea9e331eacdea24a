#include "codegen/pipeline.h"

#include <array>
#include <chrono>

#include "base/error.h"
#include "base/text.h"
#include "codegen/choose/choose.h"
#include "codegen/figures.h"
#include "codegen/linear/group_hazards.h"
#include "codegen/linear/group_pipeline.h"
#include "codegen/linear/group_products.h"
#include "codegen/linear/interleave.h"
#include "codegen/linear/linear_passes.h"
#include "codegen/linear/masked_factors.h"
#include "codegen/linear/merge_barriers.h"
#include "codegen/linear/order_sums.h"
#include "codegen/linear/overlap.h"
#include "codegen/linear/partial_sums.h"
#include "codegen/linear/polls.h"
#include "codegen/linearize/linearize.h"
#include "codegen/options/options.h"
#include "codegen/options/stage.h"
#include "codegen/ranges.h"
#include "ir/bounds.h"
#include "ir/dot.h"
#include "ir/spec.h"
#include "rules/decompositions.h"
#include "rules/integer_quotient.h"
#include "rules/narrow.h"
#include "rules/split_ranges.h"
#include "rules/weighted_mean.h"

namespace tiny {

namespace {

// Which programs a pass is for, by the target: what moves or cuts loops is for one thread that
// walks them alone.
enum class For : uint8_t { All, OneThread, Groups };

// A pass over the linear program, and why it stands where it stands.
struct LinearPass {
  const char* name;
  void (*run)(LinearProgram&);
  For applies;

  bool is_for(const LinearProgram& program, const Target& target) const {
    switch (applies) {
      case For::OneThread:
        return !program.grouped && !target.computes_in_groups();
      case For::Groups:
        return program.grouped;
      default:
        return true;
    }
  }
};
constexpr LinearPass kLinearPasses[] = {
    // Before merge_equal, which finds equal differences.
    {"form_sub", form_sub, For::All},
    // Before form_fma, for which a product must be what is added.
    {"mask_factors", mask_factors, For::OneThread},
    // After every rewrite that could change who reads a product.
    {"form_fma", form_fma, For::All},
    // Before merge_equal, which finds what loops that were joined share.
    {"overlap", overlap_steps, For::OneThread},
    // After overlap, which joins loops that are alike.
    {"sum_in_parts", sum_in_parts, For::OneThread},
    // Before merge_barriers, which must see those that are left.
    {"run_copies_ahead", run_copies_ahead, For::Groups},
    // Before merge_equal, which takes no load past a barrier.
    {"merge_barriers", merge_barriers, For::Groups},
    // After merge_barriers: before each that is left memory is fenced.
    {"order_products", order_products, For::Groups},
    // After form_fma: a product with two readers would not be fused.
    {"merge_equal", merge_equal, For::All},
    // Last: the passes before leave products that nobody reads.
    {"remove_dead", remove_dead, For::All},
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
  static constexpr const char* kKinds[] = {"",        "/UPCAST", "/UNROLL", "/VEC",
                                           "/THREAD", "/DOT",    "/LOCAL"};
  std::string out = "order";
  for (const KernelRange& r : kernel.ranges)
    out +=
        cat(" r", r.range.int_arg(), ":", expression_text(r.range.src(0)),
            kKinds[static_cast<size_t>(r.kind)], r.reduced ? "*" : "",
            r.kind == RangeKind::Local ? std::to_string(r.axis) : "", r.overlaps ? "/OVERLAP" : "");
  out += "\n";
  for (const UOp& f : kernel.facts) out += cat("fact ", expression_text(f), " >= 0\n");
  return out + to_string(std::span(kernel.roots));
}

namespace {

Kernel decomposed(const Kernel& kernel, const Target& target) {
  Kernel out = kernel;
  out.roots = decompose(divide_after_sums(kernel.roots), target.scales);
  if (target.divides_in_floats()) out.roots = divide_in_floats(out.roots);
  for (KernelParam& p : out.params) p.element = dtype_in_kernel(p.element);
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

void require_groups(const Kernel& kernel, const Target& target) {
  if (!is_grouped(kernel)) return;
  std::array<int64_t, kGroupAxes> group{1, 1, 1};
  for (const KernelRange& r : kernel.ranges)
    if (r.kind == RangeKind::Local) group[r.axis] = r.range.src(0).const_int();
  const int64_t threads = group[0] * group[1] * group[2];
  const int64_t bytes = group_bytes(kernel);
  require(target.group.threads > 1, Status::InvalidArgument,
          "options LOCAL and STAGE .. shared: target ", target.name, " has no groups of threads");
  require(threads <= target.group.threads, Status::InvalidArgument, "options LOCAL: a group of ",
          threads, " threads; target ", target.name, " has groups of at most ",
          target.group.threads);
  require(bytes <= target.group.shared_bytes, Status::InvalidArgument,
          "options STAGE .. shared and folds: ", bytes, " bytes; a group of target ", target.name,
          " has ", target.group.shared_bytes);
}

void require_matrices(const Kernel& kernel, const Target& target) {
  for (const UOp& u : topological(kernel.roots))
    if (u.op() == Op::MatrixTerm)
      require(target.has_matrices(u.int_arg()), Status::InvalidArgument, "option TC: target ",
              target.name, " has no products ", kMatrixRows[static_cast<size_t>(u.int_arg())].name,
              ", or they are not allowed");
}

// Of what was proposed all could be made, whatever is taken.
void verify_proposals(const Kernel& kernel, const OptimisedKernel& chosen) {
  for (const ProposalNote& p : chosen.proposed)
    require(has_lanes_of_one_range(apply_options(kernel, p.options)), Status::Internal, "strategy ",
            p.strategy, ": a value has lanes of two ranges by ", to_text(p.options));
}

// Steps of the launched ranges, those whose size the run decides at their greatest.
int64_t most_launched(const Kernel& kernel) {
  int64_t most = 1;
  for (size_t i = 0; i < thread_ranges(kernel); ++i)
    if (__builtin_mul_overflow(most, bounds(kernel.ranges[i].range.src(0)).hi, &most))
      return INT64_MAX;
  return most;
}

}  // namespace

Kernel prepare_kernel(const Kernel& kernel, const Target& target) {
  return merge_ranges(split_at_divisors(decomposed(kernel, target)));
}

double seconds_as_chosen(const Kernel& kernel, const Machine& target) {
  return optimise(prepare_kernel(split_at_exact_divisors(kernel), target), target).seconds;
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
  if (options.verify) verify_proposals(current, chosen);
  current = std::move(chosen.kernel);
  require_dots(current, target);
  require_groups(current, target);
  require_matrices(current, target);
  current.name = shape_name(current);
  if (options.verify) verify_decomposed(current.roots, "options");
  result.options = to_text(chosen.options);
  result.proposed = std::move(chosen.proposed);
  log.done("options", uops);
  for (size_t i = 0; i < thread_ranges(current); ++i) {
    const Dim size(UOp(current.ranges[i].range.src(0)));
    result.threads_extent = i == 0 ? size : result.threads_extent * size;
  }
  result.program = linearize(current, target);
  result.program.launch_max = most_launched(current);
  for (LinearParam& p : result.program.params) p.alignment = target.group.argument_alignment;
  if (options.verify) verify(result.program);
  log.done("linearize", linear);
  for (const LinearPass& pass : kLinearPasses) {
    if (!pass.is_for(result.program, target)) continue;
    pass.run(result.program);
    if (options.verify) verify(result.program);
    log.done(pass.name, linear);
  }
  if (options.verify) verify_hazards(result.program);
  if (result.program.grouped || target.computes_in_groups()) return result;
  order_sums(result.program, target);  // of what the passes have left
  if (options.verify) verify(result.program);
  log.done("order_sums", linear);
  interleave(result.program, target);
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

#include "schedule/pipeline.h"

#include <algorithm>
#include <chrono>

#include "schedule/rewrite/copy_windowed.h"
#include "schedule/rewrite/drop_aliases.h"
#include "schedule/rewrite/float_sums.h"
#include "schedule/rewrite/form_fma.h"
#include "schedule/rewrite/onehot.h"
#include "schedule/rewrite/own_buffers.h"
#include "schedule/rewrite/pack_constants.h"
#include "schedule/rewrite/requantized.h"
#include "schedule/rewrite/same_loops.h"
#include "schedule/rewrite/same_results.h"
#include "schedule/rewrite/scales.h"
#include "schedule/rewrite/split_reductions.h"
#include "schedule/rewrite/store_once.h"
#include "schedule/rewrite/uniform_reductions.h"
#include "schedule/rewrite/zero_points.h"
#include "schedule/schedule.h"

namespace tiny {

namespace {

using Roots = std::span<const UOp>;
using Context = GraphPassContext;

// What compiling the kernels of a convolution in tiles takes beyond that of one kernel, in seconds:
// measured, two kernels of about 2 ms.
constexpr double kTilesCompileSeconds = 4e-3;
// How often a graph that is computed at once is expected to come again, over which that is spread:
// one such graph is most often a step of a loop, or a network that is asked again and again.
constexpr double kRunsExpected = 100;

bool any_node(const UOp&) {
  return true;
}
bool is_reduction(const UOp& u) {
  return u.op() == Op::ReduceAxis;
}
bool is_sum_of_products(const UOp& u) {
  return u.op() == Op::ReduceAxis && u.reduce_arg().op == Op::Add && u.src(0).op() == Op::Mul;
}
// Elements of a byte or two that are widened: what quantised and half precision values begin with.
bool is_widening(const UOp& u) {
  return u.op() == Op::Cast && u.src(0).dtype().bytes() < u.dtype().bytes();
}

std::vector<uint8_t> varying_nodes(Roots roots, const Context& context) {
  return varying(topological(roots, has_memory), context.is_fixed);
}

ChangedGraph own_buffers(Roots roots, const Context& context) {
  return in_own_buffers(roots, context.outputs);
}

ChangedGraph requantized(Roots roots, const Context&) {
  return drop_requantized(roots);
}

ChangedGraph scales(Roots roots, const Context& context) {
  return rewrite_scales(roots, context.machine, varying_nodes(roots, context));
}

ChangedGraph zero_points(Roots roots, const Context& context) {
  return rewrite_zero_points(roots, context.machine, varying_nodes(roots, context));
}

ChangedGraph float_sums(Roots roots, const Context& context) {
  return sum_in_floats(roots, context.machine);
}

ChangedGraph store_constants_once(Roots roots, const Context& context) {
  return store_once(roots, context.is_fixed, context.machine);
}

ChangedGraph compute_constants(Roots roots, const Context& context) {
  context.compute(constant_frontier(roots, context.is_fixed, context.machine));
  return unchanged(roots);
}

ChangedGraph winograd(Roots roots, const Context& context) {
  return rewrite_winograd(roots, context.machine, constant_nodes(roots, context.is_fixed),
                          context.winograd,
                          context.is_program() ? 0 : kTilesCompileSeconds / kRunsExpected);
}

ChangedGraph packed(Roots roots, const Context& context) {
  if (!context.pack) return unchanged(roots);
  return pack_constants(roots, context.machine, constant_nodes(roots, context.is_fixed),
                        varying_nodes(roots, context));
}

ChangedGraph walked(Roots roots, const Context& context) {
  return context.pack ? copy_walked(roots, context.is_fixed, context.mapped_bytes)
                      : unchanged(roots);
}

ChangedGraph windowed(Roots roots, const Context& context) {
  return copy_windowed(roots, context.machine);
}

ChangedGraph stored_outputs(Roots roots, const Context& context) {
  return copy_what_is_stored(roots, context.outputs);
}

ChangedGraph without_aliases(Roots roots, const Context&) {
  return drop_aliases(roots);
}

ChangedGraph loops_once(Roots roots, const Context&) {
  return same_loops(roots);
}

ChangedGraph results_once(Roots roots, const Context&) {
  return same_results(roots);
}

ChangedGraph onehot(Roots roots, const Context&) {
  return onehot_to_gather(roots);
}

ChangedGraph uniform_folded(Roots roots, const Context&) {
  return fold_uniform_reductions(roots);
}

ChangedGraph fma_formed(Roots roots, const Context&) {
  return form_fma(roots);
}

ChangedGraph reductions_split(Roots roots, const Context& context) {
  return split_reductions(roots, context.machine);
}

constexpr auto kGraph = GraphStage::Graph;
constexpr auto kKernels = GraphStage::Kernels;
constexpr auto kAlways = PassUse::Always;
constexpr auto kPrograms = PassUse::Programs;

// clang-format off
constexpr GraphPass kGraphPasses[] = {
  // First: no other pass has to look through them.
  {"drop_aliases", kGraph, kAlways, is_alias_for_gradients, without_aliases, {}},
  // Before results are compared: they are of fewer loops then.
  {"same_loops", kGraph, kAlways, is_result_of_loop, loops_once, {"drop_aliases"}},
  // Before results get buffers.
  {"same_results", kGraph, kAlways, is_result_of_loop, results_once, {"drop_aliases", "same_loops"}},
  // Before outputs get buffers: a mask that is an output too would be read from its buffer, and not
  // be seen.
  {"onehot_to_gather", kGraph, kAlways, is_reduction, onehot, {}},
  // After masks, which are known by their sums.
  {"fold_uniform_reductions", kGraph, kAlways, is_uniform_reduction, uniform_folded, {"onehot_to_gather"}},
  // Before what depends on which values have memory.
  {"in_own_buffers", kGraph, kPrograms, any_node, own_buffers, {"onehot_to_gather"}},
  // Before scales, which it finds without what stands between them and their product.
  {"drop_requantized", kGraph, kAlways, is_widening, requantized, {}},
  // Before zero points, which then see sums of integers.
  {"rewrite_scales", kGraph, kAlways, is_widening, scales, {"drop_requantized"}},
  // Before constants are computed: corrections are made of constants.
  {"rewrite_zero_points", kGraph, kAlways, is_widening, zero_points, {"rewrite_scales"}},
  // After zero points, which look for sums of integers.
  {"sum_in_floats", kGraph, kAlways, is_widening, float_sums, {"rewrite_zero_points"}},
  // Just before constants are computed: what it stores is one of them.
  {"store_once", kGraph, kPrograms, any_node, store_constants_once, {"rewrite_scales", "rewrite_zero_points", "sum_in_floats"}},
  // Before passes that ask which operands are constants in memory.
  {"compute_constants", kGraph, kPrograms, any_node, compute_constants, {"store_once"}},
  // Before packing, which lays transformed filters out.
  {"rewrite_winograd", kGraph, kAlways, is_sum_of_products, winograd, {"compute_constants"}},
  // After all that decides which constants products read.
  {"pack_constants", kGraph, kPrograms, any_node, packed, {"compute_constants", "rewrite_winograd"}},
  // After packing: what it has laid out is no longer read where it lies.
  {"copy_walked", kGraph, kPrograms, any_node, walked, {"pack_constants"}},
  // After all that changes what convolutions read.
  {"copy_windowed", kGraph, kAlways, is_reduction, windowed, {"rewrite_winograd", "pack_constants"}},
  // After the passes that say in which order constants are to lie.
  {"compute_packed", kGraph, kPrograms, any_node, compute_constants, {"rewrite_winograd", "pack_constants", "copy_walked"}},
  // Last of the graph: an output that became a constant has memory by now.
  {"copy_what_is_stored", kGraph, kPrograms, any_node, stored_outputs, {"in_own_buffers"}},
  // After all that makes sums and products.
  {"fuse_products", kKernels, kAlways, any_node, fma_formed, {"rewrite_winograd"}},
  // Last: the pieces of a sum are no sum of products that another pass would know.
  {"split_reductions", kKernels, kAlways, is_reduction, reductions_split, {"fuse_products"}},
};
// clang-format on

}  // namespace

std::span<const GraphPass> graph_passes() {
  return kGraphPasses;
}

ChangedGraph run_graph_passes(std::span<const UOp> roots, GraphStage stage,
                              const GraphPassContext& context) {
  ChangedGraph out = unchanged(roots);
  if (roots.empty()) return out;
  std::vector<UOp> order;  // of the graph as it stands
  for (const GraphPass& pass : kGraphPasses) {
    if (pass.stage != stage) continue;
    if (pass.use == PassUse::Programs && !context.is_program()) continue;
    const auto begin = std::chrono::steady_clock::now();
    const bool concerns_all = pass.concerns == any_node;
    if (!concerns_all && order.empty()) order = topological(out.roots, has_memory);
    bool changed = false;
    if (concerns_all || std::ranges::any_of(order, pass.concerns)) {
      ChangedGraph next = pass.run(out.roots, context);
      changed = !(next.roots == out.roots);
      if (changed) order.clear();
      out.become(std::move(next));
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (context.noted) context.noted({pass.name, seconds.count(), changed, out.roots});
  }
  return out;
}

}  // namespace tiny

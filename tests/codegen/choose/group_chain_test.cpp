// Products of products on groups of threads: every list that is proposed keeps the oracle's values,
// whatever the sizes, masks and types; attention of large sizes is one kernel, which stores no
// score.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "codegen/choose/strategies.h"
#include "codegen/linearize/linearize.h"
#include "codegen/options/options.h"
#include "codegen/options/stage.h"
#include "codegen/pipeline.h"
#include "cost/group_machines.h"
#include "engine/backend.h"
#include "engine/context.h"
#include "engine/option_lists.h"
#include "render/ptx/ptx.h"
#include "schedule/join.h"
#include "schedule/rewrite/form_fma.h"
#include "schedule/schedule.h"
#include "tensor/attention.h"
#include "tensor/program.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"
#include "tests/support/assembler.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/random_attention.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Attention;
using testing::Floats;

Ref<Context> context_with(const std::string& options, const char* processor,
                          const std::string& flipped = "", const char* device = "interp") {
  Flags flags = testing::flags_for(device);
  flags.opts = options;
  flags.processor = processor;
  flags.flip_joins = flipped;
  flags.spec = 1;
  flags.cache = 0;
  return make_ref<Context>(flags);
}

bool has(const std::vector<Option>& options, OptionKind kind) {
  return std::ranges::any_of(options, [&](const Option& o) { return o.kind == kind; });
}

// Joins of small attention are worth nothing on a machine of many processors: decided against their
// cost, until it is one kernel.  Empty numbers where it is not.
struct Joined {
  std::string flipped;
  std::string name;  // that lists of options know it by
  Kernel kernel;
};
Joined joined(const Tensor& tensor, const Machine& machine) {
  const UOp node = tensor.graph().make(Op::Contiguous, {tensor.node()});
  const ChangedGraph fused = form_fma({&node, 1});
  std::vector<int64_t> flipped;
  for (int round = 0; round < 6; ++round) {
    std::vector<JoinTrial> trials;
    const JoinSettings settings{flipped, &trials};
    const Schedule schedule = make_schedule(fused.roots, machine, true, settings);
    if (schedule.kernels.size() == 1) {
      std::string text;
      for (const int64_t n : flipped) text += (text.empty() ? "" : ",") + std::to_string(n);
      const Kernel& kernel = schedule.kernels.front().kernel;
      return {text, structure_name(kernel), prepare_kernel(kernel, machine)};
    }
    for (const JoinTrial& t : trials)
      if (!t.joined && t.cost.is_as_chosen) flipped.push_back(t.number);
  }
  return {};
}

// What the row of the table proposes, as lists.
std::vector<std::vector<Option>> lists_for(const Kernel& kernel, const Machine& machine) {
  std::vector<std::vector<Option>> lists;
  for (const Proposal& p : all_proposals(Seen(kernel, machine, 1)))
    if (p.strategy == "chains") lists.push_back(p.made.options);
  return lists;
}

// Weights are rounded before rows are divided by their sums, not after: by half a unit in the last
// place of each, of values that are at most 2.
double slack_of(DType dtype) {
  if (dtype == kFloat32) return 0;
  return dtype == kFloat16 ? std::ldexp(4, -10) : std::ldexp(4, -7);
}

void expect_close(const reference::Values& want, const Tensor& got, DType dtype) {
  const Tensor wide = dtype == kFloat32 ? got : cast(got, kFloat32);
  const Floats values = testing::floats_of(wide);
  if (dtype == kFloat32) {
    ASSERT_EQ(reference::difference(want, values.data()), "");
    return;
  }
  ASSERT_EQ(values.size(), want.real.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = want.real[i], made = static_cast<double>(values[i]);
    if (std::isnan(expected) && std::isnan(made)) continue;
    ASSERT_LE(std::abs(expected - made), slack_of(dtype)) << "element " << i;
  }
}

// Blocks and tiles that divide the rows and keys, and such that do not.
const Attention::Sizes kSizes{{16, 33, 64, 70}, {40, 64, 100}, {16, 32, 20}, {8, 16, 33, 64}};

// SEEDS says how many.
TEST(GroupChain, EveryListKeepsTheOraclesValues) {
  const uint64_t seeds = testing::number_from("SEEDS", 16);
  int run = 0, with_matrices = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const DType dtype = seed % 3 == 0 ? kFloat16 : seed % 3 == 1 ? kFloat32 : kBFloat16;
    const char* processor = seed % 2 ? "h100" : "a100";
    const Ref<Context> plain = context_with("", processor);
    const auto attention = [&](const Ref<Context>& context) {
      return Attention(context, seed, dtype, kSizes).make();
    };
    const Machine& machine = plain->backend().machine();
    const Joined made = joined(attention(plain), machine);
    if (made.kernel.roots.empty()) continue;
    auto lists = lists_for(made.kernel, machine);
    // Of products of matrices, where there are any.
    const auto are_scalar = [](const auto& list) { return !has(list, OptionKind::Matrix); };
    if (!std::ranges::all_of(lists, are_scalar)) std::erase_if(lists, are_scalar);
    if (lists.empty()) continue;
    const std::vector<Option>& list = lists[seed / 2 % lists.size()];
    SCOPED_TRACE(to_text(list));
    ++run;
    // What is counted before there is code is what the code has.
    const Kernel applied = apply_options(made.kernel, list);
    EXPECT_LE(linearize(applied, machine).shared_bytes, group_bytes(applied));
    with_matrices += has(list, OptionKind::Matrix) ? 1 : 0;
    const Ref<Context> context =
        context_with(made.name + ": " + to_text(list), processor, made.flipped);
    const Tensor output = attention(context);
    expect_close(reference::evaluate(output.node()), output, dtype);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(run, static_cast<int>(seeds) / 2);
  EXPECT_GT(with_matrices, static_cast<int>(seeds) / 8);
}

// On a driver's device (PoCL; a simulator that reports races where one is preloaded), what is
// proposed for a graphics processor of its groups and their memory: no products of matrices.
// Causal and other masks, keys of another length than rows, one row, one head, widths that are no
// powers of two.
TEST(GroupChain, EveryListKeepsTheOraclesValuesOnOpenCl) {
  if (!testing::has_opencl()) GTEST_SKIP() << "no device of OpenCL's";
  const Attention::Sizes sizes{{1, 16, 33, 48, 20}, {40, 64, 36}, {16, 20, 33}, {8, 24, 33}};
  const uint64_t seeds = testing::number_from("SEEDS", 12);
  int run = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Ref<Context> plain = context_with("", "auto", "", "opencl");
    const auto attention = [&](const Ref<Context>& context) {
      return Attention(context, seed, kFloat32, sizes).make();
    };
    const Machine& own = plain->backend().machine();
    Machine machine = context_with("", "h100")->backend().machine();
    machine.group.threads = std::min(machine.group.threads, own.group.threads);
    machine.group.shared_bytes = std::min(machine.group.shared_bytes, own.group.shared_bytes);
    const Joined made = joined(attention(plain), own);
    if (made.kernel.roots.empty()) continue;
    auto lists = lists_for(made.kernel, machine);
    std::erase_if(lists, [](const auto& list) { return has(list, OptionKind::Matrix); });
    if (lists.empty()) continue;
    const std::vector<Option>& list = lists[seed % lists.size()];
    SCOPED_TRACE(to_text(list));
    ++run;
    const Ref<Context> context =
        context_with(made.name + ": " + to_text(list), "auto", made.flipped, "opencl");
    const Tensor output = attention(context);
    expect_close(reference::evaluate(output.node()), output, kFloat32);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(run, static_cast<int>(seeds) / 8);
}

class OneKernel : public ::testing::TestWithParam<const char*> {};

TEST_P(OneKernel, OfLargeAttentionStoresNoScore) {
  const Ref<Context> context = context_with("", GetParam());
  const Machine& machine = context->backend().machine();
  for (const DType dtype : {kFloat16, kBFloat16}) {
    SCOPED_TRACE(dtype == kFloat16 ? "float16" : "bfloat16");
    const auto input = [&] {
      return make_placeholder(context, dtype, to_shape({4, 16, 2048, 128}));
    };
    const Tensor y = scaled_dot_product_attention(input(), input(), input()).y;
    const Schedule schedule = make_schedule({{y.node()}}, machine);
    // What scales both factors is computed before.
    ASSERT_LE(schedule.kernels.size(), 3u);
    PipelineOptions options;
    options.verify = true;
    const CodegenResult made = generate(schedule.kernels.back().kernel, machine, options);
    EXPECT_NE(made.options.find("STREAM"), std::string::npos) << made.options;
    EXPECT_NE(made.options.find("TC"), std::string::npos) << made.options;
    EXPECT_EQ(made.program.scratch_bytes, 0);
    const auto products = std::ranges::count(made.program.ops, Op::Mma, &LinearOp::op);
    EXPECT_GT(products, 1);
    for (const ScheduledKernel& k : schedule.kernels)
      for (const ScheduledStore& store : k.stores)
        EXPECT_LE(elements_at_most(store.value), 4 * 16 * 2048 * 128);
  }
}
INSTANTIATE_TEST_SUITE_P(Machines, OneKernel, ::testing::Values("h100", "a100"));

struct Assembler {
  const char* processor;
  const char* target;
  bool has_matrices;
};
class AssembledChain : public ::testing::TestWithParam<Assembler> {};

// What is chosen of long rows, with and without a causal mask.
TEST_P(AssembledChain, HasNoSpill) {
  const std::string assembler = testing::ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << testing::kNoAssembler;
  const Ref<Context> context = context_with("", GetParam().processor);
  const Machine& machine = context->backend().machine();
  std::vector<LinearProgram> programs;
  const std::pair<DType, int64_t> all[] = {
      {kFloat32, 64}, {kFloat32, 128}, {kFloat16, 64}, {kBFloat16, 128}};
  for (const auto& [dtype, size] : all) {
    if (dtype != kFloat32 && !GetParam().has_matrices) continue;
    const auto input = [&] {
      return make_placeholder(context, dtype, to_shape({8, 16, 2048, size}));
    };
    AttentionOptions how;
    how.is_causal = size == 64;
    const Tensor y = scaled_dot_product_attention(input(), input(), input(), how).y;
    const Schedule schedule = make_schedule({{y.node()}}, machine);
    for (const ScheduledKernel& k : schedule.kernels) {
      programs.push_back(generate(k.kernel, machine, {}).program);
      programs.back().name = "k" + std::to_string(programs.size());
    }
  }
  const std::string text = render_ptx_unit(programs, ptx_target(GetParam().target))[0].text;
  const testing::Assembled got = testing::assemble(assembler, text, GetParam().target);
  EXPECT_EQ(got.status, 0) << got.log.substr(0, 4000);
  EXPECT_EQ(got.spilled(), std::vector<std::string>());
}
INSTANTIATE_TEST_SUITE_P(
    Targets, AssembledChain,
    ::testing::Values(Assembler{"a100", "sm_75", false}, Assembler{"a100", "sm_80", true},
                      Assembler{"a100", "sm_86", true}, Assembler{"a100", "sm_89", true},
                      Assembler{"h100", "sm_90a", true}, Assembler{"h100", "sm_100a", true},
                      Assembler{"h100", "sm_120a", true}),
    [](const auto& info) { return std::string(info.param.target); });

}  // namespace
}  // namespace tiny

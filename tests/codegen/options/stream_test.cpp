// Reductions that depend on each other run along blocks with the oracle's values: whatever is
// masked, infinite or no number, where blocks do not divide the rows, on every machine.
#include "codegen/options/stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "codegen/pipeline.h"
#include "engine/compile.h"
#include "schedule/rewrite/form_fma.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/random_attention.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

using testing::Attention;
using testing::constant;
using testing::kernel_of;
using testing::positions;

struct Machine {
  const char* device;
  const char* isa;
};
constexpr Machine kMachines[] = {{"interp", ""}, {"cpu", ""}, {"cpu", "avx2"}};

Ref<Context> context_on(const Machine& machine, const std::string& options = "") {
  Flags flags = testing::flags_for(machine.device, machine.isa);
  flags.opts = options;
  flags.spec = 1;
  flags.threads = 2;
  return make_ref<Context>(flags);
}

bool streams(const std::vector<Option>& options) {
  return std::ranges::any_of(options, [](const Option& o) { return o.kind == OptionKind::Stream; });
}

// What is chosen for caches that hold a few blocks of a few steps.
std::vector<Option> options_for_small_caches(const Kernel& kernel, tiny::Machine target) {
  target.l1_bytes = 2048;
  target.l2_bytes = 4096;
  return choose_options(kernel, target);
}

// SEEDS says how many.
TEST(Stream, KeepsTheOraclesValues) {
  const uint64_t seeds = testing::number_from("SEEDS", 60);
  uint64_t streamed = 0, chosen_count = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Machine& machine = kMachines[seed % 3];
    const Ref<Context> plain = context_on(machine);
    const tiny::Machine& target = plain->backend().machine();
    const Kernel kernel = kernel_of(Attention(plain, seed).make(), target);
    if (kernel.roots.empty()) continue;
    const int64_t range = streamed_range(kernel);
    if (range < 0) continue;
    std::string list = cat("STREAM r", range, " ", 1 + seed * 7 % 16);
    if (seed % 2) {
      const std::vector<Option> chosen = options_for_small_caches(kernel, target);
      if (streams(chosen)) list = to_text(chosen), ++chosen_count;
    }
    SCOPED_TRACE(list);
    ++streamed;
    const Tensor output = Attention(context_on(machine, list), seed).make();
    const reference::Values want = reference::evaluate(output.node());
    ASSERT_EQ(reference::difference(want, testing::floats_of(output).data()), "");
  }
  EXPECT_GT(streamed, seeds / 2);
  EXPECT_GT(chosen_count, seeds / 8);
}

// A sum that runs along no block, between values that do, with iterations that are split off.
TEST(Stream, ValuesRunAgainWhereALaterLoopNeedsThem) {
  for (const Machine& machine : kMachines) {
    const Ref<Context> context = context_on(machine,
                                            "TILE r5 14; UNROLL r3; UPCAST r5; STREAM r2 8; "
                                            "ORDER r0 r1 r5 r3 r6 r7 r9 r8; VEC r9; TILE r1 16");
    const auto values = [&](const Ints& shape) {
      testing::Floats data;
      for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
        data.push_back(static_cast<float>(i * 7 % 33 - 16) / 8);
      return testing::floats(context, data, shape);
    };
    const Tensor scores = matmul(values({7, 20}), values({20, 17}));
    const Tensor output = matmul(softmax(scores, 1), permute(values({12, 17}), {1, 0}));
    const reference::Values want = reference::evaluate(output.node());
    EXPECT_EQ(reference::difference(want, testing::floats_of(output).data()), "");
  }
}

Tensor input(const Ref<Context>& context, const Ints& shape) {
  return testing::float_input(context, shape);
}

TEST(Stream, IsChosenForRowsThatNoCacheHolds) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  const tiny::Machine target = avx512_machine();
  const auto chosen = [&](int64_t heads, int64_t rows, int64_t keys) {
    const Tensor scores =
        matmul(input(context, {heads, rows, 64}), input(context, {heads, 64, keys}));
    const Kernel kernel =
        kernel_of(matmul(softmax(scores, 2), input(context, {heads, keys, 64})), target);
    EXPECT_FALSE(kernel.roots.empty());
    return streams(choose_options(kernel, target));
  };
  EXPECT_TRUE(chosen(1, 8192, 8192));
  EXPECT_TRUE(chosen(1, 64, 65536));
  EXPECT_TRUE(chosen(4, 6, 65536));
  EXPECT_FALSE(chosen(8, 2048, 2048));
  EXPECT_FALSE(chosen(12, 128, 128));
}

// Keys that no row of a block sees are not read.
TEST(Stream, EndsWhereACausalMaskDoes) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  const tiny::Machine target = avx512_machine();
  const int64_t rows = 8192;
  const Tensor row = positions(context, {rows, 1});
  const Tensor key = positions(context, {1, rows});
  const Tensor mask = where(less_equal(key, row), constant(context, 0), constant(context, -kInf));
  const Tensor scores = matmul(input(context, {8, rows, 64}), input(context, {8, 64, rows}));
  const Tensor v = input(context, {8, rows, 64});
  const auto kernel = [&](const Tensor& t) { return kernel_of(matmul(softmax(t, 2), v), target); };
  EXPECT_FALSE(is_bounded_stream(kernel(scores), streamed_range(kernel(scores))));
  const Kernel causal = kernel(add(scores, mask));
  ASSERT_FALSE(causal.roots.empty());
  EXPECT_TRUE(is_bounded_stream(causal, streamed_range(causal)));
  EXPECT_TRUE(streams(choose_options(causal, target)));
}

// What holds no values of its own does not grow with the rows' length.
TEST(Stream, NeedsAsMuchScratchForLongerRows) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  const tiny::Machine target = avx512_machine();
  const auto scratch = [&](int64_t keys) {
    const Tensor scores = matmul(input(context, {2, 512, 64}), input(context, {2, 64, keys}));
    const Tensor output = matmul(softmax(scores, 2), input(context, {2, keys, 64}));
    const UOp node = output.graph().make(Op::Contiguous, {output.node()});
    const Schedule schedule = make_schedule({&node, 1}, target);
    EXPECT_EQ(schedule.kernels.size(), 1U);
    return generate(schedule.kernels.front().kernel, target, {}).program.scratch_bytes;
  };
  EXPECT_EQ(scratch(16384), scratch(65536));
  EXPECT_LT(scratch(65536), target.l2_bytes);
}

TEST(Stream, RefusesWhatCannotBeCorrected) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  const tiny::Machine target = avx512_machine();
  const auto refused = [&](const Tensor& t, const char* options, const char* why) {
    const Kernel kernel = kernel_of(t, target);
    ASSERT_FALSE(kernel.roots.empty());
    try {
      apply_options(kernel, parse_options(options));
      ADD_FAILURE() << options << " is not refused";
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(why), std::string::npos) << e.message();
    }
  };
  const Tensor x = input(context, {8, 64});
  const Tensor centred = sub(x, mean(x, {1}, true));
  // The sum about the mean is left as it is; the mean alone runs along blocks.
  const Kernel variance = kernel_of(sum(mul(centred, centred), {1}), target);
  EXPECT_EQ(streamed_range(variance), -1);
  refused(softmax(x, 1), "STREAM r9 8", "it has no such range");
  refused(softmax(x, 1), "STREAM r0 4", "no reduction of rows closes");
  refused(softmax(x, 1), "STREAM r2 64", "a block is a part of the range");
  refused(softmax(x, 1), "TILE r2 8; STREAM r2 4", "no reduction of rows closes");
  refused(softmax(x, 1), "STREAM r2 8; STREAM r2 4", "it has no such range");
  refused(softmax(x, 1), "STREAM r2 8; TILE r4 2", "values run along it");
  refused(softmax(x, 1), "STREAM r2 8; UPCAST r4", "values run along it");
}

TEST(Stream, IsTextThatReplays) {
  const std::string text = "STREAM r3 256; TILE r1 14";
  EXPECT_EQ(to_text(parse_options(text)), text);
}

}  // namespace
}  // namespace tiny

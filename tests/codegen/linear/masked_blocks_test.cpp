// Steps that a mask leaves nothing of are not walked, and the values are the oracle's: causal rows,
// sliding windows, masks in other words, rows that see nothing, on every machine.
#include "codegen/linear/masked_blocks.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "codegen/choose/choose.h"
#include "codegen/options/options.h"
#include "codegen/pipeline.h"
#include "engine/compile.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tests/reference/reference.h"
#include "tests/support/environment.h"
#include "tests/support/machines.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::context_on;
using testing::kMachines;
using testing::Machine;

// A number that kernels know.
Tensor constant(const Ref<Context>& context, double value) {
  return full(context, kFloat32, Shape{}, value);
}
Tensor integer(const Ref<Context>& context, int64_t value) {
  return full(context, kInt64, Shape{}, static_cast<double>(value));
}

// What a row sees is known from its number and a key's.
enum class Mask : uint8_t { None, Causal, Window, First, NotAfter, Either };

Tensor is_seen(const Ref<Context>& context, Mask mask, int64_t rows, int64_t keys, int64_t past,
               int64_t width) {
  const Tensor key = reshape(arange(context, kInt64, keys), to_shape({1, keys}));
  const Tensor row = reshape(arange(context, kInt64, rows), to_shape({rows, 1}));
  const Tensor last = add(row, integer(context, past));
  const Tensor first = sub(last, integer(context, width));
  const Tensor is_before = less_equal(key, last);
  const Tensor is_near = less(first, key);
  switch (mask) {
    case Mask::Causal:
      return is_before;
    case Mask::Window:
      return bit_and(is_before, is_near);
    case Mask::First:
      return is_near;
    case Mask::NotAfter:
      return invert(less(last, key));
    case Mask::Either:
      return invert(bit_or(less(last, key), less_equal(key, first)));
    default:
      return less_equal(integer(context, 0), add(key, row));
  }
}

constexpr Mask kMasks[] = {Mask::Causal, Mask::Window, Mask::First, Mask::NotAfter, Mask::Either};

Tensor masked(const Ref<Context>& context, const Tensor& seen, const Tensor& scores, bool is_added,
              double hidden) {
  const Tensor nothing = constant(context, hidden);
  return is_added ? add(scores, where(seen, constant(context, 0), nothing))
                  : where(seen, scores, nothing);
}

// A random product of weights that a mask chooses; equal for equal seeds.
Tensor product_of_masked(const Ref<Context>& context, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  const auto one_of = [&](const Ints& list) {
    return list[static_cast<size_t>(below(std::ssize(list)))];
  };
  const auto tensor = [&](const Ints& shape) {
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    testing::Floats data;
    for (int64_t i = 0; i < count; ++i) data.push_back(static_cast<float>(below(33) - 16) / 8);
    return testing::floats(context, data, shape);
  };
  const int64_t heads = one_of({1, 2, 3}), rows = one_of({1, 3, 7, 14, 20, 33, 61});
  const int64_t keys = one_of({33, 64, 100, 130, 200});
  const int64_t width = one_of({4, 16, 33}), depth = one_of({8, 16, 33, 64});
  const Mask mask = kMasks[below(std::ssize(kMasks))];
  const int64_t past = one_of({0, 3, keys - rows, 70, -2, -40}), window = one_of({1, 5, 30, 90});
  const Tensor seen = is_seen(context, mask, rows, keys, past, window);
  const Tensor k = permute(tensor({heads, keys, width}), {0, 2, 1});
  const Tensor scores = matmul(tensor({heads, rows, width}), k);
  const Tensor v = tensor({heads, keys, depth});
  if (below(4) == 0) return matmul(masked(context, seen, scores, false, 0), v);
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor scaled = below(2) ? mul(scores, constant(context, 0.25)) : scores;
  return matmul(softmax(masked(context, seen, scaled, below(2) == 0, -inf), 2), v);
}

// How many facts the masks of a tensor's one kernel make.
size_t facts_of(const Tensor& output, const tiny::Machine& target = avx512_machine()) {
  const UOp node = output.graph().make(Op::Contiguous, {output.node()});
  const Schedule schedule = make_schedule({&node, 1}, target);
  if (schedule.kernels.size() != 1) return 0;
  Kernel kernel = optimise(prepare_kernel(schedule.kernels.front().kernel, target), target).kernel;
  const size_t before = kernel.facts.size();
  leave_out_masked_blocks(kernel);
  return kernel.facts.size() - before;
}

// SEEDS says how many.
TEST(MaskedBlocks, KeepTheOraclesValues) {
  const uint64_t seeds = testing::number_from("SEEDS", 90);
  uint64_t bounded = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Ref<Context> context = context_on(kMachines[seed % 3]);
    const Tensor output = product_of_masked(context, seed);
    if (facts_of(output, context->backend().machine()) != 0) ++bounded;
    const reference::Values want = reference::evaluate(output.node());
    ASSERT_EQ(reference::difference(want, testing::floats_of(output).data()), "");
  }
  EXPECT_GE(bounded, seeds / 3);
}

// Attentions of one size.
class Attention {
 public:
  Attention() : context_(testing::new_context("interp", "avx512")) {}

  Tensor input(const Ints& shape) const { return testing::float_input(context_, shape); }
  Tensor scores() const { return matmul(input({8, 512, 64}), input({8, 64, 512})); }
  Tensor weights(Mask mask, double hidden) const {
    const Tensor seen = is_seen(context_, mask, 512, 512, 0, 100);
    return softmax(masked(context_, seen, scores(), true, hidden), 2);
  }
  Tensor weighed(const Tensor& weights) const { return matmul(weights, input({8, 512, 64})); }

 private:
  Ref<Context> context_;
};

// The scores, their maximum, the exponentials, their sum, the product.
TEST(MaskedBlocks, AreLeftOutOfEveryLoopOfAnAttention) {
  const double inf = std::numeric_limits<double>::infinity();
  const Attention a;
  EXPECT_EQ(facts_of(a.weighed(a.weights(Mask::None, -inf))), 0U);
  EXPECT_EQ(facts_of(a.weighed(a.weights(Mask::Causal, -inf))), 5U);
  EXPECT_EQ(facts_of(a.weighed(a.weights(Mask::First, -inf))), 5U);
  EXPECT_EQ(facts_of(a.weighed(a.weights(Mask::NotAfter, -inf))), 5U);
  EXPECT_EQ(facts_of(a.weighed(a.weights(Mask::Window, -inf))), 10U);
  EXPECT_EQ(facts_of(a.weighed(a.weights(Mask::Either, -inf))), 10U);
  // What is small counts where all is small.
  EXPECT_EQ(facts_of(a.weighed(a.weights(Mask::Causal, -1e30))), 0U);
}

// What stores all weights needs them all.
TEST(MaskedBlocks, AreFilledWhereSomethingElseReadsThem) {
  const Attention a;
  const double inf = std::numeric_limits<double>::infinity();
  const Ref<Context> context = context_on({"cpu", ""});
  EXPECT_LT(facts_of(a.weights(Mask::Causal, -inf)), 5U);
  const auto values = [&](const Ints& shape) {
    testing::Floats data;
    for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
      data.push_back(static_cast<float>(i * 7 % 33 - 16) / 8);
    return testing::floats(context, data, shape);
  };
  const Tensor scores = matmul(values({61, 20}), values({20, 100}));
  const Tensor seen = is_seen(context, Mask::Window, 61, 100, 9, 30);
  const Tensor output = softmax(masked(context, seen, scores, true, -inf), 1);
  const reference::Values want = reference::evaluate(output.node());
  EXPECT_EQ(reference::difference(want, testing::floats_of(output).data()), "");
}

}  // namespace
}  // namespace tiny

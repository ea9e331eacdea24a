// Chains of products and reductions of their rows are one kernel with the oracle's values, whatever
// their sizes, masks and orders of axes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "codegen/choose/choose.h"
#include "codegen/choose/fills.h"
#include "codegen/pipeline.h"
#include "engine/compile.h"
#include "ir/build.h"
#include "render/x86/x86.h"
#include "schedule/schedule.h"
#include "shape/shape.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/environment.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

class Attention {
 public:
  Attention(const Ref<Context>& context, uint64_t seed) : context_(context), random_(seed) {}

  // softmax(q k' + mask) v, in one of several forms.
  Tensor make() {
    heads_ = one_of({1, 2, 3, 8});
    rows_ = one_of({1, 4, 13, 20, 33, 64});
    keys_ = one_of({1, 7, 16, 40, 64, 100, 130});
    width_ = one_of({4, 16, 20, 64, 72});
    const int64_t depth = one_of({8, 16, 33, 64});
    const Tensor q = values(heads_, rows_, width_);
    // The keys lie as they are multiplied, or across.
    const Tensor k = below(2) ? values(heads_, width_, keys_)
                              : permute(values(heads_, keys_, width_), {0, 2, 1});
    Tensor scores = matmul(q, k);
    if (below(2)) scores = mul(scores, number(0.25F));
    if (below(2)) scores = add(scores, tensor({keys_}));
    if (below(3) == 0) scores = add(scores, tensor({rows_, keys_}));
    return matmul(weights(scores), values(heads_, keys_, depth));
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t one_of(const Ints& list) { return list[static_cast<size_t>(below(std::ssize(list)))]; }
  Tensor number(float value) { return testing::floats(context_, {value}); }
  Tensor tensor(const Ints& shape) {
    testing::Floats data;
    for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
      data.push_back(static_cast<float>(below(33) - 16) / 16);
    return testing::floats(context_, data, shape);
  }
  // A matrix a head; heads lie outside, or between rows and columns.
  Tensor values(int64_t heads, int64_t rows, int64_t columns) {
    if (below(2)) return tensor({heads, rows, columns});
    return permute(tensor({rows, heads, columns}), {1, 0, 2});
  }
  Tensor weights(const Tensor& scores) {
    switch (below(4)) {
      case 0: {  // without the maximum, each row divided by its sum
        const Tensor e = mul(scores, scores);
        return div(e, add(sum(e, {2}, true), number(1)));
      }
      case 1:  // what lies below the middle of its row counts for nothing
        return relu(sub(scores, mean(scores, {2}, true)));
      case 2: {  // a softmax as others write it
        const Tensor e = exp(sub(scores, max(scores, {2}, true)));
        return div(e, sum(e, {2}, true));
      }
      default:
        return softmax(scores, 2);
    }
  }

  Ref<Context> context_;
  std::mt19937_64 random_;
  int64_t heads_ = 0;
  int64_t rows_ = 0;
  int64_t keys_ = 0;
  int64_t width_ = 0;
};

// SEEDS says how many.
TEST(RowTiles, HaveTheOraclesValues) {
  const uint64_t seeds = testing::number_from("SEEDS", 60);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const char* isa = seed % 3 == 0 ? "avx2" : "auto";
    Flags flags = testing::flags_for(seed % 5 == 0 ? "interp" : "cpu", seed % 5 == 0 ? "" : isa);
    flags.threads = 1 + static_cast<int64_t>(seed % 2);
    const Ref<Context> context = make_ref<Context>(flags);
    const Tensor output = Attention(context, seed).make();
    const reference::Values want = reference::evaluate(output.node());
    EXPECT_EQ(reference::difference(want, testing::floats_of(output).data()), "");
  }
}

// Rows that make no loop: the panel of the values is filled once all the same.
TEST(RowTiles, FewRowsHaveAPanelOfValuesThatLieAcross) {
  for (const char* isa : {"auto", "avx2"}) {
    Flags flags = testing::flags_for("cpu", isa);
    flags.threads = 2;
    const Ref<Context> context = make_ref<Context>(flags);
    const auto values = [&](const Ints& shape) {
      testing::Floats data;
      for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
        data.push_back(static_cast<float>(i * 7 % 33 - 16) / 16);
      return testing::floats(context, data, shape);
    };
    const Tensor scores = matmul(values({9, 15}), permute(values({31, 15}), {1, 0}));
    const Tensor output = matmul(softmax(scores, 1), permute(values({58, 31}), {1, 0}));
    const reference::Values want = reference::evaluate(output.node());
    EXPECT_EQ(reference::difference(want, testing::floats_of(output).data()), "") << isa;
  }
}

// Two rows of one size in one kernel, each walked twice and one of them multiplied: what is kept of
// either has the lanes of the same columns.
TEST(RowTiles, KeepValuesOfTwoRowsAlongTheSameColumns) {
  for (const int64_t size : {2, 3, 8}) {
    const Ref<Context> context = testing::new_context("cpu");
    const auto input = [&](const Ints& shape) {
      testing::Floats data;
      for (int64_t i = 0; i < product(to_shape(shape)).value(); ++i)
        data.push_back(static_cast<float>(i * 7 % 5 + 1) / 4);
      return testing::floats(context, data, shape);
    };
    const Tensor least = input({1});  // of both, which are one kernel so
    std::vector<Tensor> outputs;
    const auto add_sums = [&](bool is_multiplied) {
      const Tensor p = input({1, size});
      const Tensor e = input({1, size});
      const Tensor scale = input({1, 1});
      const Tensor w = where(less_equal(least, p), div(input({1, size}), p), e);
      const Tensor first = sum(mul(neg(w), div(div(e, scale), scale)), {1}, true);
      const Tensor u = mul(add(div(w, scale), first), e);
      const Tensor second = sum(u, {1}, true);
      outputs.insert(outputs.end(), {first, second});
      if (is_multiplied) outputs.push_back(matmul(sub(u, mul(e, second)), input({size, 16})));
    };
    add_sums(true);
    add_sums(false);
    std::vector<reference::Values> wanted;
    std::vector<Tensor*> together;
    for (Tensor& output : outputs) {
      wanted.push_back(reference::evaluate(output.node()));
      together.push_back(&output);
    }
    realize(together);
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(reference::difference(wanted[i], testing::floats_of(outputs[i]).data()), "");
  }
}

size_t kernels(const Tensor& t) {
  const UOp wanted = t.graph().make(Op::Contiguous, {t.node()});
  return make_schedule({&wanted, 1}, avx512_machine()).kernels.size();
}

Tensor attention(const Ref<Context>& context, int64_t rows, int64_t keys) {
  const auto input = [&](const Ints& shape) { return testing::float_input(context, shape); };
  const Tensor scores = matmul(input({12, rows, 64}), permute(input({12, keys, 64}), {0, 2, 1}));
  return matmul(softmax(scores, 2), input({12, keys, 64}));
}

// Weights are never formed: rows are divided where they are summed.
TEST(RowTiles, DivideRowsOnceTheyAreSummed) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  const UOp wanted = context->graph().make(Op::Contiguous, {attention(context, 128, 128).node()});
  const Schedule schedule = make_schedule({&wanted, 1}, avx512_machine());
  const Kernel kernel = prepare_kernel(schedule.kernels.front().kernel, avx512_machine());
  EXPECT_EQ(kernel.roots.front().src(1).op(), Op::Mul);
  EXPECT_EQ(kernel.roots.front().src(1).src(0).op(), Op::Reduce);
}

// What a head's tiles share is fetched while the head before is multiplied, if all operands are
// more than the second level of cache holds.
TEST(RowTiles, FetchWhatTheNextHeadReads) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  const auto options = [&](int64_t heads) {
    const auto input = [&] { return testing::float_input(context, {heads, 128, 64}); };
    const Tensor scores = matmul(input(), permute(input(), {0, 2, 1}));
    const Tensor output = matmul(softmax(scores, 2), input());
    const UOp wanted = output.graph().make(Op::Contiguous, {output.node()});
    const Schedule schedule = make_schedule({&wanted, 1}, avx512_machine());
    return generate(schedule.kernels.front().kernel, avx512_machine(), {}).options;
  };
  EXPECT_TRUE(options(12).ends_with("PREFETCH p0 r1; PREFETCH p1 r0; PREFETCH p2 r0"));
  EXPECT_EQ(options(4).find("PREFETCH"), std::string::npos);
}

// What is kept of a row is stored in whole vectors where there are places behind it: no lane that
// is computed again holds what was there before, which may be a denormal.
TEST(RowTiles, KeepRowsInWholeVectors) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  for (const Machine& target : {avx512_machine(), avx2_machine()}) {
    const auto input = [&](const Ints& shape) { return testing::float_input(context, shape); };
    const Tensor scores = matmul(input({7, 171, 20}), permute(input({7, 5, 20}), {0, 2, 1}));
    const UOp wanted = context->graph().make(Op::Contiguous, {softmax(scores, 2).node()});
    const Schedule schedule = make_schedule({&wanted, 1}, target);
    const LinearProgram program = generate(schedule.kernels.front().kernel, target, {}).program;
    int whole = 0;
    for (const LinearOp& op : program.ops) {
      if (op.op != Op::Store || op.aux != 1 || program.ops[op.src[2]].dtype.lanes == 1) continue;
      LinearOp base = program.ops[op.src[0]];
      while (base.op == Op::Address) base = program.ops[base.src[0]];
      if (base.op != Op::Scratch) continue;
      EXPECT_EQ(op.count, 3);  // no mask
      ++whole;
    }
    EXPECT_GT(whole, 8);
  }
}

// A mask that is looked up: what is checked has 64 bits, and no more lanes than registers hold.
TEST(RowTiles, HaveLanesForTheIndicesThatTheyCheck) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  const auto input = [&](const Ints& shape) { return testing::float_input(context, shape); };
  const Ints data(64);
  const Tensor places = from_data(context, kInt64, {64}, data.data(), sizeof(int64_t) * 64);
  const Tensor none = full(context, kFloat32, {64}, 0);
  const Tensor scores = matmul(input({4, 16, 8}), input({4, 8, 64}));
  const Tensor output =
      matmul(softmax(add(scores, gather(none, places, 0)), 2), input({4, 64, 64}));
  const UOp wanted = output.graph().make(Op::Contiguous, {output.node()});
  const Schedule schedule = make_schedule({&wanted, 1}, avx512_machine());
  for (const ScheduledKernel& kernel : schedule.kernels)
    EXPECT_NO_THROW(
        render_x86(generate(kernel.kernel, avx512_machine(), {}).program, avx512_machine()));
}

// Rows that are computed are kept for all columns, also those of halves that are widened for their
// product; what is read and widened is not.
TEST(RowTiles, KeepWhatIsComputedAndWidened) {
  Graph g;
  const auto range = [&](int64_t number) { return g.make(Op::Range, {g.integer(64)}, number); };
  const UOp row = range(0), column = range(1), step = range(2);
  const ViewArg matrix{{64, 64}, {64, 1}, 0};
  const auto read = [&](int64_t param, const UOp& i, const UOp& k, DType dtype) {
    return g.make(Op::Load, {g.make(Op::Param, {}, param, kAddress), i, k}, matrix, dtype);
  };
  const UOp halves = read(0, row, step, kFloat16);
  const auto factor_of = [&](const UOp& value) {
    const UOp product = cast(value, kFloat32) * read(1, step, column, kFloat32);
    const UOp sum = g.make(Op::Reduce, {product, step}, ReduceArg{Op::Add, {}});
    return computed_factor(sum, {1}, {2}, 0);
  };
  EXPECT_FALSE(factor_of(halves));
  const auto computed = factor_of(halves * halves);
  ASSERT_TRUE(computed);
  EXPECT_EQ(computed->value.dtype(), kFloat32);
  EXPECT_EQ(computed->walked, 2);
}

// What one row folds does not wait for another, and rows of fewer elements than a vector has lanes
// are folded with lanes too.
TEST(RowTiles, ReduceRowsSideBySide) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  for (const int64_t keys : {11, 45, 128, 400}) {
    const UOp wanted = context->graph().make(Op::Contiguous, {attention(context, 45, keys).node()});
    const Schedule schedule = make_schedule({&wanted, 1}, avx512_machine());
    const Kernel prepared = prepare_kernel(schedule.kernels.front().kernel, avx512_machine());
    const Kernel kernel = optimise(prepared, avx512_machine()).kernel;
    FreeRanges free;
    add_free_ranges(kernel, kernel.roots, free);
    const auto has_kind = [&](RangeSet ranges, RangeKind kind) {
      for (size_t i = 0; i < kernel.ranges.size(); ++i)
        if ((ranges >> i & 1) && kernel.ranges[i].kind == kind) return true;
      return false;
    };
    int maxima = 0;
    for (const UOp& u : topological(kernel.roots)) {
      if (u.op() != Op::Reduce || u.reduce_arg().op != Op::Max) continue;
      ++maxima;
      EXPECT_TRUE(has_kind(free.at(u.src(0).node()), RangeKind::Vec)) << keys;
      EXPECT_TRUE(has_kind(free.at(u.node()), RangeKind::Upcast)) << keys;
    }
    EXPECT_EQ(maxima, 1);
  }
}

TEST(RowTiles, AreOneKernelHoweverLongTheyAre) {
  const Ref<Context> context = testing::new_context("interp", "avx512");
  EXPECT_EQ(kernels(attention(context, 128, 128)), 1U);
  EXPECT_EQ(kernels(attention(context, 64, 64)), 1U);
  EXPECT_EQ(kernels(attention(context, 2048, 2048)), 1U);
  // The scores of a few rows alone are more than the cache holds.
  EXPECT_EQ(kernels(attention(context, 64, 65536)), 1U);
  // One row, and few: what they share is read once.
  EXPECT_EQ(kernels(attention(context, 1, 128)), 1U);
  EXPECT_EQ(kernels(attention(context, 1, 65536)), 1U);
  EXPECT_EQ(kernels(attention(context, 3, 4096)), 1U);
}

}  // namespace
}  // namespace tiny

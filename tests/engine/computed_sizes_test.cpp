// Sizes that a run computes: one program, other data, other shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/compile.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scatter.h"
#include "tests/support/context.h"

namespace tiny {
namespace {

constexpr int64_t kCount = 300;

class ComputedSizes : public ::testing::TestWithParam<std::string> {
 protected:
  // The elements above 0 of an input, twice as much, and their sum.
  void compile() {
    const UOp node = make_input(*context_, kFloat32, kCount);
    const Tensor x(context_, make_reshape(node, {kCount}));
    const Chosen chosen = chosen_places(less(Tensor::weak_float(context_, 0), x));
    const UOp n = context_->graph().variable("#n", 0, kCount);
    const Tensor kept = gather_first(x, shrink(chosen.places, {0}, {Dim(n)}));
    const std::vector<UOp> outputs{kept.node(), sum(kept, {0}).node()};
    program_ = compile_program(*context_, outputs, {&node, 1}, {&n, 1}, {},
                               std::vector<ComputedVariable>{{n, contiguous(chosen.count).node()}})
                   .program;
    run_ = make_ref<tiny::Run>(program_);
  }

  static Tensor gather_first(const Tensor& x, const Tensor& places) {
    const Tensor two = Tensor::weak_float(x.context_ref(), 2);
    return mul(gather(x, places), two);
  }

  void expect_right(const std::vector<float>& x) {
    std::vector<float> want;
    float total = 0;
    for (const float v : x)
      if (v > 0) want.push_back(2 * v), total += 2 * v;
    run_->bind_input(0, context_->from_host(x.data(), kCount * 4));
    const Ref<Storage> kept = context_->allocate(kCount * 4), sum = context_->allocate(4);
    run_->bind_output(0, kept);
    run_->bind_output(1, sum);
    run_->execute();
    EXPECT_EQ(run_->variable(0), std::ssize(want));
    std::vector<float> got(want.size());
    context_->device().copy_out(nullptr, got.data(), kept->memory(), 0, std::ssize(got) * 4);
    float got_total = 0;
    context_->device().copy_out(nullptr, &got_total, sum->memory(), 0, 4);
    EXPECT_EQ(got, want);
    EXPECT_NEAR(got_total, total, 1e-4 * std::abs(total));
  }

  Ref<Context> context_ = testing::new_context(GetParam());
  Ref<Program> program_;
  Ref<tiny::Run> run_;
};

INSTANTIATE_TEST_SUITE_P(Devices, ComputedSizes, ::testing::Values("cpu", "interp", "far"));

TEST_P(ComputedSizes, AreThoseOfEachRunsData) {
  compile();
  for (const int every : {1, 2, 3, 1000, 7}) {
    std::vector<float> x(kCount);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = i % static_cast<size_t>(every) == 1 || every == 1 ? static_cast<float>(i + 1) : -1.0f;
    expect_right(x);
  }
  expect_right(std::vector<float>(kCount, -2.0f));
}

TEST_P(ComputedSizes, AreReadBeforeTheFirstKernelThatUsesThem) {
  compile();
  ASSERT_EQ(program_->sizes.size(), 1U);
  const ComputedSize& size = program_->sizes.front();
  EXPECT_TRUE(program_->variables[size.variable].is_computed);
  for (uint32_t i = 0; i < program_->tape.size(); ++i)
    EXPECT_EQ(std::ranges::count(program_->tape[i].variables, size.variable) > 0, i >= size.entry)
        << i;
}

// As many as an input's number says, which nothing bounds: twice their squares, and their sum.
class OpenSizes : public ::testing::TestWithParam<std::string> {
 protected:
  OpenSizes() {
    const UOp node = make_input(*context_, kInt64, 1);
    const Tensor count = contiguous(abs(Tensor(context_, node)) - Tensor::weak_int(context_, 1));
    const UOp n = context_->graph().variable("#n", 0, kOpenSizeMax);
    const Tensor all = arange(context_, kInt64, Dim(n));
    const Tensor squares = contiguous(mul(all, all));
    const std::vector<UOp> outputs{add(squares, flip(squares, {0})).node(),
                                   sum(squares, {0}).node()};
    program_ = compile_program(*context_, outputs, {&node, 1}, {&n, 1}, {},
                               std::vector<ComputedVariable>{{n, count.node(), true}})
                   .program;
    run_ = make_ref<tiny::Run>(program_);
    run_->bind_output(1, context_->allocate(8));
  }

  void execute(int64_t count) {
    const int64_t above = count + 1;
    run_->bind_input(0, context_->from_host(&above, 8));
    run_->execute();
  }

  Ref<Context> context_ = testing::new_context(GetParam());
  Ref<Program> program_;
  Ref<tiny::Run> run_;
};

INSTANTIATE_TEST_SUITE_P(Devices, OpenSizes, ::testing::Values("cpu", "interp", "far"));

TEST_P(OpenSizes, HaveMemoryOnceTheyAreKnown) {
  ASSERT_TRUE(run_->makes_output(0));
  EXPECT_FALSE(run_->makes_output(1));
  EXPECT_LT(program_->arena_bytes, 1 << 16);
  for (const int64_t count : {5, 300, 0, 1, 301, 300}) {
    execute(count);
    EXPECT_EQ(run_->variable(0), count);
    std::vector<int64_t> got(static_cast<size_t>(count));
    context_->device().copy_out(nullptr, got.data(), run_->made_output(0)->memory(), 0, count * 8);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t back = count - 1 - i;
      EXPECT_EQ(got[static_cast<size_t>(i)], i * i + back * back) << i << " of " << count;
    }
  }
}

TEST_P(OpenSizes, GrowNoMemoryThatIsThere) {
  execute(1000);
  const Ref<Storage> first = run_->made_output(0);
  const int64_t used = context_->device().memory().used();
  for (int64_t count = 0; count <= 1000; count += 50) execute(count);
  EXPECT_TRUE(run_->made_output(0) == first);
  EXPECT_EQ(context_->device().memory().used(), used);
  run_->let_go_output(0);
  execute(7);
  EXPECT_FALSE(run_->made_output(0) == first);
}

TEST_P(OpenSizes, AreErrorsOutsideOfTheirBounds) {
  for (const int64_t count : {kOpenSizeMax + 1, int64_t{1} << 40, int64_t{-1}}) {
    try {
      execute(count);
      FAIL() << count;
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), Status::Limit);
      EXPECT_TRUE(e.message().starts_with("the size \"#n\" is")) << e.message();
    }
    execute(3);
    EXPECT_EQ(run_->variable(0), 3);
  }
}

}  // namespace
}  // namespace tiny

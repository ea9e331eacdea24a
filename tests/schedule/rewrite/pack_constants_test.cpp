// Constants of contractions are laid out in panels, and the graph has the same values.
#include "schedule/rewrite/pack_constants.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/schedule.h"
#include "shape/shape.h"
#include "shape/view.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/graph_test.h"

namespace tiny {
namespace {

class PackConstants : public testing::GraphTest {
 protected:
  Tensor constant(const Ints& shape) { return given(shape); }
  // Computed data: nothing that a pack could take for a constant.
  Tensor data(const Ints& shape) { return neg(constant(shape)); }

  static UOp pack(const Tensor& t) {
    Machine target = avx512_machine();
    target.l2_bytes = target.l3_bytes = 4096;  // what is read is in memory
    target.dots = kIntegerDots;
    return pack(t, target);
  }
  // `knows` what memory holds: else nothing is a constant.
  static UOp pack(const Tensor& t, const Machine& target, bool knows = true) {
    std::vector<uint8_t> is_constant(t.graph().id_limit());
    std::vector<uint8_t> varies(t.graph().id_limit());
    for (const UOp& u : topological({&t.node(), 1})) {
      is_constant[u.id()] = knows && has_memory(u) ? 1 : 0;
      varies[u.id()] = u.op() == Op::Neg && u.dtype() == kFloat32 ? 1 : 0;
      for (const UOp& s : u.src()) varies[u.id()] |= varies[s.id()];
    }
    return pack_constants({&t.node(), 1}, target, is_constant, varies).roots.front();
  }
  // The shapes of the constants that were laid out anew; values are the oracle's.
  static std::vector<Ints> packed(const Tensor& t) {
    const UOp out = pack(t);
    const reference::Values want = reference::evaluate(t.node());
    const reference::Values got = reference::evaluate(out);
    EXPECT_EQ(got.shape, want.shape);
    EXPECT_EQ(got.real, want.real);
    std::vector<Ints> shapes;
    for (const UOp& u : topological({&out, 1}))
      if (u.op() == Op::Contiguous) shapes.push_back(const_dims(shape_of(u)));
    return shapes;
  }
};

TEST_F(PackConstants, AMatrixIsPanelsOfTwoVectors) {
  EXPECT_EQ(packed(matmul(data({5, 24}), constant({24, 96}))), (std::vector<Ints>{{3, 24, 32}}));
  const Tensor transposed = permute(constant({96, 24}), {1, 0});
  EXPECT_EQ(packed(matmul(data({5, 24}), transposed)), (std::vector<Ints>{{3, 24, 32}}));
}

TEST_F(PackConstants, ThreeVectorsOrOneOrAllColumnsWhereTwoDoNotFit) {
  EXPECT_EQ(packed(matmul(data({5, 24}), constant({24, 144}))), (std::vector<Ints>{{3, 24, 48}}));
  EXPECT_TRUE(packed(matmul(data({5, 24}), constant({24, 48}))).empty()) << "one panel as it lies";
  EXPECT_EQ(packed(matmul(data({5, 24}), constant({24, 80}))), (std::vector<Ints>{{5, 24, 16}}));
  const Tensor odd = permute(constant({50, 24}), {1, 0});
  EXPECT_EQ(packed(matmul(data({5, 24}), odd)), (std::vector<Ints>{{1, 24, 50}}));
}

// What each group multiplies with all of its columns is worth a part of a vector, where lanes along
// the groups would have elements of their own.
TEST_F(PackConstants, ColumnsOfGroupsAreAPartOfAVector) {
  const auto grouped = [&](int64_t groups, int64_t out) {
    const Tensor x = data({1, groups * 8, 14, 14});
    const Window window = Window().with_groups(groups);
    return packed(conv(x, constant({groups * out, 8, 3, 3}), Tensor(), window));
  };
  EXPECT_EQ(grouped(32, 8), (std::vector<Ints>{{32, 1, 3, 3, 8, 8}}));
  EXPECT_EQ(grouped(32, 4), (std::vector<Ints>{{4, 1, 3, 3, 8, 32}})) << "too small a part";
}

// The last panel is filled up with zeros, which nobody reads.
TEST_F(PackConstants, ManyColumnsArePanelsOfTwoVectorsWhateverTheirNumber) {
  EXPECT_EQ(packed(matmul(data({5, 24}), constant({24, 500}))), (std::vector<Ints>{{16, 24, 32}}));
  const Tensor transposed = permute(constant({203, 24}), {1, 0});
  EXPECT_EQ(packed(matmul(data({5, 24}), transposed)), (std::vector<Ints>{{7, 24, 32}}));
}

// So are those of which a few rows would have too few sums at once.
TEST_F(PackConstants, FewRowsReadPanelsOfTwoVectors) {
  const auto columns = [&](int64_t rows, int64_t size) {
    return packed(matmul(data({rows, 24}), constant({24, size}))).front();
  };
  EXPECT_EQ(columns(7, 13 * 16), (Ints{7, 24, 32}));
  EXPECT_EQ(columns(8, 13 * 16), (Ints{13, 24, 16}));
  EXPECT_EQ(columns(7, 11 * 16), (Ints{11, 24, 16}));
}

// Where vectors are less than a line, one row's matrix in the last cache stays as it lies.
TEST_F(PackConstants, WholeRowsStayForOneRowWhereTheyComeFaster) {
  Machine target = avx2_machine();
  target.l2_bytes = 16 << 10;
  target.l3_bytes = 1 << 20;
  const auto copies = [](const Tensor& t, const Machine& machine) {
    const UOp out = pack(t, machine);
    return std::ranges::count_if(topological({&out, 1}),
                                 [](const UOp& u) { return u.op() == Op::Contiguous; });
  };
  const auto stays = [&](const Tensor& t, const Machine& machine) {
    return copies(t, machine) == 0;
  };
  const auto product = [&](int64_t rows, int64_t steps, int64_t columns) {
    return matmul(data({rows, steps}), constant({steps, columns}));
  };
  EXPECT_TRUE(stays(product(1, 32, 1024), target));
  EXPECT_FALSE(stays(product(1, 32, 1024), avx512_machine())) << "a vector is a line";
  EXPECT_FALSE(stays(product(2, 32, 1024), target)) << "panels are used again";
  EXPECT_FALSE(stays(product(1, 33, 1024), target)) << "one row of memory is left";
  EXPECT_FALSE(stays(product(1, 32, 1000), target)) << "short rows";
  EXPECT_FALSE(stays(product(1, 512, 1024), target)) << "in memory";
  EXPECT_FALSE(stays(product(1, 32, 8192), target)) << "sums leave the first level";
  const Tensor wide = constant({32, 1024}), next = constant({1024, 256});
  const Tensor both = matmul(relu(matmul(data({1, 32}), wide)), next);
  EXPECT_EQ(copies(both, target), 2) << "all together are in memory";
}

TEST_F(PackConstants, AConvolutionsChannelsAreTheInnermostSteps) {
  EXPECT_EQ(packed(conv(data({1, 16, 5, 6}), constant({64, 16, 3, 3}), Tensor(), {})),
            (std::vector<Ints>{{2, 3, 3, 16, 32}}));
}

// Data that lies in memory has them where it has them.
// Rows and columns of a patch are as many: its columns lie side by side.
TEST_F(PackConstants, APatchsColumnsAreTheInnermostSteps) {
  const Window patches{.strides = {6, 8}};
  const Tensor product = conv(data({1, 3, 12, 16}), constant({32, 3, 8, 8}), Tensor(), patches);
  const std::vector<Ints> shapes = packed(product);
  ASSERT_EQ(shapes.size(), 1U);
  EXPECT_EQ(shapes[0], (Ints{1, 3, 8, 8, 32}));
  const UOp out = pack(product);
  for (const UOp& u : topological({&out, 1})) {
    if (u.op() != Op::Contiguous) continue;
    const UOp& order = u.src(0);
    EXPECT_EQ(order.op(), Op::Permute);
    EXPECT_EQ(order.ints(), (Ints{0, 2, 3, 4, 1})) << "blocks; channels, rows, columns; lanes";
  }
}

// Words are of channels, the last filled up; of a longer window's steps where channels fill none.
TEST_F(PackConstants, WordsOfAConvolutionsBytesAreOfChannels) {
  const auto words = [&](int64_t channels, const Ints& window, int64_t columns = 32) {
    Ints shape{columns, channels}, rows{1, channels};
    for (const int64_t size : window) shape.push_back(size), rows.push_back(size + 9);
    Tensor bytes = cast(constant(shape), kInt8);
    Tensor* const stored[] = {&bytes};
    realize(stored);
    return packed(
        conv(cast(cast(abs(data(rows)), kUInt8), kInt32), cast(bytes, kInt32), Tensor(), Window()));
  };
  EXPECT_EQ(words(50, {3}), (std::vector<Ints>{{1, 3, 13, 32, 4}}));
  EXPECT_EQ(words(50, {4}), (std::vector<Ints>{{1, 4, 13, 32, 4}}));
  EXPECT_EQ(words(6, {3, 3}), (std::vector<Ints>{{1, 3, 3, 2, 32, 4}}));
  EXPECT_EQ(words(5, {7, 7}), (std::vector<Ints>{{1, 7, 7, 2, 32, 4}}));
  EXPECT_EQ(words(3, {7, 7}), (std::vector<Ints>{{1, 3, 7, 2, 32, 4}}));
  EXPECT_EQ(words(32, {3, 3}, 8), (std::vector<Ints>{{1, 3, 3, 8, 8, 4}})) << "half a vector";
  EXPECT_TRUE(words(32, {3, 3}, 2).empty());
}

TEST_F(PackConstants, StepsThatLieSideBySideInMemoryAreInnermost) {
  const Tensor weights = constant({64, 16, 3});
  EXPECT_EQ(packed(conv(permute(constant({1, 7, 16}), {0, 2, 1}), weights, Tensor(), {})),
            (std::vector<Ints>{{2, 3, 16, 32}}));
  EXPECT_EQ(packed(conv(constant({1, 16, 7}), weights, Tensor(), {})),
            (std::vector<Ints>{{2, 16, 3, 32}}));
}

TEST_F(PackConstants, EachGroupHasItsPanels) {
  const Tensor y =
      conv(data({1, 16, 5, 6}), constant({64, 8, 3, 3}), Tensor(), Window().with_groups(2));
  EXPECT_EQ(packed(y), (std::vector<Ints>{{2, 1, 3, 3, 8, 32}}));
}

// What a table says of each pair of positions comes with heads innermost; scores have keys
// innermost.
TEST_F(PackConstants, ABiasOfScoresLiesAsTheyDo) {
  const Tensor scores = matmul(data({2, 6, 40, 8}), data({2, 6, 8, 40}));
  const Tensor bias = permute(constant({40, 40, 6}), {2, 0, 1});
  const std::vector<Ints> ordered{{6, 40, 40}};
  EXPECT_EQ(packed(add(scores, bias)), ordered);
  EXPECT_EQ(packed(add(bias, mul(scores, constant({1})))), ordered);
  const std::vector<Ints> none;
  EXPECT_EQ(packed(add(scores, constant({6, 40, 40}))), none);
  EXPECT_EQ(packed(add(scores, permute(constant({1, 40, 6, 1}), {3, 2, 1, 0}))), none);
  EXPECT_EQ(packed(add(data({6, 40, 40}), bias)), none);
}

TEST_F(PackConstants, WhatGainsNothingStays) {
  EXPECT_TRUE(packed(matmul(data({5, 8}), constant({8, 16}))).empty()) << "small";
  EXPECT_TRUE(packed(matmul(data({5, 64}), data({64, 64}))).empty()) << "no constant";
  EXPECT_TRUE(packed(matmul(data({5, 64}), constant({64, 32}))).empty()) << "one panel as it is";
  const Tensor rows = permute(constant({64, 64}), {1, 0});
  EXPECT_TRUE(packed(matmul(data({1, 64}), rows)).empty()) << "lanes run along its rows";
  EXPECT_TRUE(packed(mul(data({64, 64}), constant({64, 64}))).empty()) << "no contraction";
}

TEST_F(PackConstants, ANarrowMatrixStaysNarrowWhereFewRowsReadIt) {
  const auto narrow = [&](DType dtype) { return cast(constant({64, 128}), dtype); };
  const auto types = [&](const Tensor& t) {
    const UOp out = pack(t);
    std::vector<DType> found;
    for (const UOp& u : topological({&out, 1}))
      if (u.op() == Op::Contiguous) found.push_back(u.dtype());
    return found;
  };
  Tensor half = narrow(kFloat16), byte = narrow(kInt8);
  Tensor* const both[] = {&half, &byte};
  realize(both);
  const Tensor few = data({2, 64}), many = data({256, 64});
  EXPECT_EQ(types(matmul(few, cast(half, kFloat32))), (std::vector<DType>{kFloat16}));
  EXPECT_EQ(types(matmul(few, cast(byte, kFloat32))), (std::vector<DType>{kInt8}));
  EXPECT_TRUE(types(matmul(many, cast(half, kFloat32))).empty());
  EXPECT_EQ(packed(matmul(few, cast(half, kFloat32))), (std::vector<Ints>{{2, 64, 64}}));
  const Tensor points = constant({128});
  EXPECT_EQ(packed(matmul(data({7, 64}), cast(byte, kFloat32) + points)),
            (std::vector<Ints>{{4, 64, 32}}));
}

TEST_F(PackConstants, WhatTheStepsOfALoopShareIsLaidOutBeforeIt) {
  const auto packed_in_loop = [&](int64_t steps, const Tensor& shared) {
    const Recurrence states{steps, {}, {data({5, 96})}, {}};
    const Tensor last = recur(context_, states, [&](const RecurrenceStep& step) {
                          return RecurrenceResult{{}, {matmul(step.state[0], shared)}};
                        }).state[0];
    const UOp out = pack(last, avx512_machine(), false);
    const reference::Values want = reference::evaluate(last.node());
    EXPECT_EQ(reference::evaluate(out).real, want.real);
    std::vector<Ints> shapes;
    for (const UOp& u : topological({&out, 1}))
      if (u.op() == Op::Contiguous && shape_of(u).size() == 3)  // panels, no states
        shapes.push_back(const_dims(shape_of(u)));
    return shapes;
  };
  const Tensor turned = permute(constant({96, 96}), {1, 0});
  EXPECT_EQ(packed_in_loop(8, turned), (std::vector<Ints>{{3, 96, 32}}));
  EXPECT_TRUE(packed_in_loop(8, constant({96, 96})).empty()) << "columns lie side by side";
  EXPECT_TRUE(packed_in_loop(2, turned).empty()) << "few steps";
  const UOp alone = pack(matmul(data({5, 96}), turned), avx512_machine(), false);
  EXPECT_TRUE(std::ranges::none_of(topological({&alone, 1}), [](const UOp& u) {
    return u.op() == Op::Contiguous;
  })) << "read once";
}

TEST_F(PackConstants, APackedConstantIsNotPackedAgain) {
  const Tensor y = matmul(data({5, 24}), constant({24, 96}));
  const UOp once = pack(y);
  const UOp twice = pack(y.with(once));
  EXPECT_TRUE(once == twice);
}

}  // namespace
}  // namespace tiny

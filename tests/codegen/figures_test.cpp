// What a kernel's figures count: each operation once per evaluation.
#include "codegen/figures.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/linear.h"
#include "ir/nest.h"
#include "ir/svg.h"

namespace tiny {
namespace {

UOp range(Graph& g, int64_t number, int64_t size) {
  return g.make(Op::Range, {g.integer(size)}, number);
}
UOp load(Graph& g, int64_t slot, const std::vector<UOp>& index, const ViewArg& view) {
  std::vector<UOp> src{g.make(Op::Param, {}, slot, kFloat32)};
  src.insert(src.end(), index.begin(), index.end());
  return g.make(Op::Load, std::move(src), view, kFloat32);
}
UOp store(Graph& g, int64_t slot, const UOp& value, const std::vector<UOp>& index,
          const ViewArg& view) {
  std::vector<UOp> src{g.make(Op::Param, {}, slot, kFloat32), value};
  src.insert(src.end(), index.begin(), index.end());
  return g.make(Op::Store, std::move(src), view);
}
Kernel kernel_of(const UOp& root, const std::vector<UOp>& ranges, size_t outputs) {
  Kernel k;
  k.name = "k";
  k.roots = {root};
  for (size_t i = 0; i < ranges.size(); ++i)
    k.ranges.push_back({ranges[i], RangeKind::Loop, i >= outputs});
  k.params = {{kFloat32, true, false}, {kFloat32, false, true}};
  return k;
}

// o[m, n] = x[m, n] * s(m), s(m) = sum_a x[m, a]: the sum belongs to each row, not to each element.
TEST(Figures, WhatIsInsideAReductionCountsOncePerRow) {
  Graph g;
  const UOp m = range(g, 0, 8), n = range(g, 1, 100), a = range(g, 2, 100);
  const ViewArg view{{8, 100}, {100, 1}, 0};
  const UOp squared = mul(load(g, 0, {m, a}, view), load(g, 0, {m, a}, view));
  const UOp sum = g.make(Op::Reduce, {squared, a}, ReduceArg{Op::Add, {}});
  const UOp scaled = mul(load(g, 0, {m, n}, view), elementwise(Op::Sqrt, {sum}));
  const Kernel k = kernel_of(store(g, 1, scaled, {m, n}, view), {m, n, a}, 2);
  // A product and an addition for each of 8 x 100, a root a row, a product an element.
  EXPECT_EQ(count_operations(k), 800 + 800 + 8 + 800);
  EXPECT_EQ(shape_name(k), "r_8_100_100");
}

TEST(Figures, ACopyInAnotherGraphOutlivesItsOriginal) {
  Graph other;
  Kernel copy;
  std::string text;
  {
    Graph g;
    const UOp m = range(g, 3, 16), n = range(g, 5, 100);
    const ViewArg view{{16, 100}, {100, 1}, 0};
    const UOp loaded = load(g, 0, {m, n}, view);
    Kernel k = kernel_of(
        store(g, 1, g.make(Op::Reduce, {loaded, n}, ReduceArg{Op::Add, {}}), {m}, {{16}, {1}, 0}),
        {m, n}, 1);
    k.facts = {sub(g.integer(15), m)};
    k.variables = {g.variable("tokens", 2, 64)};
    k.prefetches = {{g.make(Op::Param, {}, int64_t{0}, kFloat32), mul(m, 100), kFloat32}};
    text = to_string(k);
    copy = copy_kernel(k, other);
  }
  EXPECT_EQ(to_string(copy), text);
  EXPECT_EQ(copy.position(copy.ranges[1].range), 1U);
  EXPECT_EQ(copy.variables.front().variable_arg().name, "tokens");
  EXPECT_EQ(&copy.prefetches.front().index.graph(), &other);
  EXPECT_EQ(count_operations(copy), 1600);
}

TEST(Figures, AProductOfMatricesHasTwoOperationsAStep) {
  Graph g;
  const UOp m = range(g, 0, 4), n = range(g, 1, 6), k = range(g, 2, 10);
  const UOp a = load(g, 0, {m, k}, {{4, 10}, {10, 1}, 0});
  const UOp b = load(g, 0, {k, n}, {{10, 6}, {6, 1}, 0});
  const UOp sum = g.make(Op::Reduce, {mul(a, b), k}, ReduceArg{Op::Add, {}});
  const ViewArg out{{4, 6}, {6, 1}, 0};
  const Kernel kernel = kernel_of(store(g, 1, sum, {m, n}, out), {m, n, k}, 2);
  EXPECT_EQ(count_operations(kernel), 2.0 * 4 * 6 * 10);
  EXPECT_EQ(count_bytes(kernel), 4.0 * (40 + 60 + 24));
}

// Of rows at places that data gives, as many as there are steps.
TEST(Figures, StoresByIndexCountTheirSteps) {
  Graph g;
  const UOp m = range(g, 0, 10), n = range(g, 1, 16);
  const UOp place = g.make(Op::Place, {load(g, 0, {m, g.integer(0)}, {{10, 1}, {1, 1}, 0}), m});
  const UOp value = load(g, 1, {m, n}, {{10, 16}, {16, 1}, 0});
  const Kernel k = kernel_of(store(g, 2, value, {place, n}, {{1000, 16}, {16, 1}, 0}), {m, n}, 2);
  EXPECT_EQ(count_bytes(k), 40 + 2 * 10 * 16 * 4);
  EXPECT_EQ(bytes_of(k).const_int(), 40 + 2 * 10 * 16 * 4);
}

TEST(Figures, FollowTheVariables) {
  Graph g;
  const UOp tokens = g.variable("tokens", 1, 1000);
  const UOp m = g.make(Op::Range, {tokens}, int64_t{0}), n = range(g, 1, 6), k = range(g, 2, 10);
  const UOp param = g.make(Op::Param, {}, int64_t{0}, kFloat32);
  const ViewArg rows{{kSymbolicDim, 10}, {10, 1}, 0};
  const UOp a = g.make(Op::Load, {param, m, k, tokens}, rows, kFloat32);
  const UOp b = load(g, 1, {k, n}, {{10, 6}, {6, 1}, 0});
  const UOp sum = g.make(Op::Reduce, {mul(a, b), k}, ReduceArg{Op::Add, {}});
  const Kernel kernel = kernel_of(store(g, 2, sum, {m, n}, {{1000, 6}, {6, 1}, 0}), {m, n, k}, 3);
  EXPECT_EQ(operations_of(kernel), mul(tokens, 2 * 6 * 10));
  EXPECT_EQ(bytes_of(kernel), add(mul(tokens, 4 * 10), 4 * (60 + 6000)));
}

TEST(Figures, IndexArithmeticAndMovesAreNoOperations) {
  Graph g;
  const UOp m = range(g, 0, 16);
  const ViewArg view{{32}, {1}, 0};
  const UOp moved = load(g, 0, {add(mul(m, 2), 1)}, view);
  const Kernel kernel = kernel_of(store(g, 1, moved, {m}, {{16}, {1}, 0}), {m}, 1);
  EXPECT_EQ(count_operations(kernel), 0);
  EXPECT_EQ(shape_name(kernel), "E_16");
}

TEST(Figures, ANestShowsLoopsFillsAndStores) {
  LinearProgram p;
  p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
  p.scratch_bytes = 64;
  const LinearId in = p.add(Op::Param, kAddress, {}, 0);
  const LinearId out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId row = p.add(Op::Scratch, kAddress, {}, 0);
  const LinearId zero = p.add(Op::Const, kInt64, {}, 0);
  const LinearId four = p.add(Op::Const, kInt64, {}, 4);
  const LinearId fill = p.add(Op::Loop, kInt64, {zero, four}, 1);
  const LinearId x = p.add(Op::Load, kFloat32, {in, fill}, 0, 1);
  p.add(Op::Store, kVoid, {row, fill, x}, 0, 1);
  p.add(Op::EndLoop, kVoid, {fill});
  const LinearId loop = p.add(Op::Loop, kInt64, {zero, four}, 1);
  const LinearId y = p.add(Op::Load, kFloat32, {row, loop}, 0, 1);
  const LinearId z = p.add(Op::Mul, kFloat32, {y, y});
  p.add(Op::Store, kVoid, {out, loop, z}, 0, 1);
  p.add(Op::EndLoop, kVoid, {loop});
  verify(p);
  EXPECT_EQ(nest_text(p), "fill s0 [4] of p0\nloop i1 4 { load s0; *; store p1 }\n");
}

TEST(Figures, APictureHasEveryNodeAndEscapesText) {
  const std::string svg = layered_svg({{"a<b", "x", "#fff", {}}, {"c&d", "", "#fff", {0}}}, "t");
  EXPECT_NE(svg.find("a&lt;b"), std::string::npos);
  EXPECT_NE(svg.find("c&amp;d"), std::string::npos);
  EXPECT_NE(svg.find("<path"), std::string::npos);
  EXPECT_EQ(svg.find("a<b"), std::string::npos);
}

// A chain of 300 nodes, each fed from the side, is a straight line, not a diagonal.
TEST(Figures, APictureOfAChainIsNarrow) {
  std::vector<SvgNode> nodes{{"input", "", "#fff", {}}};
  for (int i = 0; i < 300; ++i) {
    const size_t before = nodes.size() - 1;
    nodes.push_back({"weights of a layer", "float32", "#fff", {}});
    nodes.push_back({"Reshape", "", "#fff", {nodes.size() - 1}});
    nodes.push_back({"Mul", "", "#fff", {before, nodes.size() - 1}});
  }
  const std::string svg = layered_svg(nodes, "t");
  const std::string width = svg.substr(svg.find("width=\"") + 7, 8);
  EXPECT_LT(std::stoi(width), 1000);
}

// A loop's ops count once a trip; lanes that lie apart each.
TEST(Figures, WhatIsExecutedCountsByTrip) {
  LinearProgram p;
  const LinearId x = p.add(Op::Param, kAddress);
  const LinearId zero = p.add(Op::Const, kInt64);
  const LinearId end = p.add(Op::LaunchArg, kInt64, {}, 1);
  const LinearId ten = p.add(Op::Const, kInt64, {}, 10);
  const LinearId outer = p.add(Op::Loop, kInt64, {zero, end}, 1);
  const LinearId inner = p.add(Op::Loop, kInt64, {zero, ten}, 4);
  const DType eight = kFloat32.with_lanes(8);
  p.add(Op::Load, eight, {x, inner}, 0, 1);
  p.add(Op::Load, eight, {x, inner}, 0, 5);
  p.add(Op::EndLoop, kVoid, {inner});
  p.add(Op::EndLoop, kVoid, {outer});
  // Four before the loops and the outer loop itself; then seven times: a loop, three times two
  // loads.
  EXPECT_EQ(count_executed(p, 7), 5 + 7 * (1 + 3 * (1 + 8)));
}

}  // namespace
}  // namespace tiny

#include "ir/source_places.h"

#include <gtest/gtest.h>

#include "ir/build.h"
#include "ir/kernel.h"

namespace tiny {
namespace {

// Expressions that share some of what is below them, drawn by a number.
UOp drawn(Graph& graph, int nodes) {
  std::vector<UOp> known;
  for (int64_t n = 2; n < 6; ++n) known.push_back(graph.make(Op::Range, {graph.integer(n)}, n));
  uint64_t random = 7;
  const auto any = [&] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return known[(random >> 33) % known.size()];
  };
  for (int i = 0; i < nodes; ++i) {
    const UOp a = any(), b = any();
    known.push_back(i % 3 == 0 ? graph.make(Op::Max, {a, b}) : graph.make(Op::Add, {a, b}));
  }
  return known.back();
}

TEST(SourcePlaces, AreThoseOfTheSourcesInTheOrder) {
  Graph graph;
  const UOp root = drawn(graph, 60);
  const std::vector<UOp> order = topological({&root, 1});
  const SourcePlaces places(order);
  size_t next = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    EXPECT_EQ(places.place(order[k]), k);
    for (const UOp& s : order[k].src()) {
      ASSERT_LT(next, places.all().size());
      EXPECT_EQ(order[places.all()[next++]], s);
    }
  }
  EXPECT_EQ(next, places.all().size());
}

TEST(SourcePlaces, EndWhereTheWalkEnds) {
  Graph graph;
  const UOp below = drawn(graph, 20);
  const UOp range = graph.make(Op::Range, {graph.integer(4)}, 9);
  const UOp stage = graph.make(Op::Stage, {below, range}, StageArg{{1}, false, 0});
  const UOp root = graph.make(Op::Index, {stage, range});
  const std::vector<UOp> order = topological({&root, 1}, is_stage);
  const SourcePlaces places(order, is_stage);
  EXPECT_EQ(places.all().size(), 1 + root.src().size());  // the range's size, and the root's
  EXPECT_EQ(order[places.all().back()], range);
}

TEST(SourcePlaces, LeaveLaterWalksTheirMarks) {
  Graph graph;
  const UOp root = drawn(graph, 40);
  const std::vector<UOp> order = topological({&root, 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(SourcePlaces(order).place(root), order.size() - 1);
    EXPECT_EQ(topological({&root, 1}), order);
  }
  EXPECT_TRUE(SourcePlaces({}).all().empty());
}

}  // namespace
}  // namespace tiny

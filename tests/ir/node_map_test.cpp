#include "ir/node_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ir/build.h"

namespace tiny {
namespace {

TEST(NodeTable, HoldsWhatAMapHoldsThroughEveryGrowth) {
  Graph graph;
  std::vector<UOp> nodes;
  for (int64_t i = 0; i < 3000; ++i) nodes.push_back(graph.integer(i));
  std::mt19937 random(7);
  NodeTable<int64_t> table;
  std::map<const Node*, int64_t> model;
  for (int step = 0; step < 10000; ++step) {
    const Node* node = nodes[random() % nodes.size()].node();
    switch (random() % 3) {
      case 0:
        EXPECT_EQ(table.emplace(node, step), model.emplace(node, step).second);
        break;
      case 1:
        table[node] += step;
        model[node] += step;
        break;
      default:
        EXPECT_EQ(table.contains(node), model.contains(node));
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (const UOp& u : nodes) {
    const int64_t* found = table.find(u.node());
    const auto wanted = model.find(u.node());
    ASSERT_EQ(found != nullptr, wanted != model.end());
    if (found) {
      EXPECT_EQ(*found, wanted->second);
    }
  }
}

TEST(NodeTable, KeepsItsEntriesWhereRoomIsMade) {
  Graph graph;
  NodeTable<std::string> table;
  const UOp a = graph.integer(1);
  EXPECT_EQ(table.find(a.node()), nullptr);
  table.emplace(a.node(), "a");
  table.reserve(1000);
  EXPECT_EQ(table.at(a.node()), "a");
  EXPECT_EQ(table.size(), 1u);
  table.clear();
  EXPECT_FALSE(table.contains(a.node()));
  EXPECT_EQ(table.size(), 0u);
}

TEST(NodeTable, SaysThatANodeThatMustBeThereIsNot) {
  Graph graph;
  const UOp a = graph.integer(1);
  NodeTable<int> table;
  EXPECT_THROW(table.at(a.node()), Error);
}

TEST(NodeSet, KnowsANodeOnce) {
  Graph graph;
  const UOp a = graph.integer(1);
  const UOp b = graph.integer(2);
  NodeSet set{a.node()};
  EXPECT_TRUE(set.contains(a.node()));
  EXPECT_FALSE(set.contains(b.node()));
  EXPECT_FALSE(set.insert(a.node()));
  EXPECT_TRUE(set.insert(b.node()));
  EXPECT_FALSE(set.insert(b.node()));
}

}  // namespace
}  // namespace tiny

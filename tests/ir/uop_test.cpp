#include "ir/uop.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <ctime>
#include <functional>
#include <random>
#include <set>

#include "base/error.h"
#include "ir/build.h"

namespace tiny {
namespace {

TEST(UOp, EqualFieldsGiveTheSameNode) {
  Graph g;
  const UOp n = g.variable("n", 0, 9);
  EXPECT_EQ(n, g.variable("n", 0, 9));
  EXPECT_EQ(g.make(Op::Add, {n, g.integer(1)}), g.make(Op::Add, {n, g.integer(1)}));
  EXPECT_EQ(g.make(Op::Range, {n}, int64_t{3}), g.make(Op::Range, {n}, int64_t{3}));
}

TEST(UOp, AnyOtherFieldGivesAnother) {
  Graph g;
  const UOp n = g.variable("n", 0, 9), one = g.integer(1);
  const UOp nodes[] = {n,
                       one,
                       g.variable("n", 0, 8),
                       g.variable("m", 0, 9),
                       g.integer(2),
                       g.constant_int(kInt32, 1),
                       g.constant(kFloat64, 1),
                       g.make(Op::Add, {n, one}),
                       g.make(Op::Add, {one, n}),
                       g.make(Op::Mul, {n, one}),
                       g.make(Op::Cast, {n}, {}, kInt32),
                       g.make(Op::Cast, {n}, {}, kInt8),
                       g.make(Op::Reduce, {n, one}, ReduceArg{Op::Add, {}}),
                       g.make(Op::Reduce, {n, one}, ReduceArg{Op::Max, {}}),
                       g.make(Op::Stage, {n, one}, Ints{1}),
                       g.make(Op::Stage, {n, one}, Ints{2})};
  std::set<const Node*> distinct;
  for (const UOp& u : nodes) distinct.insert(u.node());
  EXPECT_EQ(distinct.size(), std::size(nodes));
}

TEST(UOp, ConstantsCompareByTheirBits) {
  Graph g;
  EXPECT_FALSE(g.constant(kFloat32, 0.0) == g.constant(kFloat32, -0.0));
  EXPECT_EQ(g.constant(kFloat32, std::nan("")), g.constant(kFloat32, std::nan("")));
  EXPECT_EQ(g.constant_int(kInt8, -1), g.constant_int(kInt8, 255));
  EXPECT_EQ(g.constant_int(kInt8, -1).const_int(), -1);
}

TEST(UOp, ANodeDiesWithItsLastReference) {
  Graph g;
  EXPECT_EQ(g.size(), 0u);
  {
    const UOp n = g.variable("n", 0, 9);
    UOp sum = n + 1;
    EXPECT_EQ(g.size(), 3u);
    EXPECT_EQ(n.references(), 2u);
    UOp copy = sum;
    sum = n;
    EXPECT_EQ(g.size(), 3u);
    EXPECT_EQ(n.references(), 3u);
    copy = UOp();
    EXPECT_EQ(g.size(), 1u);
    EXPECT_EQ(n.references(), 2u);
  }
  EXPECT_EQ(g.size(), 0u);
}

TEST(UOp, CopiesAndMovesKeepTheCount) {
  Graph g;
  UOp a = g.integer(1);
  UOp b = a;
  EXPECT_EQ(a.references(), 2u);
  UOp c = std::move(b);
  EXPECT_FALSE(b);  // NOLINT: a moved-from handle holds no node
  EXPECT_EQ(a.references(), 2u);
  const UOp& alias = c;
  c = alias;
  EXPECT_EQ(a.references(), 2u);
  std::vector<UOp> many(100, a);
  EXPECT_EQ(a.references(), 102u);
}

TEST(UOp, IdsAreDenseAndUsedAgain) {
  Graph g;
  std::vector<UOp> live;
  for (int64_t i = 0; i < 100; ++i) live.push_back(g.integer(i));
  EXPECT_EQ(g.id_limit(), 100u);
  std::set<uint32_t> freed;
  for (size_t i = 0; i < 100; i += 2) {
    freed.insert(live[i].id());
    live[i] = UOp();
  }
  for (int64_t i = 0; i < 50; ++i) {
    live.push_back(g.integer(1000 + i));
    EXPECT_EQ(freed.count(live.back().id()), 1u);
  }
  EXPECT_EQ(g.id_limit(), 100u);
  std::set<uint32_t> ids;
  for (const UOp& u : live)
    if (u) ids.insert(u.id());
  EXPECT_EQ(ids.size(), 100u);
}

TEST(UOp, HashesAreStructural) {
  Graph a, b;
  b.integer(99);
  const auto build = [](Graph& g) { return floor_mod(g.variable("n", 0, 9) * 3 + 1, 7); };
  EXPECT_EQ(build(a).hash(), build(b).hash());
  EXPECT_NE(build(a).hash(), (build(a) + 1).hash());
}

TEST(UOp, TheTableSurvivesRandomMakingAndReleasing) {
  Graph g;
  std::mt19937 rng(1);
  std::vector<UOp> pool;
  for (int64_t i = 0; i < 64; ++i) pool.push_back(g.integer(i));
  for (int step = 0; step < 20000; ++step) {
    const UOp made = g.make(Op::Add, {pool[rng() % 64], pool[rng() % 64]});
    EXPECT_EQ(made, g.make(Op::Add, {made.src(0), made.src(1)}));
    pool[rng() % 64] = rng() % 4 ? made : g.integer(static_cast<int64_t>(rng() % 64));
    if (step % 64 == 0)  // keep expressions small
      for (UOp& u : pool) u = g.integer(static_cast<int64_t>(rng() % 64));
  }
  std::set<const Node*> reachable;
  for (const UOp& u : topological(pool)) reachable.insert(u.node());
  EXPECT_EQ(g.size(), reachable.size());
}

// Runs on a stack of 64 KiB, where recursion over a deep graph would end the process.
void on_small_stack(const std::function<void()>& body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 65536), 0);
  pthread_t thread;
  const auto run = [](void* f) -> void* {
    (*static_cast<const std::function<void()>*>(f))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&body)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(UOp, AMillionDeepChainIsWalkedAndReleasedOnASmallStack) {
  size_t walked = 0, left = 1;
  on_small_stack([&] {
    Graph g;
    UOp chain = g.variable("n", 0, 9);
    const UOp one = g.integer(1);
    for (int i = 0; i < 1000000; ++i) chain = g.make(Op::Add, {chain, one});
    walked = topological({&chain, 1}).size();
    const UOp other = substitute(chain, {{one, g.integer(2)}});
    walked += topological({&other, 1}).size();
    chain = UOp();
    walked += g.size() == 1000003 ? 1 : 0;
    left = 0;
  });
  EXPECT_EQ(walked, 2 * 1000002u + 1);
  EXPECT_EQ(left, 0u);
}

TEST(UOp, AWideAndDeepGraphIsReleasedOnASmallStack) {
  bool empty = false;
  on_small_stack([&] {
    Graph g;
    {
      // Each node is shared by the next two levels: 2^n paths.
      UOp a = g.variable("a", 0, 9), b = g.variable("b", 0, 9);
      for (int i = 0; i < 200000; ++i) {
        UOp c = g.make(i % 2 ? Op::Max : Op::Min, {a, b});
        a = std::exchange(b, std::move(c));
      }
    }
    empty = g.size() == 0;
  });
  EXPECT_TRUE(empty);
}

TEST(UOp, AWalkCostsWhatItReachesAndNotWhatTheGraphHolds) {
  Graph g;
  const auto seconds_of_walks = [&g] {
    const UOp sum = g.variable("n", 0, 9) + g.variable("m", 0, 9);
    const std::clock_t begin = std::clock();
    for (int i = 0; i < 20000; ++i) EXPECT_EQ(topological({&sum, 1}).size(), 3U);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  std::vector<UOp> held;
  for (int64_t i = 0; i < 1 << 20; ++i) held.push_back(g.integer(i));
  const double among_many = seconds_of_walks();
  held.clear();
  EXPECT_LT(among_many, 10 * seconds_of_walks() + 0.1);
}

TEST(UOp, ReachesIsWhetherAWalkWouldMeetIt) {
  Graph g;
  std::mt19937 rng(5);
  std::vector<UOp> pool{g.integer(1), g.variable("n", 0, 9), g.variable("m", 0, 9)};
  for (int i = 0; i < 60; ++i)
    pool.push_back(g.make(Op::Add, {pool[rng() % pool.size()], pool[rng() % pool.size()]}));
  for (const UOp& root : pool) {
    std::set<const Node*> below;
    for (const UOp& u : topological({&root, 1})) below.insert(u.node());
    for (const UOp& u : pool) EXPECT_EQ(reaches(root, u), below.contains(u.node()));
  }
}

TEST(UOp, WrongSourcesAreOurMistake) {
  Graph g, other;
  EXPECT_THROW(g.make(Op::Add, {g.integer(1)}), Error);
  EXPECT_THROW(g.make(Op::Neg, {UOp()}), Error);
  EXPECT_THROW(g.make(Op::Neg, {other.integer(1)}), Error);
  EXPECT_THROW(g.integer(1).ints(), Error);
  EXPECT_EQ(g.size(), 0u);
}

TEST(UOp, SubstituteRebuildsWhatIsAbove) {
  Graph g;
  const UOp n = g.variable("n", 0, 9), m = g.variable("m", 0, 9);
  const UOp e = floor_div(n * 4 + m, 2), kept = m * 3;
  EXPECT_EQ(
      substitute(e + kept, {{n, g.integer(2)}}),
      g.make(Op::Add, {g.make(Op::FloorDiv,
                              {g.make(Op::Add, {g.make(Op::Mul, {g.integer(2), g.integer(4)}), m}),
                               g.integer(2)}),
                       kept}));
  EXPECT_EQ(substitute(e, {{kept, n}}), e);
}

TEST(UOp, WithOtherSourcesIsTheSameOtherwise) {
  Graph graph;
  const UOp param = graph.make(Op::Param, {}, int64_t{0}, kFloat32);
  const UOp a = graph.integer(1);
  const UOp b = graph.integer(2);
  const UOp load = graph.make(Op::Load, {param, a}, ViewArg{{8}, {1}, 0}, kFloat32);
  const size_t before = graph.size();
  EXPECT_EQ(load.with_src(load.src()), load);
  EXPECT_EQ(graph.size(), before);
  const UOp src[] = {param, b};
  const UOp other = load.with_src(src);
  EXPECT_EQ(other, graph.make(Op::Load, src, ViewArg{{8}, {1}, 0}, kFloat32));
  EXPECT_EQ(other.view_arg(), load.view_arg());
  EXPECT_EQ(other.dtype(), kFloat32);
}

TEST(Graph, MakesNodesOfAnyNumberOfSourcesWhereOthersWere) {
  Graph graph;
  std::vector<UOp> parts;
  for (int64_t i = 0; i < 40; ++i) parts.push_back(graph.integer(i));
  const size_t alone = graph.size();
  for (int round = 0; round < 3; ++round) {
    std::vector<UOp> lists;
    for (size_t n = 1; n <= parts.size(); ++n)
      lists.push_back(graph.make(Op::Concat, std::span(parts).first(n), int64_t{0}));
    for (size_t n = 1; n <= parts.size(); ++n) {
      ASSERT_EQ(lists[n - 1].src().size(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(lists[n - 1].src(i), parts[i]);
    }
    lists.clear();
    EXPECT_EQ(graph.size(), alone);
  }
}

}  // namespace
}  // namespace tiny

// Sums of a register tile read what their steps share as soon as it is there, where it does not fit
// beside them.
#include "codegen/linear/order_sums.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/render/machine_runner.h"

namespace tiny::test {
namespace {

const DType kLanes = kFloat32.with_lanes(8);

// `sums` neighbours of a window of `taps`, each broadcast of what is loaded times a tap's vector.
struct Tile {
  LinearProgram p;
  LinearId body = 0;  // where the loop's ops begin

  Tile(int sums, int taps, bool stores = false, int integers = 0) {
    p.name = "tile";
    p.params = {{kFloat32, true, false}, {kFloat32, true, false}, {kFloat32, false, true}};
    const LinearId in = p.add(Op::Param, kAddress, {}, 0), w = p.add(Op::Param, kAddress, {}, 1),
                   out = p.add(Op::Param, kAddress, {}, 2);
    const LinearId zero = p.add(Op::Const, kInt64), three = p.add(Op::Const, kInt64, {}, 3);
    const LinearId nothing = p.add(Op::Const, kLanes);
    std::vector<LinearId> places;  // that the loop adds to its own
    if (integers > 0) p.variables = {{"n", 0, 1}};
    for (int i = 0; i < integers; ++i)
      places.push_back(
          p.add(Op::Add, kInt64, {p.add(Op::Variable, kInt64), p.add(Op::Const, kInt64, {}, i)}));
    std::vector<LinearId> tile;
    for (int j = 0; j < sums; ++j) tile.push_back(p.add(Op::Accumulator, kLanes, {nothing}));
    const LinearId loop = p.add(Op::Loop, kInt64, {zero, three}, 1);
    body = loop + 1;
    std::vector<LinearId> x;
    for (int i = 0; i < sums + taps - 1; ++i)
      x.push_back(p.add(Op::Broadcast, kLanes, {p.add(Op::Load, kFloat32, {in, loop}, 4 * i)}));
    for (int t = 0; t < taps; ++t) {
      const LinearId tap = p.add(Op::Load, kLanes, {w, loop}, 32 * t, 1);
      for (int j = 0; j < sums; ++j) {
        const auto at = static_cast<size_t>(j);
        const LinearId sum =
            p.add(Op::Fma, kLanes, {x[at + static_cast<size_t>(t)], tap, tile[at]});
        p.add(Op::Set, kVoid, {tile[at], sum});
      }
    }
    LinearId place = loop;
    for (const LinearId other : places) place = p.add(Op::Add, kInt64, {place, other});
    if (!places.empty()) p.add(Op::Prefetch, kVoid, {in, place}, 0, 4);
    if (stores) p.add(Op::Store, kVoid, {out, zero, x[0]}, 0, 1);
    p.add(Op::EndLoop, kVoid, {loop});
    for (int j = 0; j < sums; ++j)
      p.add(Op::Store, kVoid, {out, zero, tile[static_cast<size_t>(j)]}, 32 * j, 1);
    verify(p);
  }

  // Values that wait for another reader at the same time, at the most: of the steps' rows.
  int waiting() const {
    std::vector<LinearId> last(p.ops.size());
    for (LinearId i = 0; i < p.ops.size(); ++i)
      for (size_t s = 0; s < p.ops[i].count; ++s) last[p.ops[i].src[s]] = i;
    int most = 0;
    std::vector<LinearId> open;
    for (LinearId i = 0; i < p.ops.size(); ++i) {
      if (p.ops[i].op == Op::Broadcast) open.push_back(last[i]);
      std::erase_if(open, [&](LinearId end) { return end <= i; });
      if (p.ops[i].op == Op::Set) most = std::max(most, static_cast<int>(open.size()));
    }
    return most;
  }
};

Target with_registers(int32_t count) {
  Target t = avx512_target();
  t.vector_registers = count;
  return t;
}

TEST(OrderSums, WhatDoesNotFitIsReadByAllSumsAtOnceWithTheSameBits) {
  std::mt19937_64 random(7);
  for (const int sums : {6, 14, 28})
    for (const int taps : {2, 3}) {
      Tile tile(sums, taps);
      KernelCall call{{sample(kFloat32, 64, random), sample(kFloat32, 64, random),
                       zeros(kFloat32, 8 * static_cast<size_t>(sums))},
                      {}};
      const Outcome want = evaluate(tile.p, call);
      order_sums(tile.p, with_registers(sums + taps + 2));
      verify(tile.p);
      EXPECT_LE(tile.waiting(), 2) << to_string(tile.p);
      EXPECT_EQ(difference(tile.p, want, evaluate(tile.p, call)), "");
      for (const Target& target : targets_here())
        EXPECT_EQ(difference(tile.p, want, execute(tile.p, call, target)), "");
    }
}

TEST(OrderSums, WhatFitsOrStoresStaysAsItIs) {
  const auto stays = [](Tile tile, int32_t registers) {
    const std::string before = to_string(tile.p);
    order_sums(tile.p, with_registers(registers));
    return to_string(tile.p) == before;
  };
  EXPECT_TRUE(stays(Tile(8, 3), 32));
  EXPECT_TRUE(stays(Tile(28, 1), 20)) << "a step each";
  EXPECT_TRUE(stays(Tile(14, 2, true), 18));
}

// Results that are each made of all columns of a square of loads, of each column the sum or the
// difference of all its rows: written result by result, all loads would wait for the last of them.
TEST(OrderSums, ColumnsOfATileAreDoneWithBeforeTheNextIsLoaded) {
  constexpr size_t kSide = 8;
  LinearProgram p;
  p.name = "square";
  p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId zero = p.add(Op::Const, kInt64);
  std::vector<LinearId> loads;
  for (const Op op : {Op::Add, Op::Sub}) {
    LinearId result = 0;
    for (size_t j = 0; j < kSide; ++j) {
      LinearId column = 0;
      for (size_t i = 0; i < kSide; ++i) {
        if (op == Op::Add)
          loads.push_back(p.add(Op::Load, kLanes, {in, zero}, 32 * std::ssize(loads), 1));
        const LinearId x = loads[j * kSide + i];
        column = i == 0 ? x : p.add(op, kLanes, {column, x});
      }
      result = j == 0 ? column : p.add(Op::Add, kLanes, {result, column});
    }
    p.add(Op::Store, kVoid, {out, zero, result}, op == Op::Add ? 0 : 32, 1);
  }
  verify(p);
  std::mt19937_64 random(7);
  KernelCall call{{sample(kFloat32, 8 * kSide * kSide, random), zeros(kFloat32, 16)}, {}};
  const Outcome want = evaluate(p, call);
  const std::string before = to_string(p);
  order_sums(p, with_registers(kSide * kSide));
  EXPECT_EQ(to_string(p), before) << "all loads have a register";
  order_sums(p, with_registers(16));
  verify(p);
  EXPECT_EQ(difference(p, want, evaluate(p, call)), "");
  for (const Target& target : targets_here())
    EXPECT_EQ(difference(p, want, execute(p, call, target)), "");
  std::vector<LinearId> last(p.ops.size());
  for (LinearId i = 0; i < p.ops.size(); ++i)
    for (size_t s = 0; s < p.ops[i].count; ++s) last[p.ops[i].src[s]] = i;
  int most = 0;
  for (LinearId i = 0; i < p.ops.size(); ++i) {
    int open = 0;
    for (LinearId k = 0; k < i; ++k) open += p.ops[k].op == Op::Load && last[k] > i ? 1 : 0;
    most = std::max(most, open);
  }
  EXPECT_LE(most, 2) << to_string(p);
}

TEST(OrderSums, WhatFitsInNoOrderWantsFewerRegisters) {
  Tile tile(28, 3);
  order_sums(tile.p, with_registers(16));
  EXPECT_LE(tile.waiting(), 2) << to_string(tile.p);
}

// Counters and addresses of many loops want more registers than there are in any order.
TEST(OrderSums, IntegersAroundDoNotDecide) {
  Tile tile(12, 3, false, 20);
  order_sums(tile.p, with_registers(17));
  EXPECT_LE(tile.waiting(), 2) << to_string(tile.p);
}

}  // namespace
}  // namespace tiny::test

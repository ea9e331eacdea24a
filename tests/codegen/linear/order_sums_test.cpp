// Sums of a register tile take their steps in turn where what steps share does not fit beside them.
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

  Tile(int sums, int taps, bool stores = false) {
    p.name = "tile";
    p.params = {{kFloat32, true, false}, {kFloat32, true, false}, {kFloat32, false, true}};
    const LinearId in = p.add(Op::Param, kAddress, {}, 0), w = p.add(Op::Param, kAddress, {}, 1),
                   out = p.add(Op::Param, kAddress, {}, 2);
    const LinearId zero = p.add(Op::Const, kInt64), three = p.add(Op::Const, kInt64, {}, 3);
    const LinearId nothing = p.add(Op::Const, kLanes);
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
    if (stores) p.add(Op::Store, kVoid, {out, zero, x[0]}, 0, 1);
    p.add(Op::EndLoop, kVoid, {loop});
    for (int j = 0; j < sums; ++j)
      p.add(Op::Store, kVoid, {out, zero, tile[static_cast<size_t>(j)]}, 32 * j, 1);
    verify(p);
  }

  // Sets that follow one of the same sum.
  int in_turn() const {
    int count = 0;
    LinearId last = 0;
    for (const LinearOp& op : p.ops) {
      if (op.op != Op::Set) continue;
      count += op.src[0] == last ? 1 : 0;
      last = op.src[0];
    }
    return count;
  }
};

Target with_registers(int32_t count) {
  Target t = avx512_target();
  t.vector_registers = count;
  return t;
}

TEST(OrderSums, WhatDoesNotFitIsSummedInTurnWithTheSameBits) {
  std::mt19937_64 random(7);
  for (const int sums : {6, 14, 28})
    for (const int taps : {2, 3}) {
      Tile tile(sums, taps);
      KernelCall call{{sample(kFloat32, 64, random), sample(kFloat32, 64, random),
                       zeros(kFloat32, static_cast<size_t>(8 * sums))},
                      {}};
      const Outcome want = evaluate(tile.p, call);
      order_sums(tile.p, with_registers(sums + taps + 2));
      verify(tile.p);
      EXPECT_EQ(tile.in_turn(), sums * (taps - 1));
      EXPECT_EQ(difference(tile.p, want, evaluate(tile.p, call)), "");
      for (const Target& target : targets_here())
        EXPECT_EQ(difference(tile.p, want, execute(tile.p, call, target)), "");
    }
}

TEST(OrderSums, WhatFitsOrStoresStaysAsItIs) {
  Tile fits(8, 3);
  order_sums(fits.p, with_registers(32));
  EXPECT_EQ(fits.in_turn(), 0);
  Tile once(28, 1);  // a step each
  order_sums(once.p, with_registers(20));
  EXPECT_EQ(once.in_turn(), 0);
  Tile stores(14, 2, true);
  order_sums(stores.p, with_registers(18));
  EXPECT_EQ(stores.in_turn(), 0);
  // Nor where the other order would not fit either.
  Tile wide(28, 3);
  order_sums(wide.p, with_registers(16));
  EXPECT_EQ(wide.in_turn(), 0);
}

}  // namespace
}  // namespace tiny::test

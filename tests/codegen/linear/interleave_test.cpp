// Instances of long chains are computed side by side, with the same bits.
#include "codegen/linear/interleave.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/render/machine_runner.h"
#include "tests/render/random_linear.h"

namespace tiny::test {
namespace {

const DType kLanes = kFloat32.with_lanes(8);

// `chains` of `steps`, each from a load to a store of its own and a sum that is kept.
struct Chains {
  LinearProgram p;

  // Stored to scratch, or to a parameter; read from another or the same.
  Chains(int chains, int steps, Op stored_to, Op read_from = Op::Scratch) {
    p.name = "chains";
    p.params = {{kFloat32, true, false}, {kFloat32, true, true}};
    p.scratch_bytes = 4096;
    p.params[1].read = read_from == Op::Param;
    const LinearId out = p.add(Op::Param, kAddress, {}, 1);
    const LinearId in = read_from == Op::Param ? out : p.add(Op::Param, kAddress, {}, 0);
    const LinearId to = stored_to == Op::Scratch ? p.add(Op::Scratch, kAddress, {}, 0) : out;
    const LinearId zero = p.add(Op::Const, kInt64);
    const LinearId two = p.add(Op::Const, kInt64, {}, 2);
    const LinearId factor =
        p.add(Op::Const, kLanes, {}, static_cast<int64_t>(bits_of(kFloat32, 0.75)));
    const LinearId sum = p.add(Op::Accumulator, kLanes, {factor});
    const LinearId loop = p.add(Op::Loop, kInt64, {zero, two}, 1);
    for (int c = 0; c < chains; ++c) {
      LinearId v = p.add(Op::Load, kLanes, {in, loop}, 32 * c, 1);
      for (int s = 0; s < steps; ++s) v = p.add(Op::Fma, kLanes, {v, factor, factor});
      p.add(Op::Store, kVoid, {to, loop, v}, 32 * c, 1);
      p.add(Op::Set, kVoid, {sum, p.add(Op::Add, kLanes, {sum, v})});
    }
    p.add(Op::EndLoop, kVoid, {loop});
    p.add(Op::Store, kVoid, {out, zero, sum}, 1024, 1);
    verify(p);
  }
  int begun_before_first_store() const {
    int loads = 0;
    for (const LinearOp& op : p.ops) {
      if (op.op == Op::Store) break;
      loads += op.op == Op::Load ? 1 : 0;
    }
    return loads;
  }
  // Whether the second chain begins before the first is done.
  bool is_interleaved() const {
    LinearId second_load = 0, first_store = 0;
    int loads = 0;
    for (LinearId i = 0; i < p.ops.size(); ++i) {
      if (p.ops[i].op == Op::Load && ++loads == 2) second_load = i;
      if (p.ops[i].op == Op::Store && first_store == 0) first_store = i;
    }
    return second_load < first_store;
  }
};

Target with_registers(int32_t count) {
  Target t = avx512_target();
  t.vector_registers = count;
  return t;
}

TEST(Interleave, ChainsThatEndInScratchGoOnSideBySide) {
  for (const Target& target : targets_here()) {
    Chains plain(4, 15, Op::Scratch), mixed(4, 15, Op::Scratch);
    interleave(mixed.p, target);
    verify(mixed.p);
    EXPECT_FALSE(plain.is_interleaved());
    EXPECT_TRUE(mixed.is_interleaved());
    std::mt19937_64 random(1);
    const KernelCall call{{sample(kFloat32, 512, random), zeros(kFloat32, 512)}, {}};
    const Outcome want = evaluate(plain.p, call);
    EXPECT_EQ(difference(plain.p, want, evaluate(mixed.p, call)), "");
    EXPECT_EQ(difference(plain.p, want, execute(mixed.p, call, target)), "");
  }
}

// Elements that are looked up at places which were looked up before, three of them in a row.
TEST(Interleave, WalksGoOnSideBySide) {
  LinearProgram p;
  p.name = "walks";
  p.params = {{kInt32, true, false}, {kInt32, true, true}};
  const DType element = kInt32.with_lanes(8), index = kInt64.with_lanes(8);
  const LinearId in = p.add(Op::Param, kAddress, {}, 0);
  const LinearId out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId zero = p.add(Op::Const, kInt64);
  const LinearId most = p.add(Op::Const, element, {}, 63);
  for (int64_t walk = 0; walk < 3; ++walk) {
    LinearId v = p.add(Op::Load, element, {in, zero}, 32 * walk, 1);
    for (int step = 0; step < 4; ++step) {
      const LinearId place = p.add(Op::Cast, index, {p.add(Op::And, element, {v, most})});
      v = p.add(Op::Load, element, {in, place});
    }
    p.add(Op::Store, kVoid, {out, zero, v}, 32 * walk, 1);
  }
  verify(p);
  const LinearProgram before = p;
  interleave(p, avx512_target());
  verify(p);
  std::vector<LinearId> begun, stored;
  for (LinearId i = 0; i < p.ops.size(); ++i) {
    if (p.ops[i].op == Op::Load && p.ops[i].src[1] == zero) begun.push_back(i);
    if (p.ops[i].op == Op::Store) stored.push_back(i);
  }
  ASSERT_EQ(begun.size(), 3U);
  EXPECT_LT(begun.back(), stored.front());
  std::mt19937_64 random(3);
  const KernelCall call{{sample(kInt32, 64, random), zeros(kInt32, 64)}, {}};
  EXPECT_EQ(difference(p, evaluate(before, call), evaluate(p, call)), "");
}

TEST(Interleave, WhatGainsNothingOrMightMeetStays) {
  const auto moves = [](Chains c, const Target& target) {
    const std::string before = to_string(c.p);
    interleave(c.p, target);
    return to_string(c.p) != before;
  };
  const Target target = avx512_target();
  EXPECT_TRUE(moves(Chains(4, 12, Op::Scratch), target));
  EXPECT_FALSE(moves(Chains(4, 5, Op::Scratch), target));  // short chains
  EXPECT_FALSE(moves(Chains(4, 12, Op::Scratch), with_registers(3)));
  Chains may_meet(4, 12, Op::Param, Op::Param);
  interleave(may_meet.p, target);
  EXPECT_FALSE(may_meet.is_interleaved());
}

// What a kernel reads of another parameter than it writes is read where it is written, or lies
// apart.
TEST(Interleave, LoadsGoBeforeStoresOfOtherParameters) {
  Chains chains(4, 12, Op::Param);
  interleave(chains.p, avx512_target());
  verify(chains.p);
  EXPECT_TRUE(chains.is_interleaved());
}

// A store may be to the memory of a parameter that is read in the same place, and there alone
// (engine/reuse.h): what another store needs of it has been read by then.
TEST(Interleave, LoadsStayBeforeTheStoresOfTheirPlace) {
  LinearProgram p;
  p.name = "two stores";
  p.params = {{kFloat32, true, false},
              {kFloat32, true, false},
              {kFloat32, true, true},
              {kFloat32, true, true}};
  LinearId param[4];
  for (int64_t i = 0; i < 4; ++i) param[i] = p.add(Op::Param, kAddress, {}, i);
  const LinearId zero = p.add(Op::Const, kInt64);
  const LinearId factor =
      p.add(Op::Const, kLanes, {}, static_cast<int64_t>(bits_of(kFloat32, 0.75)));
  constexpr int64_t kVectors = 40, kSteps = 12;
  std::vector<LinearId> copied, kept;
  for (int64_t v = 0; v < kVectors; ++v) {
    copied.push_back(p.add(Op::Load, kLanes, {param[0], zero}, 32 * v, 1));
    kept.push_back(p.add(Op::Load, kLanes, {param[1], zero}, 32 * v, 1));
  }
  int64_t at = 0;
  for (const LinearId x : copied) p.add(Op::Store, kVoid, {param[2], zero, x}, 32 * at++, 1);
  at = 0;
  for (LinearId x : kept) {
    for (int64_t s = 0; s < kSteps; ++s) x = p.add(Op::Fma, kLanes, {x, factor, factor});
    p.add(Op::Store, kVoid, {param[3], zero, x}, 32 * at++, 1);
  }
  verify(p);
  interleave(p, avx512_target());
  verify(p);
  std::map<int64_t, int> stores;  // by place
  for (const LinearOp& op : p.ops) {
    if (op.src[0] >= p.ops.size() || p.ops[op.src[0]].op != Op::Param) continue;
    if (op.op == Op::Store) ++stores[op.imm];
    if (op.op == Op::Load) {
      EXPECT_EQ(stores[op.imm], 0) << "at " << op.imm;
    }
  }
}

TEST(Interleave, ChainsThatDoNotAllFitGoInWindows) {
  Chains chains(40, 12, Op::Scratch);
  interleave(chains.p, avx512_target());
  verify(chains.p);
  EXPECT_TRUE(chains.is_interleaved());
  EXPECT_LE(chains.begun_before_first_store(), 8);
}

// Sums that are in registers wait in scratch until their chains' window comes.
TEST(Interleave, SumsOfATileWaitInScratch) {
  const int sums = 24;
  LinearProgram p;
  p.name = "sums";
  p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0);
  const LinearId out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId zero = p.add(Op::Const, kInt64);
  const LinearId two = p.add(Op::Const, kInt64, {}, 2);
  const LinearId factor =
      p.add(Op::Const, kLanes, {}, static_cast<int64_t>(bits_of(kFloat32, 0.75)));
  std::vector<LinearId> tile;
  for (int s = 0; s < sums; ++s) tile.push_back(p.add(Op::Accumulator, kLanes, {factor}));
  const LinearId loop = p.add(Op::Loop, kInt64, {zero, two}, 1);
  for (int s = 0; s < sums; ++s) {
    const LinearId v = p.add(Op::Load, kLanes, {in, loop}, 32 * s, 1);
    p.add(
        Op::Set, kVoid,
        {tile[static_cast<size_t>(s)], p.add(Op::Add, kLanes, {tile[static_cast<size_t>(s)], v})});
  }
  p.add(Op::EndLoop, kVoid, {loop});
  for (int s = 0; s < sums; ++s) {
    const LinearId x = tile[static_cast<size_t>(s)];
    const LinearId square = p.add(Op::Mul, kLanes, {x, x});
    const LinearId half = p.add(Op::Mul, kLanes, {x, factor});
    LinearId v = square;
    for (int step = 0; step < 15; ++step)
      v = p.add(Op::Fma, kLanes, {v, step % 2 == 0 ? square : half, x});
    p.add(Op::Store, kVoid, {out, zero, v}, 32 * s, 1);
  }
  verify(p);
  for (const Target& target : targets_here()) {
    LinearProgram mixed = p;
    interleave(mixed, target);
    verify(mixed);
    EXPECT_GT(mixed.scratch_bytes, 0);
    std::mt19937_64 random(1);
    const KernelCall call{{sample(kFloat32, 512, random), zeros(kFloat32, 512)}, {}};
    const Outcome want = evaluate(p, call);
    EXPECT_EQ(difference(p, want, evaluate(mixed, call)), "");
    EXPECT_EQ(difference(p, want, execute(mixed, call, target)), "");
  }
}

TEST(Interleave, RandomProgramsKeepTheirBits) {
  int moved = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const LinearProgram p =
        random_linear(seed, {.steps = 200, .lanes_max = 8, .control = seed % 2 == 0});
    LinearProgram q = p;
    interleave(q, with_registers(1000), 1);
    verify(q);
    moved += to_string(p) != to_string(q);
    LinearBuffers want(p, seed), got(p, seed);
    naive::run(p, want.args());
    naive::run(q, got.args());
    ASSERT_EQ(tiny::difference(p, want, got), "") << "seed " << seed << "\n" << to_string(p);
  }
  EXPECT_GT(moved, 100);
}

}  // namespace
}  // namespace tiny::test

#include "codegen/linear/merge_barriers.h"

#include <gtest/gtest.h>

#include <string>

namespace tiny {
namespace {

// A group of 8 threads with two pieces of shared memory; the statements of a test go into it.
struct GroupOf8 {
  LinearProgram p;
  LinearId zero, ten, thread, one, pieces[2];

  GroupOf8() {
    p.name = "group";
    p.grouped = true;
    p.group = {8, 1, 1};
    p.shared_bytes = 128;
    zero = p.add(Op::Const, kInt64, {}, 0);
    ten = p.add(Op::Const, kInt64, {}, 10);
    one = p.add(Op::Const, kFloat32, {}, 0x3F800000);
    thread = p.add(Op::LaunchArg, kInt64, {}, 3);
    for (int i = 0; i < 2; ++i) pieces[i] = p.add(Op::Shared, kAddress, {}, 64 * i);
  }
  void barrier() { p.add(Op::Barrier, kVoid); }
  void store(int piece) { p.add(Op::Store, kVoid, {pieces[piece], thread, one}); }
  void load(int piece) { p.add(Op::Load, kFloat32, {pieces[piece], zero}); }
  LinearId loop() { return p.add(Op::Loop, kInt64, {zero, ten}, 1); }
  void end(LinearId loop) { p.add(Op::EndLoop, kVoid, {loop}); }

  // Of the barriers, numbered as they stand, those that are left.
  std::string left() {
    for (size_t i = 0, n = 0; i < p.ops.size(); ++i)
      if (p.ops[i].op == Op::Barrier) p.ops[i].imm = static_cast<int64_t>(n++);
    merge_barriers(p);
    std::string out;
    for (const LinearOp& op : p.ops)
      if (op.op == Op::Barrier) out += std::to_string(op.imm);
    verify(p);
    return out;
  }
};

TEST(MergeBarriers, OfTwoFillsInALoopTheFirstAndTheLastStay) {
  GroupOf8 g;
  const LinearId steps = g.loop();
  for (int piece = 0; piece < 2; ++piece) {
    g.barrier();
    const LinearId fill = g.loop();  // in which nobody meets
    g.store(piece);
    g.end(fill);
    g.barrier();
  }
  g.load(0);
  g.load(1);
  g.end(steps);
  EXPECT_EQ(g.left(), "03");
}

TEST(MergeBarriers, OneThatSeparatesAStoreFromALoadStays) {
  GroupOf8 g;
  g.barrier();  // nothing stands before it
  g.store(0);
  g.barrier();
  g.load(0);
  g.barrier();  // what was read is written
  g.store(0);
  g.barrier();  // another piece, then this one
  g.load(1);
  g.load(0);
  g.barrier();  // reads alone
  g.load(0);
  EXPECT_EQ(g.left(), "123");
}

TEST(MergeBarriers, OneThatWentLeavesItsAccessesToTheNext) {
  GroupOf8 g;
  g.store(0);
  g.barrier();
  g.store(1);
  g.barrier();
  g.load(0);
  EXPECT_EQ(g.left(), "1");
}

TEST(MergeBarriers, AnotherTripOfALoopMayHaveReadAnything) {
  GroupOf8 g;
  const LinearId steps = g.loop();
  g.barrier();
  g.store(0);
  g.barrier();
  g.load(0);
  g.end(steps);
  EXPECT_EQ(g.left(), "01");
}

}  // namespace
}  // namespace tiny

// What addresses of a linear program are multiples of: by hand, and random programs that check
// themselves.
#include "render/access_alignment.h"

#include <gtest/gtest.h>

#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"

namespace tiny {
namespace {

class AccessAlignments : public ::testing::Test {
 protected:
  AccessAlignments() {
    p_.name = "p";
    p_.params = {{kFloat32, true, true, 256}, {kFloat32, true, true}};
    p_.variables = {{"n", 1, 1000}};
    p_.grouped = true;
    p_.group = {32, 1, 1};
    p_.shared_bytes = 4096;
    base_ = p_.add(Op::Param, kAddress, {}, 0);
    thread_ = p_.add(Op::LaunchArg, kInt64, {}, 3);
  }
  LinearId number(int64_t v) { return p_.add(Op::Const, kInt64, {}, v); }
  LinearId two(Op op, LinearId a, LinearId b) { return p_.add(op, kInt64, {a, b}); }
  int64_t of(LinearId base, LinearId index, int64_t imm = 0, DType dtype = kFloat32) {
    const LinearId load = p_.add(Op::Load, dtype, {base, index}, imm, dtype.lanes > 1);
    return AccessAlignment(p_).of(load);
  }

  LinearProgram p_;
  LinearId base_ = 0, thread_ = 0;
};

TEST_F(AccessAlignments, FollowFactorsAndSteps) {
  EXPECT_EQ(of(base_, thread_), 4);
  const LinearId fours = two(Op::Mul, thread_, number(4));
  EXPECT_EQ(of(base_, fours), 16);
  EXPECT_EQ(of(base_, fours, 8), 8);
  EXPECT_EQ(of(base_, two(Op::Add, fours, number(6))), 8);
  EXPECT_EQ(of(base_, two(Op::Add, fours, two(Op::Mul, thread_, number(3)))), 4);
  EXPECT_EQ(of(base_, two(Op::Sub, number(64), two(Op::Shl, thread_, number(3)))), 32);
  EXPECT_EQ(of(base_, number(0)), 256);
  const LinearId loop = p_.add(Op::Loop, kInt64, {fours, number(1000)}, 8);
  EXPECT_EQ(of(base_, loop), 16);
  EXPECT_EQ(of(base_, two(Op::FloorDiv, two(Op::Mul, loop, number(4)), number(2))), 32);
  EXPECT_EQ(of(base_, two(Op::FloorMod, loop, number(12))), 16);
  EXPECT_EQ(of(base_, two(Op::Min, fours, number(100))), 16);
  EXPECT_EQ(of(base_, two(Op::Min, fours, number(102))), 8);
  EXPECT_EQ(of(base_, p_.add(Op::Variable, kInt64, {}, 0)), 4);
}

TEST_F(AccessAlignments, FollowWhereTheMemoryBegins) {
  const LinearId fours = two(Op::Mul, thread_, number(4));
  const LinearId other = p_.add(Op::Param, kAddress, {}, 1);  // aligned as its element
  EXPECT_EQ(of(other, fours), 4);
  const LinearId shared = p_.add(Op::Shared, kAddress, {}, 32);
  EXPECT_EQ(of(shared, fours), 16);
  EXPECT_EQ(of(shared, number(0)), 32);
  const LinearId row = p_.add(Op::Address, kAddress, {base_, thread_}, 24);
  EXPECT_EQ(of(row, fours), 8);
}

TEST_F(AccessAlignments, CutVectorsIntoWholeAccesses) {
  const auto bytes = [&](LinearId index, DType dtype, int32_t stride = 1) {
    const LinearId load = p_.add(Op::Load, dtype, {base_, index}, 0, stride);
    return access_bytes(p_, AccessAlignment(p_), load, 16);
  };
  const LinearId fours = two(Op::Mul, thread_, number(4)), twos = two(Op::Mul, thread_, number(2));
  EXPECT_EQ(bytes(fours, kFloat32.with_lanes(4)), 16);
  EXPECT_EQ(bytes(fours, kFloat32.with_lanes(8)), 16);
  EXPECT_EQ(bytes(fours, kFloat32.with_lanes(2)), 8);
  EXPECT_EQ(bytes(fours, kFloat32.with_lanes(6)), 8);  // two fours would be too many
  EXPECT_EQ(bytes(twos, kFloat32.with_lanes(4)), 8);
  EXPECT_EQ(bytes(thread_, kFloat32.with_lanes(4)), 4);
  EXPECT_EQ(bytes(fours, kFloat32.with_lanes(4), 2), 4);
  EXPECT_EQ(bytes(fours, kFloat32), 4);
  EXPECT_EQ(bytes(fours, kUInt8.with_lanes(4)), 4);
  const LinearId mask = p_.add(Op::LaneRange, kBool.with_lanes(4), {number(0), number(3)});
  const LinearId masked = p_.add(Op::Load, kFloat32.with_lanes(4), {base_, fours, mask}, 0, 1);
  EXPECT_EQ(access_bytes(p_, AccessAlignment(p_), masked, 16), 4);
}

// The program with a Check before every access of a parameter that its offset is such a multiple.
LinearProgram with_checks(LinearProgram p, int64_t& checks) {
  for (LinearParam& param : p.params) param.alignment = 256;
  const AccessAlignment alignment(p);
  std::vector<LinearOp> from;
  from.swap(p.ops);
  std::vector<LinearId> at;
  for (LinearId id = 0; id < from.size(); ++id) {
    LinearOp op = from[id];
    for (size_t i = 0; i < op.count; ++i) op.src[i] = at[op.src[i]];
    const bool is_access = op.op == Op::Load || op.op == Op::Store;
    if (is_access && p.ops[op.src[0]].op == Op::Param && p.ops[op.src[1]].dtype == kInt64) {
      const DType value = op.op == Op::Store ? p.ops[op.src[2]].dtype : op.dtype;
      const auto number = [&](int64_t v) { return p.add(Op::Const, kInt64, {}, v); };
      const LinearId size = number(value.element().bytes());
      const LinearId bytes = p.add(Op::Mul, kInt64, {op.src[1], size});
      const LinearId offset = p.add(Op::Add, kInt64, {bytes, number(op.imm)});
      const LinearId rest = p.add(Op::FloorMod, kInt64, {offset, number(alignment.of(id))});
      const LinearId ok = p.add(Op::Equal, kBool, {rest, number(0)});
      p.add(Op::Check, kVoid, {ok, number(id)}, 0, 1);
      if (alignment.of(id) > value.element().bytes()) ++checks;
    }
    p.ops.push_back(op);
    at.push_back(static_cast<LinearId>(p.ops.size() - 1));
  }
  verify(p);
  return p;
}

TEST(AccessAlignmentOfPrograms, OffsetsAreSuchMultiples) {
  int64_t checks = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const LinearProgram p = random_linear(seed, {.steps = 80, .checks = false});
    const LinearProgram checked = with_checks(p, checks);
    LinearBuffers buffers(p, seed);
    naive::run(checked, buffers.args());
    ASSERT_EQ(buffers.status(), 0) << "seed " << seed << "\n" << to_string(checked);
  }
  EXPECT_GT(checks, 1000);
}

}  // namespace
}  // namespace tiny

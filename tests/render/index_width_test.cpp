// Which integers of a linear program fit 32 bits: by hand, and random programs that check
// themselves.
#include "render/index_width.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"

namespace tiny {
namespace {

class IndexWidths : public ::testing::Test {
 protected:
  IndexWidths() {
    p_.name = "p";
    p_.params = {{kFloat32, true, true}};
    p_.variables = {{"n", 1, 1000}, {"m", -7, int64_t{1} << 40}};
  }
  LinearId number(int64_t v) { return p_.add(Op::Const, kInt64, {}, v); }
  LinearId variable(int64_t i) { return p_.add(Op::Variable, kInt64, {}, i); }
  LinearId two(Op op, LinearId a, LinearId b) { return p_.add(op, kInt64, {a, b}); }

  std::string told(LinearId id) {
    const IndexWidth width(p_);
    return cat(to_string(width.interval(id)), width.fits_32(id) ? " fits" : " wide",
               width.is_computed_in_32(id) ? " narrow" : "");
  }

  LinearProgram p_;
};

TEST_F(IndexWidths, OfLeavesAndLoops) {
  EXPECT_EQ(told(number(-3)), "[-3, -3] fits narrow");
  EXPECT_EQ(told(number(int64_t{1} << 31)), "[2147483648, 2147483648] wide");
  EXPECT_EQ(told(variable(0)), "[1, 1000] fits narrow");
  EXPECT_EQ(told(variable(1)), "[-7, 1099511627776] wide");
  const LinearId loop = p_.add(Op::Loop, kInt64, {number(4), variable(0)}, 1);
  EXPECT_EQ(told(loop), "[4, 999] fits narrow");
  EXPECT_EQ(told(two(Op::Mul, loop, number(64))), "[256, 63936] fits narrow");
  EXPECT_EQ(told(p_.add(Op::Ramp, kInt64.with_lanes(4), {loop}, 3)), "[4, 1008] fits narrow");
}

TEST_F(IndexWidths, OfLaunches) {
  const LinearId begin = p_.add(Op::LaunchArg, kInt64, {}, 0);
  const LinearId thread = p_.add(Op::LaunchArg, kInt64, {}, 4);
  EXPECT_EQ(told(begin), "[0, inf] wide");
  p_.grouped = true;
  p_.group = {1, 32, 1};
  p_.launch_max = 70000;
  EXPECT_EQ(told(begin), "[0, 69999] fits narrow");
  EXPECT_EQ(told(thread), "[0, 31] fits narrow");
  p_.launch_max = 0;
  EXPECT_EQ(told(begin), "[0, 0] fits narrow");
}

TEST_F(IndexWidths, NarrowResultsOfWideOperandsAreCut) {
  const LinearId m = variable(1);
  EXPECT_EQ(told(two(Op::FloorMod, m, number(10))), "[0, 9] fits");
  EXPECT_EQ(told(two(Op::FloorDiv, m, number(1 << 10))), "[-1, 1073741824] fits");
  EXPECT_EQ(told(two(Op::Min, m, number(5))), "[-7, 5] fits");
}

TEST_F(IndexWidths, WhatMayWrapIsNotBounded) {
  const LinearId base = p_.add(Op::Param, kAddress, {}, 0);
  const LinearId loaded = p_.add(Op::Load, kInt64, {base, number(0)});
  const LinearId positive = two(Op::Max, loaded, number(1));
  EXPECT_EQ(told(positive), "[1, inf] wide");
  // INT64_MAX + 1 is negative.
  EXPECT_EQ(told(two(Op::Add, positive, number(1))), "[-inf, inf] wide");
  EXPECT_EQ(told(two(Op::FloorMod, two(Op::Add, positive, number(1)), number(8))), "[0, 7] fits");
  EXPECT_EQ(told(p_.add(Op::Neg, kInt64, {two(Op::Min, loaded, number(0))})), "[-inf, inf] wide");
}

TEST_F(IndexWidths, OffsetsOfAccesses) {
  const LinearId base = p_.add(Op::Param, kAddress, {}, 0);
  const LinearId n = two(Op::Mul, variable(0), number(536870));  // up to 2^29 - 912 elements
  const auto fits = [&](LinearId index, DType dtype, int64_t imm, int32_t stride) {
    const LinearId load = p_.add(Op::Load, dtype, {base, index}, imm, stride);
    return IndexWidth(p_).offset_fits_32(load);
  };
  EXPECT_TRUE(fits(n, kFloat32, 0, 0));
  EXPECT_TRUE(fits(n, kFloat32, 3647, 0));
  EXPECT_FALSE(fits(n, kFloat32, 3648, 0));
  EXPECT_FALSE(fits(n, kFloat64, 0, 0));
  EXPECT_TRUE(fits(n, kFloat32.with_lanes(4), 0, 300));
  EXPECT_FALSE(fits(n, kFloat32.with_lanes(4), 0, 304));
  EXPECT_FALSE(fits(variable(1), kInt8, 0, 0));
}

// The program with a Check of every bounded integer behind it.
class Checked {
 public:
  explicit Checked(const LinearProgram& from) : from_(from), width_(from) {
    made_ = from;
    made_.ops.clear();
  }

  LinearProgram make() {
    for (LinearId id = 0; id < from_.ops.size(); ++id) {
      LinearOp op = from_.ops[id];
      for (size_t i = 0; i < op.count; ++i) op.src[i] = at_[op.src[i]];
      made_.ops.push_back(op);
      at_.push_back(static_cast<LinearId>(made_.ops.size() - 1));
      const Interval& known = width_.interval(id);
      const DType element = op.dtype.element();
      const bool is_signed = op.dtype != kAddress && element.is_int() && !element.is_unsigned();
      if (is_signed && known.lo != INT64_MIN) expect(Op::LessEqual, known.lo, id);
      if (is_signed && known.hi != INT64_MAX) expect(Op::Less, known.hi, id);
    }
    verify(made_);
    return made_;
  }
  int64_t expected() const { return expected_; }

 private:
  // low <= value, or not high < value.
  void expect(Op op, int64_t end, LinearId id) {
    const DType dtype = from_.ops[id].dtype;
    const LinearId constant = made_.add(Op::Const, dtype, {}, end);
    const DType truth = kBool.with_lanes(dtype.lanes);
    LinearId ok = made_.add(op, truth, {constant, at_[id]});
    if (op == Op::Less) ok = made_.add(Op::Not, truth, {ok});
    const LinearId position = made_.add(Op::Const, kInt64, {}, id);
    made_.add(Op::Check, kVoid, {ok, position}, 0, 1);
    ++expected_;
  }

  const LinearProgram& from_;
  const IndexWidth width_;
  LinearProgram made_;
  std::vector<LinearId> at_;
  int64_t expected_ = 0;
};

TEST(IndexWidthOfPrograms, ValuesLieInTheirIntervals) {
  int64_t checks = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    RandomLinearOptions options{.steps = 60 + static_cast<int>(seed % 80)};
    options.checks = false;
    LinearProgram p = random_linear(seed, options);
    p.launch_max = 4;  // as LinearBuffers launch
    Checked checked(p);
    const LinearProgram with_checks = checked.make();
    checks += checked.expected();
    LinearBuffers buffers(p, seed);
    naive::run(with_checks, buffers.args());
    ASSERT_EQ(buffers.status(), 0) << "seed " << seed << "\n" << to_string(with_checks);
  }
  EXPECT_GT(checks, 20000);
}

TEST(IndexWidthOfPrograms, AWrongIntervalIsSeen) {
  LinearProgram p = random_linear(3, {.checks = false});
  p.threaded = true;
  p.launch_max = 1;  // less than is launched
  const LinearId number = p.add(Op::LaunchArg, kInt64, {}, 1);
  Checked checked(p);
  const LinearProgram with_checks = checked.make();
  EXPECT_EQ(IndexWidth(p).interval(number), (Interval{0, 1}));
  LinearBuffers buffers(p, 5);
  KernelArgs args = buffers.args();
  args.begin = 0, args.end = 2;
  naive::run(with_checks, args);
  EXPECT_NE(buffers.status(), 0);
}

}  // namespace
}  // namespace tiny

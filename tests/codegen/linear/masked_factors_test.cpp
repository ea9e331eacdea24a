#include "codegen/linear/masked_factors.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "codegen/linear/linear_passes.h"
#include "tests/render/naive_linear.h"

namespace tiny {
namespace {

constexpr int64_t kLanes = 8;
const DType kVector = kFloat32.with_lanes(kLanes);

// A sum over a loop of what a test adds to it, in the first five lanes alone.
struct Sum {
  LinearProgram p;
  LinearId in, out, zero, nothing, mask, sum, loop;
  Sum() {
    p.name = "sum";
    p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
    in = p.add(Op::Param, kAddress, {}, 0);
    out = p.add(Op::Param, kAddress, {}, 1);
    zero = p.add(Op::Const, kInt64);
    nothing = p.add(Op::Const, kVector);
    mask = p.add(Op::LaneRange, kBool.with_lanes(kLanes), {zero, index(5)});
    sum = p.add(Op::Accumulator, kVector, {nothing});
  }
  LinearId index(int64_t value) { return p.add(Op::Const, kInt64, {}, value); }
  void open() { loop = p.add(Op::Loop, kInt64, {zero, index(3)}, 1); }
  LinearId load(int64_t byte, DType dtype = kVector) {
    return p.add(Op::Load, dtype, {in, loop}, byte, 1);
  }
  LinearId load_under(LinearId own, int64_t byte) {
    return p.add(Op::Load, kVector, {in, loop, own}, byte, 1);
  }
  LinearId times(LinearId a, LinearId b) { return p.add(Op::Mul, kVector, {a, b}); }
  void add_masked(LinearId value) {
    const LinearId chosen = p.add(Op::Where, kVector, {mask, value, nothing});
    p.add(Op::Set, kVoid, {sum, p.add(Op::Add, kVector, {sum, chosen})});
  }
  void close() {
    p.add(Op::EndLoop, kVoid, {loop});
    p.add(Op::Store, kVoid, {out, zero, sum}, 0, 1);
    verify(p);
    mask_factors(p);
    form_fma(p);
    merge_equal(p);
    remove_dead(p);
    verify(p);
  }
  size_t count(Op op) const {
    size_t n = 0;
    for (const LinearOp& o : p.ops) n += o.op == op;
    return n;
  }
  size_t masked_loads() const {
    size_t n = 0;
    for (const LinearOp& o : p.ops) n += o.op == Op::Load && o.count == 3;
    return n;
  }
};

TEST(MaskFactors, AProductOfLoadsIsOneFmaOfLoadsUnderTheMask) {
  Sum s;
  s.open();
  s.add_masked(s.times(s.load(0), s.load(64)));
  s.close();
  EXPECT_EQ(s.count(Op::Where), 0u);
  EXPECT_EQ(s.count(Op::Fma), 1u);
  EXPECT_EQ(s.masked_loads(), 2u) << "zero times what memory has there may be no number";
}

TEST(MaskFactors, WhatIsLeftOutMayBeAnything) {
  Sum s;
  s.open();
  const int64_t row = kLanes * kFloat32.bytes();
  s.add_masked(s.times(s.load(0), s.load(row)));
  s.close();
  std::vector<float> from(2 * kLanes + 2, 1), to(kLanes);
  from[kLanes - 1] = std::numeric_limits<float>::quiet_NaN();  // a lane of each step but the last
  from[2 * kLanes - 1] = std::numeric_limits<float>::infinity();
  std::array<void*, 2> buffers{from.data(), to.data()};
  int64_t status = 0;
  naive::run(s.p, {buffers.data(), nullptr, nullptr, 0, 1, 0, &status});
  for (int64_t l = 0; l < kLanes; ++l)
    EXPECT_EQ(to[static_cast<size_t>(l)], l < 5 ? 3.0f : 0.0f) << l;
}

TEST(MaskFactors, AFactorThatSumsShareIsLoadedOnce) {
  Sum s;
  s.open();
  const LinearId shared = s.load(0);
  s.add_masked(s.times(shared, s.load(64)));
  s.add_masked(s.times(shared, s.load(128)));
  s.close();
  EXPECT_EQ(s.count(Op::Fma), 2u);
  EXPECT_EQ(s.masked_loads(), 3u);
}

TEST(MaskFactors, ALoadUnderAMaskIsUnderBoth) {
  Sum s;
  const LinearId own = s.p.add(Op::LaneRange, kBool.with_lanes(kLanes), {s.index(2), s.index(8)});
  s.open();
  s.add_masked(s.times(s.load_under(own, 0), s.load(64)));
  s.close();
  EXPECT_EQ(s.count(Op::Where), 0u);
  EXPECT_EQ(s.count(Op::And), 1u);
  EXPECT_EQ(s.masked_loads(), 2u);
}

TEST(MaskFactors, AMaskThatLeavesOutAsMuchIsEnough) {
  Sum s;
  const LinearId wide = s.p.add(Op::LaneRange, kBool.with_lanes(kLanes), {s.index(2), s.index(8)});
  const LinearId own = s.p.add(Op::And, kBool.with_lanes(kLanes), {wide, s.mask});
  s.open();
  s.add_masked(s.times(s.load_under(own, 0), s.load_under(s.mask, 64)));
  s.close();
  EXPECT_EQ(s.count(Op::Where), 0u);
  EXPECT_EQ(s.count(Op::And), 1u);
}

TEST(MaskFactors, ASquareAndAMagnitudeVanishWithTheirLoad) {
  Sum s;
  s.open();
  const LinearId magnitude = s.p.add(Op::Abs, kVector, {s.load(0)});
  s.add_masked(s.times(magnitude, magnitude));
  s.close();
  EXPECT_EQ(s.count(Op::Where), 0u);
  EXPECT_EQ(s.count(Op::Fma), 1u);
}

TEST(MaskFactors, AConstantFactorMustBeFinite) {
  constexpr uint32_t kTwo = 0x40000000, kInfinity = 0x7F800000;
  for (const uint32_t constant : {kTwo, kInfinity}) {
    Sum s;
    const LinearId factor = s.p.add(Op::Const, kVector, {}, constant);
    s.open();
    s.add_masked(s.times(s.load(0), factor));
    s.close();
    EXPECT_EQ(s.count(Op::Where), constant == kTwo ? 0u : 1u);
  }
}

TEST(MaskFactors, WhatDoesNotVanishIsChosen) {
  Sum s;  // a quotient by zero is infinite
  s.open();
  s.add_masked(s.p.add(Op::Div, kVector, {s.load(0), s.load(64)}));
  s.close();
  EXPECT_EQ(s.count(Op::Where), 1u);
  EXPECT_EQ(s.masked_loads(), 0u);
}

TEST(MaskFactors, AFactorThatAllLanesShareIsChosen) {
  Sum s;  // it may be infinite
  s.open();
  const LinearId shared =
      s.p.add(Op::Broadcast, kVector, {s.p.add(Op::Load, kFloat32, {s.in, s.loop})});
  s.add_masked(s.times(s.load(0), shared));
  s.close();
  EXPECT_EQ(s.count(Op::Where), 1u);
}

TEST(MaskFactors, ALoadThatSomethingElseReadsStaysWhole) {
  Sum s;
  s.open();
  const LinearId shared = s.load(0);
  s.add_masked(s.times(shared, s.load(64)));
  s.p.add(Op::Store, kVoid, {s.out, s.loop, shared}, 64, 1);
  s.close();
  EXPECT_EQ(s.count(Op::Where), 1u);
  EXPECT_EQ(s.masked_loads(), 0u);
}

}  // namespace
}  // namespace tiny

#include "render/ptx/ptx.h"

#include <gtest/gtest.h>

#include "tests/render/random_linear.h"
#include "tests/support/assembler.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;

// Of each generation, and those that have instructions of their own.
constexpr const char* kTargets[] = {"sm_75",  "sm_80",   "sm_86",  "sm_89",
                                    "sm_90a", "sm_100a", "sm_120a"};

// Scale is for targets that have it.
std::vector<LinearProgram> random_programs(uint64_t first, size_t count) {
  std::vector<LinearProgram> out;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomLinearOptions options;
    options.steps = 40;
    options.scale = false;
    options.odd_lanes = seed % 3 == 1;
    if (seed % 3 == 2) options.lanes_max = 1;
    out.push_back(random_linear(seed, options));
  }
  return out;
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

class Ptx : public ::testing::TestWithParam<const char*> {
 protected:
  // Whether the assembler takes it; what it says of the unit.
  static testing::Assembled assembled(const std::string& text) {
    const std::string assembler = testing::ptx_assembler();
    if (assembler.empty()) return {};
    testing::Assembled got = testing::assemble(assembler, text, GetParam());
    EXPECT_EQ(got.status, 0) << got.log.substr(0, 4000) << text.substr(0, 4000);
    return got;
  }
  static PtxTarget target() { return ptx_target(std::string(GetParam())); }
};

// Adds one to 16 numbers that begin `offset` elements behind 16 times the group's number.
LinearProgram increments(DType dtype, int64_t offset) {
  LinearProgram p;
  p.name = cat("increments_", to_string(dtype.element()), "_", dtype.lanes, "_", offset);
  p.params = {{dtype.element(), true, false}, {dtype.element(), false, true}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId begin = p.add(Op::LaunchArg, kInt64, {}, 0);
  const LinearId sixteen = p.add(Op::Const, kInt64, {}, 16);
  const LinearId at = p.add(Op::Mul, kInt64, {begin, sixteen});
  const int64_t displacement = offset * dtype.bytes();
  const LinearId x = p.add(Op::Load, dtype, {in, at}, displacement, 1);
  p.add(Op::Store, kVoid, {out, at, p.add(Op::Neg, dtype, {x})}, displacement, 1);
  verify(p);
  return p;
}

// One of every way of going through a warp and through shared memory: rows of threads that are and
// are not powers of two apart, and warps that are not full.
LinearProgram folds(const std::array<int64_t, 3>& group, int64_t axes, DType dtype, Op op) {
  LinearProgram p;
  p.name = cat("fold_", group[0], "_", group[1], "_", group[2], "_", axes, "_", to_string(dtype),
               "_", info(op).name);
  p.grouped = true;
  p.group = group;
  p.params = {{dtype, true, true}};
  const LinearId base = p.add(Op::Param, kAddress, {}, 0);
  const LinearId at = p.add(Op::LaunchArg, kInt64, {}, 3);
  const LinearId x = p.add(Op::Load, dtype, {base, at});
  const LinearId all = p.add(Op::GroupFold, dtype, {x}, axes, static_cast<int32_t>(op));
  p.add(Op::Store, kVoid, {base, at, all});
  verify(p);
  return p;
}

// Threads hand each other what they have in memory that they share.
LinearProgram shares(int64_t bytes) {
  LinearProgram p;
  p.name = cat("shares_", bytes);
  p.grouped = true;
  p.group = {128, 1, 1};
  p.shared_bytes = bytes;
  p.params = {{kFloat32, true, true}};
  const LinearId base = p.add(Op::Param, kAddress, {}, 0);
  const LinearId shared = p.add(Op::Shared, kAddress, {}, bytes - 512);
  const LinearId at = p.add(Op::LaunchArg, kInt64, {}, 3);
  const LinearId last = p.add(Op::Const, kInt64, {}, 127);
  p.add(Op::Store, kVoid, {shared, at, p.add(Op::Load, kFloat32, {base, at})});
  p.add(Op::Barrier, kVoid);
  const LinearId other = p.add(Op::Sub, kInt64, {last, at});
  p.add(Op::Store, kVoid, {base, at, p.add(Op::Load, kFloat32, {shared, other})});
  verify(p);
  return p;
}

TEST_P(Ptx, RandomProgramsAssemble) {
  const std::string text = render_ptx_unit(random_programs(1, 30), target())[0].text;
  assembled(text);
  if (testing::ptx_assembler().empty()) GTEST_SKIP() << testing::kNoAssembler;
}

TEST_P(Ptx, GroupsAssemble) {
  std::vector<LinearProgram> programs{shares(1024), shares(kStaticSharedBytes + 64)};
  for (const auto& [group, axes] : std::vector<std::pair<std::array<int64_t, 3>, int64_t>>{
           {{32, 1, 1}, 1}, {{1024, 1, 1}, 1}, {{16, 16, 1}, 3}, {{6, 8, 1}, 2}, {{8, 3, 4}, 5}})
    for (const DType dtype : {kFloat32, kFloat64, kBool, kInt8, kUInt64})
      programs.push_back(folds(group, axes, dtype, Op::Max));
  const std::vector<Code> codes = render_ptx_unit(programs, target());
  EXPECT_EQ(codes[0].shared_bytes, 0);
  EXPECT_EQ(codes[1].shared_bytes, kStaticSharedBytes + 64);
  EXPECT_EQ(codes[0].group, (std::array<int64_t, 3>{128, 1, 1}));
  const testing::Assembled got = assembled(codes[0].text);
  if (testing::ptx_assembler().empty()) GTEST_SKIP() << testing::kNoAssembler;
  EXPECT_EQ(got.spilled(), std::vector<std::string>());
}

// The text itself is the same for all but its head.
TEST(PtxText, RoundsAsStatedAndApproximatesNothing) {
  const std::string text = render_ptx_unit(random_programs(100, 200), ptx_target(90))[0].text;
  for (const char* never : {".ftz", ".approx", ".sat", ".full", "mad.rn", "add.f32", "mul.f32",
                            "fma.f32", "add.f64", "mul.f64", "min.f", "max.f"})
    EXPECT_EQ(count(text, never), 0U) << never;
  for (const char* ever : {"fma.rn.f32", "div.rn.f64", "sqrt.rn.f32", "setp.nan.f32"})
    EXPECT_GT(count(text, ever), 0U) << ever;
}

TEST(PtxText, AVectorIsLoadedAtOnceWhereItsAddressIsKnownToAllowIt) {
  const auto text = [](LinearProgram p, int64_t alignment = 256) {
    PtxTarget target = ptx_target(80);
    target.parameter_alignment = 4;
    for (LinearParam& param : p.params) param.alignment = alignment;
    return render_ptx(p, target).text;
  };
  const std::string four = text(increments(kFloat32.with_lanes(4), 0));
  EXPECT_EQ(count(four, "ld.global.v4.b32"), 1U) << four;
  EXPECT_EQ(count(four, "st.global.v4.b32"), 1U) << four;
  EXPECT_EQ(count(text(increments(kFloat32.with_lanes(4), 4)), ".v4.b32"), 2U);
  EXPECT_EQ(count(text(increments(kFloat32.with_lanes(4), 2)), ".v2.b32"), 4U);
  EXPECT_EQ(count(text(increments(kFloat32.with_lanes(4), 1)), "global.b32"), 8U);
  EXPECT_EQ(count(text(increments(kFloat32.with_lanes(4), 0), 8), ".v2.b32"), 4U);
  EXPECT_EQ(count(text(increments(kFloat32.with_lanes(4), 0), 4), "global.b32"), 8U);
  EXPECT_EQ(count(render_ptx(increments(kFloat32.with_lanes(4), 0), ptx_target(80)).text, ".v4"),
            2U);
  EXPECT_EQ(count(text(increments(kFloat64.with_lanes(4), 0)), ".v2.b64"), 4U);
  // Narrow elements go in words.
  EXPECT_EQ(count(text(increments(kInt8.with_lanes(16), 0)), ".v4.b32"), 2U);
  EXPECT_EQ(count(text(increments(kInt16.with_lanes(4), 0)), ".v2.b32"), 2U);
}

TEST(PtxText, TheVersionIsTheLowestOfTheTarget) {
  const LinearProgram p = increments(kFloat32, 0);
  EXPECT_EQ(render_ptx(p, ptx_target(75)).text.substr(0, 28), ".version 6.3\n.target sm_75\n.");
  EXPECT_EQ(ptx_target(87).name, "sm_87");
  EXPECT_EQ(ptx_target(88).name, "sm_87");
  EXPECT_EQ(ptx_target(std::string("sm_90a")).version, "8.0");
  EXPECT_EQ(ptx_target(130).name, "sm_121");
  EXPECT_EQ(ptx_target(120, 86).name, "sm_100");  // sm_120 came with 8.7
  EXPECT_EQ(ptx_target(89, 74).name, "sm_87");
  expect_failure(failure_of([] { ptx_target(70); }), Status::Unsupported, {"7.0", "7.5"});
  expect_failure(failure_of([] { ptx_target(std::string("sm_1")); }), Status::InvalidArgument,
                 {"sm_1", "sm_75"});
}

TEST(PtxText, WhatCannotBeSaidIsNamed) {
  LinearProgram p;
  p.name = "half";
  const LinearId x = p.add(Op::Const, kFloat16, {}, 0x3C00);
  p.add(Op::Add, kFloat16, {x, x});
  expect_failure(failure_of([&] { render_ptx(p, ptx_target(80)); }), Status::Internal);
  LinearProgram q;
  q.name = "scaled";
  const LinearId y = q.add(Op::Const, kFloat32, {}, 0);
  q.add(Op::Scale, kFloat32, {y, y});
  expect_failure(failure_of([&] { render_ptx(q, ptx_target(80)); }), Status::Unsupported,
                 {"Scale", "float32"});
  LinearProgram r;
  r.name = "large";
  r.scratch_bytes = kLocalBytesMax + 1;
  expect_failure(failure_of([&] { render_ptx(r, ptx_target(80)); }), Status::Unsupported,
                 {"large", std::to_string(kLocalBytesMax)});
}

TEST(PtxText, ASumReadsLikePtx) {
  LinearProgram p;
  p.name = "sum";
  p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId zero = p.add(Op::Const, kFloat32, {}, 0);
  const LinearId low = p.add(Op::Const, kInt64, {}, 0), high = p.add(Op::Const, kInt64, {}, 64);
  const LinearId acc = p.add(Op::Accumulator, kFloat32, {zero});
  const LinearId loop = p.add(Op::Loop, kInt64, {low, high}, 4);
  const LinearId x = p.add(Op::Load, kFloat32, {in, loop});
  p.add(Op::Set, kVoid, {acc, p.add(Op::Add, kFloat32, {acc, x})});
  p.add(Op::EndLoop, kVoid, {loop});
  p.add(Op::Store, kVoid, {out, low, acc});
  verify(p);
  const std::string text = render_ptx(p, ptx_target(80)).text;
  EXPECT_EQ(text, R"(.version 7.0
.target sm_80
.address_size 64

.visible .entry tiny_sum(
  .param .u64 b0,
  .param .u64 b1,
  .param .s64 begin,
  .param .s64 end,
  .param .s64 piece,
  .param .u64 status)
.maxntid 1, 1, 1
.minnctapersm 1
{
  .reg .pred %p<1>;
  .reg .b32 %r<4>;
  .reg .b64 %d<5>;
  ld.param.u64 %d0, [b0];
  cvta.to.global.u64 %d1, %d0;
  ld.param.u64 %d2, [b1];
  cvta.to.global.u64 %d3, %d2;
  mov.b32 %r0, 0x0;
  mov.b32 %r1, 0x0;
$L0:
  mad.wide.s32 %d4, %r1, 4, %d1;
  ld.global.b32 %r2, [%d4];
  add.rn.f32 %r3, %r0, %r2;
  mov.b32 %r0, %r3;
  add.s32 %r1, %r1, 4;
  setp.lt.s32 %p0, %r1, 64;
  @%p0 bra $L0;
$L0_end:
  st.global.b32 [%d3], %r0;
  ret;
}
)");
}

INSTANTIATE_TEST_SUITE_P(Targets, Ptx, ::testing::ValuesIn(kTargets));

}  // namespace
}  // namespace tiny

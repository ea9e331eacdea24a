// Products of matrices that warps form together, by lists of options: the interpreter and the
// emulated machine compute them, whatever the sizes, layouts and what is done with the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "tests/emulation/matrix_kernels.h"
#include "tests/support/assembler.h"
#include "tests/support/failure.h"

namespace tiny::emulation {
namespace {

using tiny::testing::expect_failure;
using tiny::testing::failure_of;

constexpr uint64_t kSeeds = 8;
constexpr DType kOperands[] = {kFloat16, kBFloat16, kFloat32};

std::string name_of(const Product& p) {
  return cat(to_string(p.dtype), " ", p.m, "x", p.k, "x", p.n, p.turned_a ? " turned a" : "",
             p.turned_b ? " turned b" : "", p.batch ? " batch" : "", p.has_bias ? " bias" : "");
}

void expect_right(const Product& p, const std::string& options, uint64_t seeds = 1) {
  const Generated g = generated(p, options);
  EXPECT_TRUE(interprets(g, p)) << name_of(p) << "\n" << options << "\n" << to_string(g.program);
  for (uint64_t seed = 0; seed < seeds; ++seed)
    EXPECT_EQ(emulation_fails(g, p, seed), "") << name_of(p) << "\n" << options;
}

// Sizes that tiles divide and that they do not.
std::vector<Product> products(DType dtype) {
  std::vector<Product> all;
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {128, 64, 64}, {70, 50, 90}, {65, 34, 35}, {130, 33, 40}})
    all.push_back({m, k, n, dtype});
  return all;
}

TEST(MatrixProducts, OperandsFromMemory) {
  for (const DType dtype : kOperands)
    for (Product p : products(dtype))
      for (const bool turned : {false, true}) {
        p.turned_a = turned;
        expect_right(p, one_product(p));
        p.turned_b = turned;
        expect_right(p, one_product(p));
      }
}

TEST(MatrixProducts, BatchesAndWhatIsDoneWithTheResult) {
  for (const DType dtype : kOperands)
    for (Product p : products(dtype)) {
      p.batch = 3;
      p.has_bias = true;
      p.result = dtype;
      expect_right(p, one_product(p));
      expect_right(p, staged(p));
    }
}

TEST(MatrixProducts, OperandsFromSharedMemory) {
  for (const DType dtype : kOperands)
    for (const Product& p : products(dtype))
      for (const bool turned_a : {false, true})
        for (const bool turned_b : {false, true})
          expect_right(p, staged(p, {.turned_a = turned_a, .turned_b = turned_b}));
}

// So many ops of a kind in the program.
int64_t count(const LinearProgram& program, Op op) {
  return std::ranges::count(program.ops, op, &LinearOp::op);
}

TEST(MatrixProducts, SharedMatricesAreLoadedWhole) {
  for (const bool turned_a : {false, true})
    for (const bool turned_b : {false, true}) {
      const Product p{128, 64, 64};
      const LinearProgram program =
          generated(p, staged(p, {.turned_a = turned_a, .turned_b = turned_b})).program;
      EXPECT_EQ(count(program, Op::Mma), 8);          // 4 of columns, 2 of steps
      EXPECT_EQ(count(program, Op::LoadMatrix), 10);  // and 2 of A
      EXPECT_EQ(count(program, Op::Join), 0);
    }
}

TEST(MatrixProducts, SwizzledAndPadded) {
  for (const DType dtype : kOperands)
    for (const Product& p : products(dtype))
      for (const int64_t bits : {1, 2, 3})
        for (const bool turned : {false, true})
          expect_right(p, staged(p, {.turned_a = turned, .turned_b = turned, .swizzle = bits}));
}

TEST(MatrixProducts, CopiesRunAhead) {
  for (const DType dtype : kOperands)
    for (const Product& of : products(dtype))
      for (const int64_t rooms : {2, 3, 4}) {
        Product p = of;
        p.k = 3 * p.k;  // as many steps as rooms, and more
        const bool is_first = of.m == products(dtype).front().m && rooms == 3;
        expect_right(p, staged(p, {.swizzle = 2, .rooms = rooms}), is_first ? kSeeds : 1);
      }
}

// What the assembler notes: registers for all of them, and nothing spilled.
TEST(MatrixProducts, AreAssembledWithoutSpills) {
  const std::string assembler = tiny::testing::ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << "no ptxas: set PTXAS";
  for (const DType dtype : kOperands) {
    const Product p{128, 128, 64, dtype, false, true};
    const LinearProgram program =
        generated(p, staged(p, {.turned_b = true, .swizzle = 2, .rooms = 3})).program;
    for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
      const std::string text = render_ptx(program, ptx_target(target)).text;
      EXPECT_NE(text.find("cp.async.cg.shared.global"), std::string::npos) << text;
      const auto assembled = tiny::testing::assemble(assembler, text, target, 0);
      EXPECT_EQ(assembled.status, 0) << assembled.log;
      EXPECT_NE(assembled.log.find("0 bytes spill stores, 0 bytes spill loads"), std::string::npos)
          << assembled.log;
    }
  }
}

TEST(MatrixProducts, WhatDoesNotFitIsRefused) {
  const Product p{64, 64, 64};
  const auto refused = [&](const std::string& options, const char* why, const Product& of) {
    expect_failure(failure_of([&] { generated(of, options); }), Status::InvalidArgument, {why});
  };
  const std::string tiles = "TILE r0 16; TILE r1 8; TILE r2 16; ";
  refused("TC r0 r1 r2 m16n8k16_f16", "r0 has not the size 16", p);
  refused(tiles + "TC r3 r4 r9 m16n8k16_f16", "it has no range r9", p);
  refused(tiles + "TC r3 r3 r5 m16n8k16_f16", "r3 has not the size 8", p);
  refused(tiles + "TC r3 r4 r5 m16n8k16_bf16", "the factors are not those of m16n8k16_bf16", p);
  refused(tiles + "UPCAST r3; TC r3 r4 r5 m16n8k16_f16", "r3 has a kind already", p);
  refused(tiles + "LOCAL r0 0; TC r3 r4 r5 m16n8k16_f16",
          "a value depends on another range of an axis", p);
  refused("TILE r0 8; TILE r1 16; TILE r2 16; TC r4 r3 r5 m16n8k16_f16; LOCAL r0 1",
          "the axis has another size", {128, 64, 64});
  refused("TC r0 r1 r2 m16n8k4_f16", "a row of the matrix table", p);
  refused("PIPELINE r2 2", "a group shares nothing", p);
  refused("STAGE p0 all swizzle 4 shared", "a line has eight pieces", p);
}

// Devices that have no such instructions.
TEST(MatrixProducts, OlderDevicesRefuseThem) {
  const Product p{64, 64, 64};
  const Generated g = generated(p, one_product(p));
  expect_failure(failure_of([&] { render_ptx(g.program, ptx_target("sm_75")); }),
                 Status::Unsupported, {"m16n8k16_f16", "sm_75"});
}

// Copies of devices that have none beside their threads.
TEST(MatrixProducts, CopiesRunAheadOnOlderDevices) {
  const Product p{128, 100, 64, kFloat32};
  const std::string list =
      "TILE r0 32; TILE r3 2; TILE r1 32; TILE r5 2; TILE r2 16; ORDER r0 r1 r2 r7 r3 r5 r4 r6; "
      "STAGE p0 r2 r7 shared; STAGE p1 r2 shared; "
      "THREAD r0; THREAD r1; LOCAL r3 1; LOCAL r5 0; UPCAST r4; UPCAST r6; "
      "LOCAL r8 0; LOCAL r9 1; LOCAL r11 1; LOCAL r12 0; PIPELINE r2 3";
  const Generated g = generated(p, list);
  EXPECT_TRUE(interprets(g, p));
  for (const char* target : {"sm_75", "sm_80"}) EXPECT_EQ(emulation_fails(g, p, 1, target), "");
}

}  // namespace
}  // namespace tiny::emulation

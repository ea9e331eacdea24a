// Squares of elements that are stored across turn in registers where nothing looks at them
// meanwhile; the bytes are the same.
#include "ir/picked_lanes.h"
#include "tests/render/machine_runner.h"

namespace tiny::test {
namespace {

struct Shape {
  int64_t lanes = 8;
  int64_t stride = 40;
  DType element = kFloat32;
  bool to_scratch = true;    // else to a parameter
  int64_t rows = 8;          // stored
  bool backwards = false;    // the rows
  bool reads_back = false;   // scratch, between the rows
  int64_t masked = 0;        // lanes that are not stored, at either end
  bool interleaved = false;  // with the rows of another square
  bool beside = false;       // with those of a square in another parameter
  bool is_sum = false;       // each row is an accumulator
  int64_t set_after = -1;    // rows, when the first one's accumulator gets its next value
};

// Rows of in[] are loaded and stored across, then all that was stored is copied to out[].
LinearProgram square(const Shape& s) {
  LinearProgram p;
  p.name = "square";
  p.params = {{s.element, true, false}, {s.element, true, true}, {s.element, true, true}};
  p.scratch_bytes = 16384;
  const DType v = s.element.with_lanes(s.lanes);
  const int64_t size = s.element.bytes();
  const LinearId in = p.add(Op::Param, kAddress, {}, 0);
  const LinearId out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId other = p.add(Op::Param, kAddress, {}, 2);
  const LinearId scratch = p.add(Op::Scratch, kAddress, {}, 0);
  const LinearId to = s.to_scratch ? scratch : out;
  const auto index = [&](int64_t value) { return p.add(Op::Const, kInt64, {}, value); };
  const LinearId zero = index(0), one = index(1), two = index(2), all = index(2048);
  const LinearId clear = p.add(Op::Loop, kInt64, {zero, all}, 1);
  p.add(Op::Store, kVoid, {to, clear, p.add(Op::Load, s.element, {in, clear})});
  p.add(Op::EndLoop, kVoid, {clear});
  const LinearId loop = p.add(Op::Loop, kInt64, {zero, two}, 1);
  const LinearId from = p.add(Op::Mul, kInt64, {loop, index(512)});
  const LinearId at = p.add(Op::Add, kInt64, {from, index(s.stride < 0 ? 900 : 3)});
  const LinearId mask =
      p.add(Op::LaneRange, kBool.with_lanes(s.lanes), {index(s.masked), index(s.lanes - s.masked)});
  const auto store_to = [&](LinearId place, int64_t row, LinearId value) {
    const auto stride = static_cast<int32_t>(s.stride);
    if (s.masked)
      p.add(Op::Store, kVoid, {place, at, value, mask}, row * size, stride);
    else
      p.add(Op::Store, kVoid, {place, at, value}, row * size, stride);
  };
  const auto store = [&](int64_t row, LinearId value) { store_to(to, row, value); };
  std::vector<LinearId> sums;
  for (int64_t i = 0; s.is_sum && i < s.rows; ++i)
    sums.push_back(p.add(Op::Accumulator, v, {p.add(Op::Load, v, {in, from}, 100 * i, 1)}));
  for (int64_t i = 0; i < s.rows; ++i) {
    const int64_t row = s.backwards ? s.rows - 1 - i : i;
    const LinearId value =
        s.is_sum ? sums[static_cast<size_t>(row)] : p.add(Op::Load, v, {in, from}, 100 * row, 1);
    store(row, value);
    if (s.set_after == i) p.add(Op::Set, kVoid, {sums[0], p.add(Op::Add, v, {sums[1], sums[1]})});
    // Another square's rows, beside this one's in memory.
    if (s.interleaved) store(row + s.rows + 1, value);
    if (s.beside) store_to(other, row, p.add(Op::Load, v, {in, from}, 100 * row, 1));
    if (s.reads_back && i == 2)
      p.add(Op::Store, kVoid, {out, one, p.add(Op::Load, s.element, {to, at})}, 8000);
  }
  p.add(Op::EndLoop, kVoid, {loop});
  if (s.to_scratch) {
    const LinearId copy = p.add(Op::Loop, kInt64, {zero, all}, 1);
    p.add(Op::Store, kVoid, {out, copy, p.add(Op::Load, s.element, {scratch, copy})});
    p.add(Op::EndLoop, kVoid, {copy});
  }
  verify(p);
  return p;
}

int64_t unpacked(const LinearProgram& p, const Target& target) {
  const std::string listing = x86_listing(p, target);
  int64_t count = 0;
  for (const char* high : {"vpunpckhqdq", "vpunpckhdq", "vpunpckhbw"})
    for (size_t at = listing.find(high); at != listing.npos; at = listing.find(high, at + 1))
      ++count;
  return count;
}

bool turns(const LinearProgram& p, const Target& target) {
  return unpacked(p, target) > 0;
}

void expect_same(const Shape& s, const Target& target) {
  const LinearProgram p = square(s);
  std::mt19937_64 random(7);
  const KernelCall call{
      {sample(s.element, 4096, random), zeros(s.element, 16384), zeros(s.element, 16384)}, {}};
  EXPECT_EQ(difference(p, evaluate(p, call), execute(p, call, target)), "")
      << to_string(p) << x86_listing(p, target);
}

TEST(X86Transpose, SquaresTurnInRegisters) {
  for (const Target& target : targets_here())
    for (const DType element : {kFloat32, kInt32, kUInt32})
      for (const int64_t lanes : {4, 8, 16}) {
        if (lanes * 4 > target.vector_bytes) continue;
        for (const int64_t stride : {lanes, int64_t{40}, int64_t{-40}})
          for (const bool backwards : {false, true})
            for (const int64_t rows : {lanes, 2 * lanes, lanes + 3, lanes - 1, lanes / 2,
                                       lanes / 2 + 1, lanes / 4 + 1, int64_t{2}}) {
              Shape s{lanes, stride, element, true, rows, backwards, false};
              EXPECT_TRUE(turns(square(s), target));
              expect_same(s, target);
              s.masked = rows % 2;
              s.interleaved = std::abs(stride) > 2 * rows;
              EXPECT_TRUE(turns(square(s), target));
              expect_same(s, target);
            }
      }
}

// Sums that nothing is done with are stored as what is computed of them is.
TEST(X86Transpose, SumsTurnUntilOneGetsItsNextValue) {
  for (const Target& target : targets_here())
    for (const int64_t rows : {4, 7, 8}) {
      Shape s{.rows = rows, .is_sum = true};
      EXPECT_TRUE(turns(square(s), target));
      expect_same(s, target);
      for (s.set_after = 0; s.set_after < rows; ++s.set_after) expect_same(s, target);
    }
}

// What is stored beside a square is nowhere in it, and what is computed beside it changes no sum.
TEST(X86Transpose, SquaresOfTwoParametersTurn) {
  for (const Target& target : targets_here())
    for (const int64_t rows : {4, 7, 8, 16})
      for (const bool to_scratch : {false, true})
        for (const bool is_sum : {false, true}) {
          Shape s{.to_scratch = to_scratch, .rows = rows, .is_sum = is_sum};
          const int64_t alone = unpacked(square(s), target);
          s.beside = true;
          EXPECT_EQ(unpacked(square(s), target), 2 * alone) << rows;
          expect_same(s, target);
        }
}

// Rows that are as long as their lanes are apart, so that nothing is left between columns.
TEST(X86Transpose, ColumnsMayFollowEachOther) {
  for (const Target& target : targets_here()) {
    const int64_t lanes = target.vector_bytes / 4;
    for (int64_t rows = 2; rows < lanes; ++rows)
      for (const DType element : {kFloat32, kUInt32})
        for (const int64_t masked : {0, 1, 3}) {
          Shape s{lanes, rows, element, true, rows, rows % 2 == 0, false, masked};
          const std::string listing = x86_listing(square(s), target);
          const bool is_woven = weaves(target) && 2 * rows < lanes;
          EXPECT_EQ(turns(square(s), target), !is_woven) << rows;
          if (is_woven) {
            EXPECT_NE(listing.find("VPermute2"), std::string::npos) << rows;
          }
          expect_same(s, target);
          s.to_scratch = false;
          expect_same(s, target);
        }
  }
}

TEST(X86Transpose, BytesTurnInPieces) {
  for (const Target& target : targets_here())
    for (const DType element : {kUInt8, kInt8})
      for (const int64_t lanes : {16, 32, 64}) {
        if (lanes > target.vector_bytes) continue;
        for (const int64_t stride : {lanes, int64_t{70}, int64_t{-30}}) {
          if (std::abs(stride) < lanes) continue;
          for (const bool backwards : {false, true})
            for (const int64_t rows : {8, 9, 11, 14, 15, 16, 24, 32}) {
              Shape s{lanes, stride, element, true, rows, backwards, false};
              EXPECT_TRUE(turns(square(s), target));
              expect_same(s, target);
              s.to_scratch = false;
              s.masked = rows % 4;
              s.interleaved = std::abs(stride) > 2 * rows;
              EXPECT_TRUE(turns(square(s), target));
              expect_same(s, target);
            }
        }
      }
}

TEST(X86Transpose, WhatIsNoSquareIsStoredLaneByLane) {
  for (const Target& target : targets_here()) {
    std::vector<Shape> shapes(5);
    shapes[0].rows = 1;            // too few
    shapes[1].element = kFloat64;  // of other sizes
    shapes[1].lanes = 4;
    shapes[2].element = kFloat32;
    shapes[2].lanes = 2;
    shapes[3].element = kUInt8;
    shapes[4].element = kUInt8;
    shapes[4].lanes = 16;
    shapes[4].rows = 7;
    for (const Shape& s : shapes) {
      EXPECT_FALSE(turns(square(s), target));
      expect_same(s, target);
    }
  }
}

// Rows that meet, and those that a load lies between, are of different squares.
TEST(X86Transpose, WhatIsLookedAtIsStoredBefore) {
  for (const Target& target : targets_here()) {
    expect_same({.stride = 3}, target);
    for (const int64_t rows : {3, 5, 8})
      for (const bool to_scratch : {true, false})
        expect_same({.to_scratch = to_scratch, .rows = rows, .reads_back = true}, target);
  }
}

}  // namespace
}  // namespace tiny::test

// Whole programs as machine code: constants, masks, strides, folds, loops, spills, checks.

#include "tests/render/machine_runner.h"
#include "tests/support/failure.h"

namespace tiny::test {
namespace {

const DType kAll[] = {kBool,   kInt8,   kInt16,   kInt32,    kInt64,   kUInt8,  kUInt16,
                      kUInt32, kUInt64, kFloat16, kBFloat16, kFloat32, kFloat64};
const DType kNumbers[] = {kInt32, kInt64, kUInt32, kUInt64, kFloat32, kFloat64};

bool fits(const Target& target, DType d) {
  return d.lanes * d.bytes() <= target.vector_bytes;
}

// Runs on each target that holds `widest` in a register.
void expect_same_where(const LinearProgram& p, const KernelCall& call, DType widest) {
  verify(p);
  const Outcome want = evaluate(p, call);
  for (const Target& target : targets_here()) {
    if (!fits(target, widest)) continue;
    SCOPED_TRACE(target.name);
    const std::string wrong = difference(p, want, execute(p, call, target));
    ASSERT_EQ(wrong, "") << to_string(p) << x86_listing(p, target);
  }
}

// A program with one input and one output of `count` elements, visited `step` at a time.
struct Walk {
  LinearProgram p;
  LinearId in, out, i;
  Walk(DType from, DType to, int64_t count, int64_t step) {
    p.name = "walk";
    p.params = {{from, true, false}, {to, true, true}};
    in = p.add(Op::Param, kAddress, {}, 0);
    out = p.add(Op::Param, kAddress, {}, 1);
    const LinearId zero = index(0);
    i = p.add(Op::Loop, kInt64, {zero, index(count)}, step);
  }
  LinearId index(int64_t value) { return p.add(Op::Const, kInt64, {}, value); }
  LinearId load(DType d) { return p.add(Op::Load, d, {in, i}, 0, d.lanes > 1 ? 1 : 0); }
  void store(LinearId value) {
    const bool vector = p.ops[value].dtype.lanes > 1;
    p.add(Op::Store, kVoid, {out, i, value}, 0, vector ? 1 : 0);
  }
  void end() { p.add(Op::EndLoop, kVoid, {i}); }
};

std::vector<uint64_t> interesting(DType d) {
  std::vector<uint64_t> bits;
  for (double v : {0.0, 1.0, 2.0, 3.0, 7.0, 8.0, 31.0, 32.0, 64.0, 100.0})
    bits.push_back(bits_of(d, v));
  if (!d.is_unsigned())
    for (double v : {-0.0, -1.0, -2.0, -8.0, -5.0}) bits.push_back(bits_of(d, v));
  bits.push_back(lowest_bits(d));
  bits.push_back(highest_bits(d));
  if (d.is_float()) bits.push_back(bits_of(d, std::nan("")));
  return bits;
}

TEST(X86Program, ConstantOperandsOnEitherSideMatch) {
  std::mt19937_64 random(1);
  const Op ops[] = {Op::Add,      Op::Sub,      Op::Mul, Op::Div,  Op::Max,       Op::Min,
                    Op::And,      Op::Or,       Op::Xor, Op::Shl,  Op::FloorDiv,  Op::FloorMod,
                    Op::TruncDiv, Op::TruncMod, Op::Shr, Op::Less, Op::LessEqual, Op::Equal};
  for (DType d : kNumbers)
    for (Op op : ops) {
      if (has(op, kIntOperands) && d.is_float()) continue;
      if (has(op, kFloatOperands) && !d.is_float()) continue;
      for (int64_t lanes : {1, 4})
        for (uint64_t bits : interesting(d))
          for (bool first : {false, true}) {
            const DType v = d.with_lanes(lanes);
            const DType result = info(op).result == OpResult::Bool ? kBool.with_lanes(lanes) : v;
            Walk w(d, result.element(), 64, lanes);
            const LinearId c = w.p.add(Op::Const, v, {}, static_cast<int64_t>(bits));
            const LinearId x = w.load(v);
            w.store(first ? w.p.add(op, result, {c, x}) : w.p.add(op, result, {x, c}));
            w.end();
            expect_same_where(w.p, {{sample(d, 64, random), zeros(result.element(), 64)}, {}}, v);
            if (HasFatalFailure()) return;
          }
    }
}

TEST(X86Program, MaskedTailsTouchNothingBeyondTheBuffer) {
  std::mt19937_64 random(2);
  for (DType d : kAll)
    for (int64_t lanes : {2, 4, 8, 16, 32, 64})
      for (int64_t count : {int64_t{1}, lanes - 1, lanes, lanes + 1, 3 * lanes - 1}) {
        const DType v = d.with_lanes(lanes);
        Walk w(d, d, count, lanes);
        const LinearId left = w.p.add(Op::Sub, kInt64, {w.index(count), w.i});
        const LinearId mask = w.p.add(Op::LaneRange, kBool.with_lanes(lanes), {w.index(0), left});
        const LinearId x = w.p.add(Op::Load, v, {w.in, w.i, mask}, 0, 1);
        w.p.add(Op::Store, kVoid, {w.out, w.i, x, mask}, 0, 1);
        w.end();
        const auto n = static_cast<size_t>(count);
        expect_same_where(w.p, {{sample(d, n, random), sample(d, n, random)}, {}}, v);
        if (HasFatalFailure()) return;
      }
}

// Vectors that pass the caches must be aligned: those that are not, and what lies between, match.
TEST(X86Program, StoresPastTheCachesMatchWhereverTheyStart) {
  std::mt19937_64 random(20);
  for (DType d : kNumbers)
    for (int64_t lanes : {2, 4, 8, 16})
      for (int64_t shift = 0; shift * d.bytes() < 64; ++shift) {
        const DType v = d.with_lanes(lanes);
        Walk w(d, d, 64 + 3, lanes + 1);
        w.store(w.load(v));
        w.p.ops.back().bypass = true;
        w.end();
        verify(w.p);
        const auto count = static_cast<size_t>(64 + 3 + lanes + shift);
        expect_same_where(w.p, {{sample(d, count, random), zeros(d, count)}, {}}, v);
        if (HasFatalFailure()) return;
      }
}

TEST(X86Program, StoresPastTheCachesAreOrderedAtTheEnd) {
  Walk w(kFloat32, kFloat32, 64, 8);
  w.store(w.load(kFloat32.with_lanes(8)));
  w.p.ops.back().bypass = true;
  w.end();
  const std::string listing = x86_listing(w.p, avx2_target());
  EXPECT_NE(listing.find("VStoreBypass"), std::string::npos);
  EXPECT_NE(listing.find("Fence"), std::string::npos);
  w.p.ops[w.p.ops.size() - 2].bypass = false;
  EXPECT_EQ(x86_listing(w.p, avx2_target()).find("Fence"), std::string::npos);
}

TEST(X86Program, TheListingNamesTheLastOpForWhatEndsTheCode) {
  Walk w(kFloat32, kFloat32, 64, 8);
  w.p.add(Op::Poll, kVoid);
  w.store(w.load(kFloat32.with_lanes(8)));
  w.end();
  const size_t count = w.p.ops.size();
  const std::string listing = x86_listing(w.p, avx2_target());
  EXPECT_NE(listing.find(cat("\n%", count - 1, " ")), std::string::npos) << listing;
  EXPECT_EQ(listing.find(cat("\n%", count, " ")), std::string::npos) << listing;
}

TEST(X86Program, LaneRangesOfAnyBoundsMatch) {
  for (int64_t lanes : {2, 4, 8, 16, 32, 64})
    for (int64_t low :
         {int64_t{-5}, int64_t{0}, int64_t{1}, lanes / 2, lanes, lanes + 3, INT64_MIN})
      for (int64_t high : {int64_t{-1}, int64_t{0}, int64_t{1}, lanes - 1, lanes, INT64_MAX})
        for (bool constant : {false, true}) {
          Walk w(kInt64, kBool, 1, 1);
          w.p.variables = {{"low", INT64_MIN, INT64_MAX}, {"high", INT64_MIN, INT64_MAX}};
          const LinearId l = constant ? w.index(low) : w.p.add(Op::Variable, kInt64, {}, 0);
          const LinearId h = constant ? w.index(high) : w.p.add(Op::Variable, kInt64, {}, 1);
          w.store(w.p.add(Op::LaneRange, kBool.with_lanes(lanes), {l, h}));
          w.end();
          const KernelCall call{{zeros(kInt64, 1), zeros(kBool, static_cast<size_t>(lanes))},
                                {low, high}};
          expect_same_where(w.p, call, kUInt8.with_lanes(lanes));
          if (HasFatalFailure()) return;
        }
}

TEST(X86Program, StridedAccessesMatch) {
  std::mt19937_64 random(3);
  for (DType d : kAll)
    for (int64_t lanes : {2, 4, 8, 16, 32})
      for (int32_t stride : {-1, 2, 3, 4, 5, -2, -4, -7}) {
        const DType v = d.with_lanes(lanes);
        Walk w(d, d, 3, 1);
        const LinearId start =
            w.p.add(Op::Add, kInt64, {w.i, w.index(stride < 0 ? -stride * (lanes - 1) : 0)});
        const LinearId x = w.p.add(Op::Load, v, {w.in, start}, 0, stride);
        w.p.add(Op::Store, kVoid, {w.out, start, x}, 0, stride);
        w.end();
        const size_t n = static_cast<size_t>(std::abs(stride) * (lanes - 1) + 4);
        expect_same_where(w.p, {{sample(d, n, random), zeros(d, n)}, {}}, v);
        if (HasFatalFailure()) return;
      }
}

TEST(X86Program, MaskedStridedLoadsTouchNothingBeyondTheirLanes) {
  std::mt19937_64 random(13);
  for (DType d : {kUInt8, kInt16, kFloat32, kInt32, kFloat64})
    for (int64_t lanes : {2, 4, 8, 16, 32})
      for (int32_t stride : {-1, -2, -3, 2, 3, 4, 7})
        for (int64_t low : {int64_t{0}, int64_t{1}, lanes / 2})
          for (int64_t high : {int64_t{0}, lanes / 2 + 1, lanes - 1, lanes}) {
            // Only the lanes of the mask are in the buffer.
            const int64_t first = stride < 0 ? lanes - high : low;
            const int64_t base =
                stride < 0 ? -stride * (lanes - 1 - (lanes - high)) : -stride * first;
            const int64_t inside = std::max<int64_t>(0, high - low);
            Walk w(d, d, 1, 1);
            const DType v = d.with_lanes(lanes);
            w.p.variables = {{"low", 0, 64}, {"high", 0, 64}};
            const bool is_known = (low + high + stride) % 2 == 0;  // when compiled
            const LinearId l = is_known ? w.index(low) : w.p.add(Op::Variable, kInt64, {}, 0);
            const LinearId h = is_known ? w.index(high) : w.p.add(Op::Variable, kInt64, {}, 1);
            const LinearId mask = w.p.add(Op::LaneRange, kBool.with_lanes(lanes), {l, h});
            w.store(w.p.add(Op::Load, v, {w.in, w.index(base), mask}, 0, stride));
            w.end();
            const size_t n =
                inside == 0 ? 0 : static_cast<size_t>((inside - 1) * std::abs(stride) + 1);
            expect_same_where(
                w.p, {{sample(d, n, random), zeros(d, static_cast<size_t>(lanes))}, {low, high}},
                v);
            if (HasFatalFailure()) return;
          }
}

// Lanes one by one are a question each under a mask.
TEST(X86Program, WordsAFewApartAreTakenOutOfWholeRegisters) {
  for (const Target& target : {avx2_target(), avx512_target()})
    for (const int32_t stride : {-4, -3, -2, 2, 3, 4})
      for (const bool is_known : {true, false}) {
        Walk w(kFloat32, kFloat32, 1, 1);
        const DType v = kFloat32.with_lanes(8);
        w.p.variables = {{"high", 0, 8}};
        const LinearId high = is_known ? w.index(5) : w.p.add(Op::Variable, kInt64, {}, 0);
        const LinearId mask = w.p.add(Op::LaneRange, kBool.with_lanes(v.lanes), {w.index(0), high});
        w.store(w.p.add(Op::Load, v, {w.in, w.index(stride < 0 ? 28 : 0), mask}, 0, stride));
        w.end();
        const std::string listing = x86_listing(w.p, target);
        EXPECT_EQ(listing.find("VPinsr"), std::string::npos) << listing;
        EXPECT_EQ(listing.find("JumpIfZero"), std::string::npos) << listing;
      }
}

TEST(X86Program, GathersAndScattersUnderMasksMatch) {
  std::mt19937_64 random(4);
  for (DType d : kAll)
    for (int64_t lanes : {2, 4, 8})
      for (bool masked : {false, true}) {
        const DType v = d.with_lanes(lanes);
        LinearProgram p;
        p.name = "gather";
        p.params = {{d, true, false}, {kInt64, true, false}, {kBool, true, false}, {d, true, true}};
        LinearId param[4];
        for (int64_t s = 0; s < 4; ++s) param[s] = p.add(Op::Param, kAddress, {}, s);
        const LinearId zero = p.add(Op::Const, kInt64);
        const LinearId at = p.add(Op::Load, kInt64.with_lanes(lanes), {param[1], zero}, 0, 1);
        const LinearId mask = p.add(Op::Load, kBool.with_lanes(lanes), {param[2], zero}, 0, 1);
        const int64_t disp = 2 * d.bytes();
        const LinearId x = masked ? p.add(Op::Load, v, {param[0], at, mask}, disp)
                                  : p.add(Op::Load, v, {param[0], at}, disp);
        if (masked)
          p.add(Op::Store, kVoid, {param[3], at, x, mask}, disp);
        else
          p.add(Op::Store, kVoid, {param[3], at, x}, disp);
        for (int round = 0; round < 8; ++round) {
          Bytes indices(static_cast<size_t>(lanes) * 8),
              mask_bytes = sample(kBool, static_cast<size_t>(lanes), random);
          for (size_t l = 0; l < static_cast<size_t>(lanes); ++l) {
            int64_t index = static_cast<int64_t>(random() % 30) - 2;
            if (masked && mask_bytes[l] == std::byte{0}) index = int64_t{1} << 50;  // would fault
            std::memcpy(&indices[l * 8], &index, 8);
          }
          expect_same_where(p, {{sample(d, 30, random), indices, mask_bytes, zeros(d, 30)}, {}},
                            kInt64.with_lanes(lanes));
          if (HasFatalFailure()) return;
        }
      }
}

TEST(X86Program, FoldsCombineHalves) {
  std::mt19937_64 random(5);
  for (DType d : {kBool, kInt8, kInt16, kInt32, kInt64, kUInt32, kUInt64, kFloat32, kFloat64})
    for (Op op : {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Xor}) {
      if (d.is_float() && has(op, kIntOperands)) continue;
      for (int64_t lanes : {2, 4, 8, 16, 32, 64}) {
        Walk w(d, d, 4 * lanes, lanes);
        w.store(w.p.add(Op::Fold, d, {w.load(d.with_lanes(lanes))}, 0, static_cast<int32_t>(op)));
        w.end();
        const auto n = static_cast<size_t>(4 * lanes);
        expect_same_where(w.p, {{sample(d, n, random), zeros(d, n)}, {}}, d.with_lanes(lanes));
        if (HasFatalFailure()) return;
      }
    }
}

TEST(X86Program, RampsAndBroadcastsMatch) {
  std::mt19937_64 random(6);
  for (DType d : kAll)
    for (int64_t lanes : {2, 4, 8, 16, 32}) {
      Walk w(d, d, 4, 1);
      const LinearId x = w.load(d);
      w.p.add(Op::Store, kVoid,
              {w.out, w.p.add(Op::Mul, kInt64, {w.i, w.index(lanes)}),
               w.p.add(Op::Broadcast, d.with_lanes(lanes), {x})},
              0, 1);
      if (d.is_int()) {
        const LinearId ramp = w.p.add(Op::Ramp, d.with_lanes(lanes), {x}, -3);
        w.p.add(Op::Store, kVoid, {w.out, w.p.add(Op::Mul, kInt64, {w.i, w.index(lanes)}), ramp},
                4 * lanes * d.bytes(), 1);
      }
      w.end();
      expect_same_where(w.p, {{sample(d, 4, random), zeros(d, static_cast<size_t>(8 * lanes))}, {}},
                        d.with_lanes(lanes));
      if (HasFatalFailure()) return;
    }
}

// `live` vectors loaded in one loop, all used after the last is loaded.
LinearProgram many_live(int live, DType v) {
  Walk w(v.element(), v.element(), 4 * v.lanes, v.lanes);
  std::vector<LinearId> x;
  for (int i = 0; i < live; ++i)
    x.push_back(w.p.add(Op::Mul, v,
                        {w.p.add(Op::Load, v, {w.in, w.i}, v.bytes() * i, 1),
                         w.p.add(Op::Load, v, {w.in, w.i}, v.bytes(), 1)}));
  LinearId sum = x[0];
  for (int i = live - 1; i > 0; --i)
    sum = w.p.add(Op::Fma, v, {x[static_cast<size_t>(i)], x[static_cast<size_t>(live - i)], sum});
  w.store(sum);
  w.end();
  return std::move(w.p);
}

TEST(X86Program, SixtyFourLiveVectorsSpillAndMatch) {
  std::mt19937_64 random(7);
  for (DType v : {kFloat32.with_lanes(8), kFloat64.with_lanes(4), kFloat32}) {
    const auto n = static_cast<size_t>(4 * v.lanes + 64);
    expect_same(many_live(64, v), {{sample(v.element(), n, random), zeros(v.element(), n)}, {}});
  }
}

TEST(X86Program, ThirtyParametersAndTheirAddressesMatch) {
  std::mt19937_64 random(8);
  LinearProgram p;
  p.name = "sum30";
  KernelCall call;
  std::vector<LinearId> base;
  for (int64_t s = 0; s < 31; ++s) {
    p.params.push_back({kInt64, s < 30, s == 30});
    base.push_back(p.add(Op::Param, kAddress, {}, s));
    call.buffers.push_back(s < 30 ? sample(kInt64, 16, random) : zeros(kInt64, 16));
  }
  const LinearId zero = p.add(Op::Const, kInt64), end = p.add(Op::Const, kInt64, {}, 16);
  const LinearId i = p.add(Op::Loop, kInt64, {zero, end}, 1);
  LinearId sum = p.add(Op::Load, kInt64, {base[0], i});
  for (size_t s = 1; s < 30; ++s)
    sum =
        p.add(s % 3 ? Op::Add : Op::FloorDiv, kInt64, {sum, p.add(Op::Load, kInt64, {base[s], i})});
  p.add(Op::Store, kVoid, {base[30], i, sum});
  p.add(Op::EndLoop, kVoid, {i});
  expect_same(p, call);
}

// C = A * B, or C = s + s * s of those sums, eight squares at once, by a tile of rows x columns
// accumulators, an inner loop of `unroll` steps.
LinearProgram matmul(int64_t rows, int64_t columns, int64_t depth, DType v, int unroll,
                     bool is_squared = false) {
  LinearProgram p;
  p.name = "matmul";
  p.params = {{v.element(), true, false}, {v.element(), true, false}, {v.element(), false, true}};
  const LinearId a = p.add(Op::Param, kAddress, {}, 0), b = p.add(Op::Param, kAddress, {}, 1),
                 c = p.add(Op::Param, kAddress, {}, 2);
  const auto index = [&](int64_t n) { return p.add(Op::Const, kInt64, {}, n); };
  const LinearId zero = p.add(Op::Const, v);
  std::vector<LinearId> acc, now;
  for (int64_t n = 0; n < rows * columns; ++n) acc.push_back(p.add(Op::Accumulator, v, {zero}));
  now = acc;
  const LinearId k = p.add(Op::Loop, kInt64, {index(0), index(depth)}, unroll);
  for (int u = 0; u < unroll; ++u) {
    const LinearId ku = p.add(Op::Add, kInt64, {k, index(u)});
    const LinearId kb = p.add(Op::Mul, kInt64, {ku, index(columns * v.lanes)});
    std::vector<LinearId> bv;
    for (int64_t j = 0; j < columns; ++j)
      bv.push_back(p.add(Op::Load, v, {b, p.add(Op::Add, kInt64, {kb, index(j * v.lanes)})}, 0, 1));
    for (int64_t i = 0; i < rows; ++i) {
      const LinearId x =
          p.add(Op::Load, v.element(), {a, p.add(Op::Add, kInt64, {ku, index(i * depth)})});
      const LinearId xv = p.add(Op::Broadcast, v, {x});
      for (int64_t j = 0; j < columns; ++j) {
        LinearId& at = now[static_cast<size_t>(i * columns + j)];
        at = p.add(Op::Fma, v, {xv, bv[static_cast<size_t>(j)], at});
      }
    }
  }
  for (size_t n = 0; n < acc.size(); ++n) p.add(Op::Set, kVoid, {acc[n], now[n]});
  p.add(Op::EndLoop, kVoid, {k});
  std::vector<LinearId> squares;
  for (size_t n = 0; n < acc.size(); ++n) {
    if (is_squared && n % 8 == 0)
      for (size_t i = n; i < std::min(n + 8, acc.size()); ++i)
        squares.push_back(p.add(Op::Mul, v, {acc[i], acc[i]}));
    const LinearId value = is_squared ? p.add(Op::Add, v, {acc[n], squares[n]}) : acc[n];
    p.add(Op::Store, kVoid, {c, index(static_cast<int64_t>(n) * v.lanes), value}, 0, 1);
  }
  return p;
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(X86Program, MatrixTilesKeepTheirAccumulatorsInRegisters) {
  std::mt19937_64 random(9);
  for (const Target& target : targets_here())
    for (const auto& [unroll, is_squared] : {std::pair(1, false), {4, false}, {1, true}}) {
      const bool wide = target.isa == Isa::Avx512;
      const int64_t rows = wide ? 14 : 6, depth = 16;
      const DType v = kFloat32.with_lanes(wide ? 16 : 8);
      const LinearProgram p = matmul(rows, 2, depth, v, unroll, is_squared);
      const auto n = static_cast<size_t>(2 * v.lanes);
      KernelCall call{{sample(kFloat32, static_cast<size_t>(rows * depth), random),
                       sample(kFloat32, n * static_cast<size_t>(depth), random),
                       zeros(kFloat32, n * static_cast<size_t>(rows))},
                      {}};
      EXPECT_EQ(difference(p, evaluate(p, call), execute(p, call, target)), "") << target.name;
      const std::string listing = x86_listing(p, target);
      const std::string loop = listing.substr(listing.find("LoopTop"),
                                              listing.find("LoopBack") - listing.find("LoopTop"));
      const auto steps = static_cast<size_t>(unroll);
      EXPECT_EQ(count(loop, "\n  Fma"), static_cast<size_t>(2 * rows) * steps);
      EXPECT_EQ(count(loop, "\n  vbroadcastss"), static_cast<size_t>(rows) * steps);
      EXPECT_EQ(count(loop, "\n  VMove") + count(loop, "\n  VStore"), 0u) << listing;
      EXPECT_EQ(count(loop, "\n  VLoad"), 2 * steps) << listing;
      EXPECT_EQ(count(loop, "slot"), 0u) << "what is made of the sums has no room: " << listing;
    }
}

TEST(X86Program, TilesLargerThanTheRegistersMatch) {
  std::mt19937_64 random(10);
  for (DType v : {kFloat32.with_lanes(8), kFloat64.with_lanes(4), kInt32.with_lanes(8)}) {
    LinearProgram p = matmul(9, 4, 8, v, 2);
    if (!v.is_float())
      for (LinearOp& o : p.ops)
        if (o.op == Op::Fma) {
          o.op = Op::Add;
          o.count = 2;
          o.src[1] = o.src[2];
        }
    const auto n = static_cast<size_t>(4 * v.lanes);
    expect_same(p, {{sample(v.element(), 72, random), sample(v.element(), 8 * n, random),
                     zeros(v.element(), 9 * n)},
                    {}});
  }
}

TEST(X86Program, RunningValuesInNestedLoopsMatch) {
  std::mt19937_64 random(11);
  const DType v = kFloat32.with_lanes(4);
  LinearProgram p;
  p.name = "nest";
  p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const auto index = [&](int64_t n) { return p.add(Op::Const, kInt64, {}, n); };
  const LinearId total = p.add(Op::Accumulator, v, {p.add(Op::Const, v)});
  const LinearId counter = p.add(Op::Accumulator, kInt64, {index(0)});
  const LinearId i = p.add(Op::Loop, kInt64, {index(0), index(5)}, 1);
  const LinearId most = p.add(
      Op::Accumulator, v, {p.add(Op::Const, v, {}, static_cast<int64_t>(lowest_bits(kFloat32)))});
  const LinearId j = p.add(Op::Loop, kInt64, {i, index(9)}, 2);
  const LinearId x = p.add(
      Op::Load, v, {in, p.add(Op::Add, kInt64, {p.add(Op::Mul, kInt64, {i, index(4)}), j})}, 0, 1);
  p.add(Op::Set, kVoid, {most, p.add(Op::Max, v, {most, x})});
  p.add(Op::Set, kVoid, {total, p.add(Op::Add, v, {total, p.add(Op::Sub, v, {x, most})})});
  // The old value of the counter is stored, then read again through its new one.
  const LinearId before = p.add(Op::Add, kInt64, {counter, index(0)});
  p.add(Op::Set, kVoid, {counter, p.add(Op::Add, kInt64, {counter, index(1)})});
  p.add(Op::Store, kVoid, {out, before, p.add(Op::Cast, kFloat32, {counter})}, 32);
  p.add(Op::EndLoop, kVoid, {j});
  p.add(Op::Set, kVoid, {total, p.add(Op::Mul, v, {total, most})});
  p.add(Op::EndLoop, kVoid, {i});
  p.add(Op::Store, kVoid, {out, index(0), total}, 0, 1);
  p.add(Op::Store, kVoid,
        {out, index(4), p.add(Op::Fold, kFloat32, {total}, 0, static_cast<int32_t>(Op::Add))});
  expect_same(p, {{sample(kFloat32, 40, random), zeros(kFloat32, 64)}, {}});
}

TEST(X86Program, TheFirstFailedCheckIsReported) {
  for (int64_t lanes : {1, 2, 8, 16})
    for (int64_t bad : {int64_t{-1}, int64_t{0}, int64_t{3}, int64_t{40}}) {
      LinearProgram p;
      p.name = "check";
      p.params = {{kBool, true, false}};
      const LinearId in = p.add(Op::Param, kAddress);
      const auto index = [&](int64_t n) { return p.add(Op::Const, kInt64, {}, n); };
      const LinearId i = p.add(Op::Loop, kInt64, {index(0), index(64)}, lanes);
      const LinearId ok = p.add(Op::Load, kBool.with_lanes(lanes), {in, i}, 0, lanes > 1 ? 1 : 0);
      p.add(Op::Check, kVoid, {ok, i}, 0, 65000);
      p.add(Op::EndLoop, kVoid, {i});
      Bytes values(64, std::byte{1});
      if (bad >= 0) values[static_cast<size_t>(bad)] = values[63] = std::byte{0};
      expect_same(p, {{values}, {}});
    }
}

TEST(X86Program, LaunchArgumentsReachTheKernel) {
  LinearProgram p;
  p.name = "args";
  p.params = {{kInt64, false, true}};
  p.threaded = true;
  p.scratch_bytes = 128;
  const LinearId out = p.add(Op::Param, kAddress);
  for (int64_t a = 0; a < 3; ++a)
    p.add(Op::Store, kVoid,
          {out, p.add(Op::Const, kInt64, {}, a), p.add(Op::LaunchArg, kInt64, {}, a)});
  const LinearId scratch = p.add(Op::Scratch, kAddress, {}, 64), zero = p.add(Op::Const, kInt64);
  p.add(Op::Store, kVoid, {scratch, zero, p.add(Op::LaunchArg, kInt64, {}, 1)}, 8);
  p.add(Op::Store, kVoid,
        {out, p.add(Op::Const, kInt64, {}, 3), p.add(Op::Load, kInt64, {scratch, zero}, 8)});
  KernelCall call{{zeros(kInt64, 4)}, {}};
  call.begin = 11;
  call.end = 22;
  call.worker = 5;
  expect_same(p, call);
}

TEST(X86Program, LargeDisplacementsAndStepsMatch) {
  std::mt19937_64 random(12);
  LinearProgram p;
  p.name = "far";
  p.params = {{kInt32, true, false}, {kInt32, false, true}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const auto index = [&](int64_t n) { return p.add(Op::Const, kInt64, {}, n); };
  const int64_t far = int64_t{3} << 33;
  const LinearId i =
      p.add(Op::Loop, kInt64, {index(far), index(far + (int64_t{5} << 32))}, int64_t{1} << 32);
  const LinearId k = p.add(Op::Shr, kInt64, {p.add(Op::Sub, kInt64, {i, index(far)}), index(32)});
  const LinearId back =
      p.add(Op::Add, kInt64,
            {p.add(Op::Sub, kInt64, {p.add(Op::Add, kInt64, {k, index(far)}), index(far - 1)}),
             index(-1)});
  const LinearId base =
      p.add(Op::Address, kAddress, {in, p.add(Op::Add, kInt64, {k, index(-far)})}, 4);
  const LinearId x = p.add(Op::Load, kInt32, {base, index(far)});
  p.add(Op::Store, kVoid, {out, back, x});
  p.add(Op::EndLoop, kVoid, {i});
  expect_same(p, {{sample(kInt32, 5, random), zeros(kInt32, 5)}, {}});
}

TEST(X86Program, AProcessorWithoutVectorsIsRefused) {
  const LinearProgram p = many_live(2, kFloat32);
  tiny::testing::expect_failure(tiny::testing::failure_of([&] { render_x86(p, generic_target()); }),
                                Status::Unsupported);
}

TEST(X86Program, HalvesAreNotComputedWithButNamed) {
  Walk w(kFloat16, kFloat16, 4, 1);
  const LinearId x = w.load(kFloat16);
  w.store(w.p.add(Op::Add, kFloat16, {x, x}));
  w.end();
  tiny::testing::expect_failure(tiny::testing::failure_of([&] { render_x86(w.p, avx2_target()); }),
                                Status::Unsupported, {"Add of float16"});
}

TEST(X86Program, EveryHalfConvertsBothWays) {
  for (DType half : {kFloat16, kBFloat16})
    for (int64_t lanes : {1, 8}) {
      Walk w(half, kFloat32, 65536, lanes);
      w.store(w.p.add(Op::Cast, kFloat32.with_lanes(lanes), {w.load(half.with_lanes(lanes))}));
      w.end();
      Bytes all(2 * 65536);
      for (size_t i = 0; i < 65536; ++i) {
        const auto bits = static_cast<uint16_t>(i);
        std::memcpy(&all[2 * i], &bits, 2);
      }
      expect_same(w.p, {{all, zeros(kFloat32, 65536)}, {}});
    }
}

}  // namespace
}  // namespace tiny::test

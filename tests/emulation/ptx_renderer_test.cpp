// What the renderer of PTX writes, executed: it gives the bits of the naive evaluator, and programs
// of groups those of the interpreter.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "render/bytecode.h"
#include "render/ptx/ptx.h"
#include "runtime/host.h"
#include "runtime/interp/interp.h"
#include "tests/emulation/launched.h"
#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"

namespace tiny::emulation {
namespace {

void run_emulated(const LinearProgram& p, const KernelArgs& args, const std::string& target,
                  uint64_t seed) {
  Launched launched(p, target);
  for (size_t i = 0; i < p.params.size(); ++i)
    launched.add_buffer(args.buffers[i], (p.params[i].written ? kRandomOutputs : kRandomInputs) *
                                             p.params[i].element.bytes());
  for (size_t i = 0; i < p.variables.size(); ++i) launched.add_variable(args.variables[i]);
  launched.run(args.begin, args.end, args.end - args.begin, 1, seed);
  *args.status = launched.status();
}

TEST(PtxRenderer, RandomProgramsGiveTheBitsOfTheNaiveEvaluator) {
  for (uint64_t seed = 0; seed < 250; ++seed) {
    RandomLinearOptions options;
    options.clears_scratch = true;
    options.scale = false;
    options.odd_lanes = seed % 3 == 1;
    if (seed % 3 == 2) options.lanes_max = 1;
    const LinearProgram p = random_linear(seed, options);
    LinearBuffers expected(p, seed), got(p, seed);
    KernelArgs args = expected.args();
    args.worker = 0;  // the first block
    naive::run(p, args);
    run_emulated(p, got.args(), seed % 2 ? "sm_75" : "sm_90a", seed);
    ASSERT_EQ(difference(p, expected, got), "") << to_string(p);
  }
}

// Elements that lie side by side, each loaded by itself, as a thread reads its rows of a tile: from
// an address that is a multiple of 16 bytes at once, from others by less, and not beyond a store.
LinearProgram rows_of_a_thread(int64_t first, DType element, int64_t count, bool has_store) {
  LinearProgram p;
  p.name = "rows";
  p.params = {{element, true, false, 16}, {element, true, true, 16}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId zero = p.add(Op::Const, kInt64, {}, 0);
  const int64_t size = element.bytes();
  std::vector<LinearId> loads;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = (i * 3 + 1) % count;  // not in the order of their addresses
    loads.push_back(p.add(Op::Load, element, {out, zero}, (first + at) * size));
    const LinearId added = p.add(Op::Load, element, {in, zero}, (first + at) * size);
    loads.back() = p.add(Op::Add, element, {loads.back(), added});
    if (has_store) p.add(Op::Store, kVoid, {out, zero, loads.back()}, (first + at) * size);
  }
  if (!has_store)
    for (int64_t i = 0; i < count; ++i)
      p.add(Op::Store, kVoid, {out, zero, loads[static_cast<size_t>(i)]},
            (first + (i * 3 + 1) % count) * size);
  return p;
}

size_t count_of(const std::string& text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(PtxRenderer, ElementsSideBySideAreLoadedAtOnce) {
  for (const DType element : {kFloat32, kInt64, kUInt8, kInt16})
    for (const int64_t count : {2, 4, 5, 8, 16})
      for (const int64_t first : {0, 1, 2, 4})
        for (const bool has_store : {false, true}) {
          const LinearProgram p = rows_of_a_thread(first, element, count, has_store);
          LinearBuffers expected(p, 7), got(p, 7);
          KernelArgs args = expected.args();
          naive::run(p, args);
          run_emulated(p, got.args(), "sm_80", 1);
          ASSERT_EQ(difference(p, expected, got), "") << to_string(p);
        }
  const auto vectors = [](const LinearProgram& p) {
    return count_of(render_ptx(p, ptx_target(80)).text, "ld.global.v");
  };
  EXPECT_EQ(vectors(rows_of_a_thread(0, kFloat32, 4, false)), 2U);
  EXPECT_EQ(vectors(rows_of_a_thread(4, kFloat32, 4, false)), 2U);
  EXPECT_EQ(vectors(rows_of_a_thread(1, kFloat32, 4, false)), 2U) << "two of the four";
  EXPECT_EQ(vectors(rows_of_a_thread(0, kFloat32, 4, true)), 0U) << "each may have been stored";
}

// Each thread folds what it has read, then that with what it has read, and stores one of them.
LinearProgram folding(std::mt19937_64& rng) {
  static constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 8, 16, 32, 64, 128, 256, 1024};
  static constexpr DType kTypes[] = {kFloat32, kFloat64, kInt32, kInt64,
                                     kUInt8,   kInt16,   kBool,  kUInt64};
  static constexpr Op kOps[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Xor};
  LinearProgram p;
  p.name = "folding";
  p.grouped = true;
  int64_t axes = 0;
  do {
    axes = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
      p.group[axis] = kSizes[rng() % std::size(kSizes)];
      const bool is_power = (p.group[axis] & (p.group[axis] - 1)) == 0;
      if (is_power && rng() % 2) axes |= int64_t{1} << axis;
    }
  } while (p.group_threads() > 1024 || axes == 0);
  const DType one = kTypes[rng() % std::size(kTypes)], t = one.with_lanes(rng() % 3 ? 1 : 2);
  const auto op = kOps[rng() % (one.is_float() ? 4 : std::size(kOps))];
  p.params = {{one, true, false}, {one, false, true}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  LinearId at = p.add(Op::LaunchArg, kInt64, {}, 0);
  for (const size_t axis : {size_t{2}, size_t{1}, size_t{0}}) {
    const LinearId size = p.add(Op::Const, kInt64, {}, p.group[axis]);
    const LinearId own = p.add(Op::LaunchArg, kInt64, {}, 3 + static_cast<int64_t>(axis));
    at = p.add(Op::Add, kInt64, {p.add(Op::Mul, kInt64, {at, size}), own});
  }
  at = p.add(Op::Mul, kInt64, {at, p.add(Op::Const, kInt64, {}, t.lanes)});
  const int32_t stride = t.lanes > 1 ? 1 : 0;
  const LinearId x = p.add(Op::Load, t, {in, at}, 0, stride);
  const auto fold = [&](LinearId v) {
    return p.add(Op::GroupFold, t, {v}, axes, static_cast<int32_t>(op));
  };
  const LinearId once = fold(x), twice = fold(p.add(op, t, {once, x}));
  p.add(Op::Store, kVoid, {out, at, rng() % 2 ? once : twice}, 0, stride);
  verify(p);
  return p;
}

TEST(PtxRenderer, GroupsFoldInTheOrderOfTheInterpreter) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 rng(seed);
    const LinearProgram p = folding(rng);
    const DType t = p.params[0].element;
    constexpr int64_t kGroups = 2, kLanes = 2;
    const int64_t count = kGroups * kLanes * p.group_threads(), bytes = count * t.bytes();
    std::vector<std::byte> in(static_cast<size_t>(bytes)), want(in.size()), got(in.size());
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = special_bits(t, rng);
      std::memcpy(&in[static_cast<size_t>(i * t.bytes())], &bits, static_cast<size_t>(t.bytes()));
    }
    const Code bytecode = render_bytecode(p);
    const AlignedMemory scratch(bytecode.scratch_bytes);
    void* buffers[] = {in.data(), want.data()};
    int64_t status = 0;
    run_bytecode(*load_bytecode(bytecode),
                 {buffers, nullptr, scratch.data, 0, kGroups, 0, &status});
    Launched launched(p, "sm_80");
    launched.add_buffer(in.data(), bytes);
    launched.add_buffer(got.data(), bytes);
    EXPECT_LE(launched.code().group[2], 64);  // the hardware's
    launched.run(0, kGroups, 1, kGroups, seed);
    for (int64_t i = 0; i < count; ++i) {
      uint64_t x = 0, y = 0;
      const auto from = static_cast<size_t>(i * t.bytes()), n = static_cast<size_t>(t.bytes());
      std::memcpy(&x, &want[from], n);
      std::memcpy(&y, &got[from], n);
      ASSERT_TRUE(x == y || (is_nan_bits(t, x) && is_nan_bits(t, y)))
          << "element " << i << " of\n"
          << to_string(p) << launched.code().text;
    }
  }
}

// A program without groups is as many blocks as its launcher likes.
TEST(PtxRenderer, PiecesOfALaunchAreTheWhole) {
  LinearProgram p;
  p.name = "pieces";
  p.threaded = true;
  p.params = {{kInt64, false, true}};
  const LinearId out = p.add(Op::Param, kAddress, {}, 0);
  const LinearId begin = p.add(Op::LaunchArg, kInt64, {}, 0);
  const LinearId end = p.add(Op::LaunchArg, kInt64, {}, 1);
  const LinearId loop = p.add(Op::Loop, kInt64, {begin, end}, 1);
  p.add(Op::Store, kVoid, {out, loop, p.add(Op::Mul, kInt64, {loop, loop})});
  p.add(Op::EndLoop, kVoid, {loop});
  verify(p);
  for (const auto& [piece, blocks] :
       std::vector<std::pair<int64_t, uint32_t>>{{20, 1}, {1, 20}, {7, 3}, {5, 4}, {5, 9}}) {
    std::vector<int64_t> squares(32, -1);
    Launched launched(p, "sm_90a");
    launched.add_buffer(squares.data(), 32 * kInt64.bytes());
    launched.run(3, 23, piece, blocks, 1);
    for (int64_t i = 0; i < 32; ++i)
      EXPECT_EQ(squares[static_cast<size_t>(i)], i >= 3 && i < 23 ? i * i : -1) << i;
  }
}

// Of several threads that fail one is kept, with its own position.
TEST(PtxRenderer, OneFailedCheckIsKept) {
  LinearProgram p;
  p.name = "checks";
  p.grouped = true;
  p.group = {64, 1, 1};
  const LinearId thread = p.add(Op::LaunchArg, kInt64, {}, 3);
  const LinearId forty = p.add(Op::Const, kInt64, {}, 40);
  const LinearId holds = p.add(Op::Less, kBool, {thread, forty});
  const LinearId position = p.add(Op::Add, kInt64, {thread, p.add(Op::Const, kInt64, {}, 1000)});
  p.add(Op::Check, kVoid, {holds, position}, 0, 7);
  verify(p);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Launched launched(p, "sm_80");
    launched.run(0, 1, 1, 1, seed);
    EXPECT_EQ(check_id(launched.status()), 7);
    EXPECT_GE(check_position(launched.status()), 1040);
    EXPECT_LT(check_position(launched.status()), 1064);
  }
}

}  // namespace
}  // namespace tiny::emulation

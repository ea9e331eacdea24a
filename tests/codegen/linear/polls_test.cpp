// Long programs ask whether they are to end, and compute the same; short loops stay as they are.
#include "codegen/linear/polls.h"

#include <gtest/gtest.h>

#include "codegen/linear/trips.h"
#include "render/bytecode.h"
#include "runtime/interp/interp.h"
#include "tests/render/machine_runner.h"
#include "tests/render/random_linear.h"

namespace tiny::test {
namespace {

// Asks as often as it can, and everywhere.
constexpr PollSpacing kDense{.between = 6, .turn = 3, .part = 2, .uncertain = 2};

// Leaves every register that a function may overwrite with other contents.
void overwrite_registers() {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx2")) return;
  asm volatile(
      "vpcmpeqd %%ymm0, %%ymm0, %%ymm0\n vmovaps %%ymm0, %%ymm1\n vmovaps %%ymm0, %%ymm2\n"
      "vmovaps %%ymm0, %%ymm3\n vmovaps %%ymm0, %%ymm4\n vmovaps %%ymm0, %%ymm5\n"
      "vmovaps %%ymm0, %%ymm6\n vmovaps %%ymm0, %%ymm7\n vmovaps %%ymm0, %%ymm8\n"
      "vmovaps %%ymm0, %%ymm9\n vmovaps %%ymm0, %%ymm10\n vmovaps %%ymm0, %%ymm11\n"
      "vmovaps %%ymm0, %%ymm12\n vmovaps %%ymm0, %%ymm13\n vmovaps %%ymm0, %%ymm14\n"
      "vmovaps %%ymm0, %%ymm15\n" ::
          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
            "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "rax", "rcx", "rdx", "rsi", "r8", "r9",
            "r10", "r11");
  if (!has_avx512()) return;
  asm volatile(
      "vpternlogd $255, %zmm0, %zmm0, %zmm0\n vmovaps %zmm0, %zmm16\n vmovaps %zmm0, %zmm17\n"
      "vmovaps %zmm0, %zmm18\n vmovaps %zmm0, %zmm19\n vmovaps %zmm0, %zmm20\n"
      "vmovaps %zmm0, %zmm21\n vmovaps %zmm0, %zmm22\n vmovaps %zmm0, %zmm23\n"
      "vmovaps %zmm0, %zmm24\n vmovaps %zmm0, %zmm25\n vmovaps %zmm0, %zmm26\n"
      "vmovaps %zmm0, %zmm27\n vmovaps %zmm0, %zmm28\n vmovaps %zmm0, %zmm29\n"
      "vmovaps %zmm0, %zmm30\n vmovaps %zmm0, %zmm31\n"
      "kxnorq %k0, %k0, %k0\n kmovq %k0, %k1\n kmovq %k0, %k2\n kmovq %k0, %k3\n"
      "kmovq %k0, %k4\n kmovq %k0, %k5\n kmovq %k0, %k6\n kmovq %k0, %k7\n"
      "vzeroupper\n");
#endif
}

// Says no so many times.
struct Asked : KernelPoll {
  explicit Asked(int64_t noes) : KernelPoll{ask_it}, left(noes) {}
  static int32_t ask_it(const KernelPoll* poll) noexcept {
    const auto& self = *static_cast<const Asked*>(poll);
    ++self.calls;
    overwrite_registers();
    return self.left-- > 0 ? 0 : 1;
  }
  mutable int64_t left;
  mutable int64_t calls = 0;
};

int count(const LinearProgram& p, Op op) {
  int n = 0;
  for (const LinearOp& o : p.ops) n += o.op == op ? 1 : 0;
  return n;
}

using Runner = std::function<void(LinearBuffers& buffers, const KernelPoll& poll)>;

// The program by every renderer that is here.
std::vector<std::pair<std::string, Runner>> runners(const LinearProgram& p) {
  const auto with = [](LinearBuffers& buffers, const KernelPoll& poll) {
    KernelArgs args = buffers.args();
    args.poll = &poll;
    return args;
  };
  std::vector<std::pair<std::string, Runner>> all;
  all.emplace_back(
      "naive", [=, &p](LinearBuffers& b, const KernelPoll& poll) { naive::run(p, with(b, poll)); });
  const Ref<Executable> interpreted = load_bytecode(render_bytecode(p));
  all.emplace_back("interp", [=](LinearBuffers& b, const KernelPoll& poll) {
    run_bytecode(*interpreted, with(b, poll));
  });
  for (const Target& target : targets_here()) {
    const auto code = std::make_shared<LoadedCode>(render_x86(p, target));
    all.emplace_back(target.name, [=](LinearBuffers& b, const KernelPoll& poll) {
      const KernelArgs args = with(b, poll);
      code->function()(&args);
    });
  }
  return all;
}

// Every program computes the same when it is asked all the time, and ends where it is told to.
TEST(Polls, RandomProgramsComputeTheSameAndLeaveEarly) {
  int64_t programs = 0, left = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    RandomLinearOptions options{.steps = seed % 3 == 0 ? 300 : 60, .lanes_max = 4};
    options.dots = {};
    options.scale = false;
    const LinearProgram p = random_linear(seed, options);
    LinearProgram polled = p;
    place_polls(polled, 0, kDense);
    verify(polled);
    if (count(polled, Op::Poll) == 0) continue;
    ++programs;
    const int64_t scratch = render_bytecode(polled).scratch_bytes;
    LinearBuffers want(p, seed);
    naive::run(p, want.args());
    int64_t calls = -1;
    for (const auto& [name, run] : runners(polled)) {
      LinearBuffers got(polled, seed, scratch);
      const Asked stays(INT64_MAX);
      run(got, stays);
      ASSERT_EQ(difference(p, want, got), "") << name << " seed " << seed << to_string(polled);
      if (calls < 0) calls = stays.calls;
      ASSERT_EQ(stays.calls, calls) << name << " seed " << seed;
      for (int64_t noes : {int64_t{0}, calls / 2}) {
        if (noes >= calls) continue;
        LinearBuffers ended(polled, seed, scratch);
        const Asked leaves(noes);
        run(ended, leaves);
        ASSERT_EQ(leaves.calls, noes + 1) << name << " seed " << seed;
        ++left;
      }
    }
  }
  EXPECT_GT(programs, 40);
  EXPECT_GT(left, 200);
}

// A nest of loops `outer` and `inner` times over `width` products.
struct Nest {
  LinearProgram p;
  LinearId inner = 0;

  Nest(int64_t outer_trips, int64_t inner_trips, int width, bool is_known = true) {
    p.name = "nest";
    p.params = {{kFloat32, true, true}};
    p.variables = {{"n", 0, inner_trips}};
    const LinearId x = p.add(Op::Param, kAddress);
    const LinearId zero = p.add(Op::Const, kInt64);
    const LinearId n =
        is_known ? p.add(Op::Const, kInt64, {}, inner_trips) : p.add(Op::Variable, kInt64);
    const LinearId outer_end = p.add(Op::Const, kInt64, {}, outer_trips);
    const LinearId sum = p.add(Op::Accumulator, kFloat32, {p.add(Op::Load, kFloat32, {x, zero})});
    const LinearId outer = p.add(Op::Loop, kInt64, {zero, outer_end}, 1);
    inner = p.add(Op::Loop, kInt64, {zero, n}, 1);
    for (int i = 0; i < width; ++i)
      p.add(Op::Set, kVoid, {sum, p.add(Op::Mul, kFloat32, {sum, sum})});
    p.add(Op::EndLoop, kVoid, {inner});
    p.add(Op::EndLoop, kVoid, {outer});
    p.add(Op::Store, kVoid, {x, zero, sum});
    verify(p);
  }
};

// The names of the ops in the innermost loop.
std::string innermost(const LinearProgram& p) {
  std::string names, last;
  for (const LinearOp& op : p.ops) {
    if (op.op == Op::Loop) names.clear();
    names += cat(info(op.op).name, " ");
    if (op.op == Op::EndLoop && last.empty()) last = names;
  }
  return last;
}

TEST(Polls, WhatIsShortStaysAsItIs) {
  const Nest nest(100, 100, 10);
  LinearProgram polled = nest.p;
  place_polls(polled, 0);
  EXPECT_EQ(to_string(polled), to_string(nest.p));
}

TEST(Polls, InnermostLoopsStayAsTheyAre) {
  for (const auto& [outer, inner] : {std::pair<int64_t, int64_t>{100'000, 100},
                                     {1, 100'000'000},
                                     {100, 1'000'000},
                                     {1'000'000'000, 2}}) {
    const Nest nest(outer, inner, 12);
    LinearProgram polled = nest.p;
    place_polls(polled, 0);
    verify(polled);
    EXPECT_EQ(innermost(polled), innermost(nest.p)) << outer << " x " << inner;
    EXPECT_GE(count(polled, Op::Poll), 1) << to_string(polled);
    EXPECT_LE(count(polled, Op::Poll), 2) << to_string(polled);
  }
}

TEST(Polls, LoopsOfRunTimeLengthAreCounted) {
  const Nest nest(10, 1 << 30, 2, false);
  LinearProgram polled = nest.p;
  place_polls(polled, 0);
  verify(polled);
  EXPECT_EQ(innermost(polled), innermost(nest.p));
  const auto asked = [&](int64_t n) {
    float x = 1;
    void* buffer = &x;
    int64_t status = 0;
    KernelArgs args{&buffer, &n, nullptr, 0, 1, 0, &status};
    const Asked stays(INT64_MAX);
    args.poll = &stays;
    for (const Target& target : targets_here()) {
      const LoadedCode code(render_x86(polled, target));
      code.function()(&args);
    }
    return stays.calls / std::ssize(targets_here());
  };
  if (targets_here().empty()) GTEST_SKIP() << "no machine code here";
  EXPECT_EQ(asked(0), 0);
  EXPECT_LE(asked(1), 1);
  // A million trips of four ops and more, in each of ten turns; counted at least in every part.
  const PollSpacing spacing;
  const int64_t many = asked(1'000'000);
  EXPECT_GE(many, 40'000'000 / (spacing.between + static_cast<int64_t>(spacing.part)));
  EXPECT_LE(many, 90'000'000 / spacing.between);
}

TEST(Trips, BoundsFollowMinimaAndSums) {
  LinearProgram p;
  p.variables = {{"n", 1, 1000}};
  const LinearId zero = p.add(Op::Const, kInt64);
  const LinearId n = p.add(Op::Variable, kInt64);
  const LinearId whole = p.add(Op::Loop, kInt64, {zero, n}, 32);
  const LinearId step = p.add(Op::Const, kInt64, {}, 32);
  const LinearId end = p.add(Op::Min, kInt64, {p.add(Op::Add, kInt64, {whole, step}), n});
  const LinearId tile = p.add(Op::Loop, kInt64, {whole, end}, 4);
  p.add(Op::EndLoop, kVoid, {tile});
  p.add(Op::EndLoop, kVoid, {whole});
  const LinearId begin = p.add(Op::LaunchArg, kInt64),
                 threads = p.add(Op::LaunchArg, kInt64, {}, 1);
  const LinearId shared = p.add(Op::Loop, kInt64, {begin, threads}, 1);
  p.add(Op::EndLoop, kVoid, {shared});
  verify(p);
  const TripBounds bounds(p, 77);
  EXPECT_EQ(bounds.most(whole), 32);
  EXPECT_EQ(bounds.most(tile), 8);
  EXPECT_EQ(bounds.most(shared), 77);
  EXPECT_FALSE(bounds.is_exact(whole));
  EXPECT_TRUE(std::isinf(TripBounds(p, 0).most(shared)));
}

}  // namespace
}  // namespace tiny::test

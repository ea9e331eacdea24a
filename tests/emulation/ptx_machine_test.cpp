// The machine: threads, barriers, shuffles, atomics, and the mistakes that it must find.
#include "tests/emulation/ptx_machine.h"

#include <algorithm>
#include <numeric>

#include "tests/emulation/kernels.h"

namespace tiny::emulation {
namespace {

using MachineTest = EmulatorTest;

bool names(const std::string& words, const std::string& part) {
  return words.find(part) != std::string::npos;
}

// %r0: the thread of all; %d10: 4 times that; %r1: the thread of its group; %d11: 4 times that.
const std::string kPlace = R"(
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.u32 %r0, %r2, %r3, %r1;
mul.wide.u32 %d10, %r0, 4;
mul.wide.u32 %d11, %r1, 4;
)";

// Sums the group's values by halves in shared memory; `barrier` stands where a barrier must.
std::string tree_sum(const std::string& barrier) {
  return module_of(kPlace + R"(
.shared .align 4 .b8 partial[1024];
mov.u64 %d12, partial;
add.s64 %d12, %d12, %d11;
add.s64 %d13, %d0, %d10;
ld.global.b32 %r4, [%d13];
st.shared.b32 [%d12], %r4;
bar.sync 0;
mov.u32 %r5, 128;
$NEXT:
setp.ge.u32 %p0, %r1, %r5;
@%p0 bra $SKIP;
mul.wide.u32 %d14, %r5, 4;
add.s64 %d14, %d12, %d14;
ld.shared.b32 %r6, [%d14];
ld.shared.b32 %r7, [%d12];
add.s32 %r7, %r7, %r6;
st.shared.b32 [%d12], %r7;
$SKIP:
)" + barrier + R"(
shr.u32 %r5, %r5, 1;
setp.ne.u32 %p1, %r5, 0;
@%p1 bra $NEXT;
setp.ne.u32 %p2, %r1, 0;
@%p2 bra $END;
ld.shared.b32 %r8, [partial];
mul.wide.u32 %d15, %r2, 4;
add.s64 %d15, %d1, %d15;
st.global.b32 [%d15], %r8;
$END:
)",
                   2);
}

TEST_F(MachineTest, AGroupSumsThroughSharedMemory) {
  std::vector<int32_t> values(4 * 256);
  std::iota(values.begin(), values.end(), -17);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const uint64_t from = upload(values), to = room(16);
    run(tree_sum("bar.sync 0;"), {from, to}, 4, 256, seed);
    for (int g = 0; g < 4; ++g)
      EXPECT_EQ(download<int32_t>(to, 4)[static_cast<size_t>(g)],
                std::accumulate(values.begin() + g * 256, values.begin() + (g + 1) * 256, 0));
  }
}

TEST_F(MachineTest, ABarrierLeftOutIsARace) {
  const uint64_t from = upload(std::vector<int32_t>(512)), to = room(8);
  const std::string words = fault(Fault::Of::Race, tree_sum(""), {from, to}, 256);
  EXPECT_TRUE(names(words, "a race: shared byte")) << words;
  EXPECT_TRUE(names(words, "with no barrier between them")) << words;
}

// What threads of one warp do is no more in order than what others do.
TEST_F(MachineTest, AWarpIsNoBarrier) {
  const auto exchange = [](const std::string& barrier) {
    return module_of(kPlace + R"(
.shared .align 4 .b8 room[128];
mov.u64 %d12, room;
add.s64 %d13, %d12, %d11;
st.shared.b32 [%d13], %r1;
)" + barrier + R"(
xor.b32 %r4, %r1, 1;
mul.wide.u32 %d14, %r4, 4;
add.s64 %d14, %d12, %d14;
ld.shared.b32 %r5, [%d14];
add.s64 %d15, %d0, %d10;
st.global.b32 [%d15], %r5;
)",
                     1);
  };
  const uint64_t to = room(256);
  fault(Fault::Of::Race, exchange(""), {to}, 32);
  run(exchange("bar.warp.sync 0xffffffff;"), {to}, 2, 32);
  run(exchange("bar.sync 0, 32;"), {to}, 2, 32);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(download<uint32_t>(to, 64)[i], (i % 32) ^ 1);
}

// A barrier of half of the group orders that half alone.
TEST_F(MachineTest, ABarrierOfAPartOrdersThatPart) {
  const auto pass_on = [](const std::string& neighbour) {
    return module_of(kPlace + R"(
.shared .align 4 .b8 room[256];
mov.u64 %d12, room;
add.s64 %d13, %d12, %d11;
st.shared.b32 [%d13], %r1;
shr.u32 %r4, %r1, 5;
bar.sync %r4, 32;
xor.b32 %r5, %r1, )" + neighbour +
                         R"(;
mul.wide.u32 %d14, %r5, 4;
add.s64 %d14, %d12, %d14;
ld.shared.b32 %r6, [%d14];
)",
                     0);
  };
  run(pass_on("31"), {}, 1, 64);
  fault(Fault::Of::Race, pass_on("32"), {}, 64);
}

TEST_F(MachineTest, AtomicsDoNotRaceWithEachOtherButWithTheRest) {
  const auto count = [](const std::string& last) {
    return module_of(kPlace + R"(
.shared .align 8 .b8 room[8];
setp.ne.u32 %p0, %r1, 0;
@%p0 bra $READY;
mov.b64 %d12, 0;
st.shared.b64 [room], %d12;
$READY:
bar.sync 0;
atom.shared.add.u32 %r4, [room], 1;
red.shared.max.s32 [room+4], %r1;
)" + last + R"(
ld.shared.v2.b32 {%r5, %r6}, [room];
mul.wide.u32 %d13, %r4, 4;
add.s64 %d13, %d0, %d13;
st.global.b32 [%d13], %r6;
red.global.add.u32 [%d1], %r5;
)",
                     2);
  };
  const uint64_t to = room(96 * 4), total = upload(std::vector<uint32_t>{0});
  run(count("bar.sync 0;"), {to, total}, 1, 96);
  EXPECT_EQ(download<int32_t>(to, 96), std::vector<int32_t>(96, 95));
  EXPECT_EQ(download<uint32_t>(total, 1)[0], 96u * 96u);
  fault(Fault::Of::Race, count(""), {to, total}, 96);
}

TEST_F(MachineTest, CompareAndSwapLetsOneIn) {
  const std::string text = module_of(kPlace + R"(
atom.global.cas.b32 %r4, [%d0], 0, 7;
setp.ne.u32 %p0, %r4, 0;
@%p0 bra $END;
atom.global.add.u32 %r5, [%d0+4], 1;
$END:
)",
                                     1);
  const uint64_t to = upload(std::vector<uint32_t>{0, 0});
  run(text, {to}, 3, 64);
  EXPECT_EQ(download<uint32_t>(to, 2), (std::vector<uint32_t>{7, 1}));
}

TEST_F(MachineTest, ShufflesGiveWhatTheManualSays) {
  const auto shuffled = [&](const std::string& form, const std::string& clamp) {
    const uint64_t to = room(128), inside = room(128);
    run(module_of(kPlace + "shfl.sync." + form + ".b32 %r4|%p0, %r1, 3, " + clamp +
                      R"(, 0xffffffff;
selp.b32 %r5, 1, 0, %p0;
add.s64 %d12, %d0, %d10;
st.global.b32 [%d12], %r4;
add.s64 %d12, %d1, %d10;
st.global.b32 [%d12], %r5;
)",
                  2),
        {to, inside}, 1, 32);
    return std::pair(download<uint32_t>(to, 32), download<uint32_t>(inside, 32));
  };
  // By the whole warp, and by parts of 8 lanes (the mask of parts is above the clamp).
  const auto whole = shuffled("bfly", "31"), down = shuffled("down", "0x1807"),
             up = shuffled("up", "0x1800"), index = shuffled("idx", "0x1807");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(whole.first[lane], lane ^ 3);
    EXPECT_EQ(down.first[lane], lane % 8 + 3 < 8 ? lane + 3 : lane);
    EXPECT_EQ(down.second[lane], lane % 8 + 3 < 8 ? 1u : 0u);
    EXPECT_EQ(up.first[lane], lane % 8 >= 3 ? lane - 3 : lane);
    EXPECT_EQ(index.first[lane], lane / 8 * 8 + 3);
  }
}

TEST_F(MachineTest, VotesAndReductionsOfAWarp) {
  const std::string text = module_of(kPlace + R"(
setp.lt.u32 %p0, %r1, 5;
vote.sync.ballot.b32 %r4, %p0, 0xffffffff;
vote.sync.any.pred %p1, %p0, 0xffffffff;
vote.sync.all.pred %p2, %p0, 0xffffffff;
redux.sync.add.s32 %r5, %r1, 0xffffffff;
redux.sync.max.u32 %r6, %r1, 0xffffffff;
selp.b32 %r7, 2, 0, %p1;
@%p2 add.u32 %r7, %r7, 1;
bar.red.popc.u32 %r8, 0, %p0;
st.global.v4.b32 [%d0], {%r4, %r5, %r6, %r7};
st.global.b32 [%d0+16], %r8;
)",
                                     1);
  const uint64_t to = room(20);
  run(text, {to}, 1, 32);
  EXPECT_EQ(download<uint32_t>(to, 5), (std::vector<uint32_t>{31, 496, 31, 2, 5}));
}

// What is divergent in a warp waits for ever on some processors, and on others it does not.
TEST_F(MachineTest, DivergenceAtABarrierIsFound) {
  const std::string branches = kPlace + R"(
setp.lt.u32 %p0, %r1, 16;
@%p0 bra $OTHER;
bar.sync 0;
bra $END;
$OTHER:
bar.sync 0;
$END:
)";
  std::string words = fault(Fault::Of::Barrier, module_of(branches, 0), {}, 64);
  EXPECT_TRUE(names(words, "diverge at a barrier")) << words;
  words =
      fault(Fault::Of::Barrier,
            module_of(kPlace + "setp.lt.u32 %p0, %r1, 3;\n@%p0 ret;\nbar.sync 0;\n", 0), {}, 64);
  EXPECT_TRUE(names(words, "has ended")) << words;
  words = fault(
      Fault::Of::Barrier,
      module_of(kPlace + "setp.lt.u32 %p0, %r1, 32;\n@%p0 bra $END;\nbar.sync 0;\n$END:\n", 0), {},
      64);
  EXPECT_TRUE(names(words, "wait for each other for ever")) << words;
}

TEST_F(MachineTest, AShuffleOfThreadsThatDoNotComeIsFound) {
  const std::string some = kPlace + R"(
setp.lt.u32 %p0, %r1, 3;
@%p0 bra $END;
shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xffffffff;
$END:
)";
  fault(Fault::Of::Barrier, module_of(some, 0), {}, 32);
  const std::string beyond = "mov.u32 %r1, %tid.x;\nshfl.sync.bfly.b32 %r4, %r1, 8, 31, 0xffff;\n";
  fault(Fault::Of::Barrier, module_of(beyond, 0), {}, 8);
}

TEST_F(MachineTest, AccessesOutsideOfMemoryAreFound) {
  const std::string copy = module_of(kPlace + R"(
add.s64 %d12, %d0, %d10;
ld.global.b32 %r4, [%d12];
add.s64 %d12, %d1, %d10;
st.global.b32 [%d12], %r4;
)",
                                     2);
  const uint64_t small = room(4 * 63), large = upload(std::vector<int32_t>(64));
  std::string words = fault(Fault::Of::Address, copy, {small, large}, 32);
  EXPECT_TRUE(names(words, "in no allocation of the device")) << words;
  fault(Fault::Of::Address, copy, {large, small}, 32);
  fault(Fault::Of::Address, copy, {0, large}, 32);
  const uint64_t gone = room(256);
  ASSERT_TRUE(memory_.release(gone));
  EXPECT_FALSE(memory_.release(gone));
  room(256);
  fault(Fault::Of::Address, copy, {gone, large}, 32);
  const uint64_t elsewhere = memory_.allocate(256, 1, kRoom);
  fault(Fault::Of::Address, copy, {elsewhere, large}, 32);
  fault(Fault::Of::Misaligned, copy, {large + 2, large}, 32);
  words = fault(Fault::Of::Address,
                module_of(kPlace + ".shared .align 4 .b8 room[64];\nmov.u64 %d12, room;\n"
                                   "add.s64 %d12, %d12, %d11;\nst.shared.b32 [%d12], %r1;\n",
                          0),
                {}, 32);
  EXPECT_TRUE(names(words, " to + 4 of 64 at line")) << words;
  fault(
      Fault::Of::Address,
      module_of(
          ".local .align 4 .b8 room[64];\nmov.u64 %d12, room;\nld.local.b32 %r1, [%d12+-4];\n", 0),
      {}, 32);
}

TEST_F(MachineTest, ALoopWithoutAnEndIsFound) {
  most_instructions_ = 1'000'000;
  fault(Fault::Of::Time, module_of("$AGAIN:\nbra $AGAIN;\n", 0), {}, 1);
  fault(Fault::Of::Trap, module_of("trap;\n", 0), {}, 1);
}

TEST_F(MachineTest, LocalMemoryIsAThreadsOwn) {
  const std::string text = module_of(kPlace + R"(
.local .align 16 .b8 own[64];
mov.u64 %d12, own;
st.local.v2.b32 [%d12+8], {%r0, %r1};
cvta.local.u64 %d13, %d12;
bar.sync 0;
ld.u32 %r4, [%d13+8];
add.s64 %d14, %d0, %d10;
st.global.u32 [%d14], %r4;
)",
                                     1);
  const uint64_t to = room(64 * 4);
  run(text, {to}, 2, 32);
  std::vector<uint32_t> wanted(64);
  std::iota(wanted.begin(), wanted.end(), 0u);
  EXPECT_EQ(download<uint32_t>(to, 64), wanted);
}

TEST_F(MachineTest, DynamicSharedMemoryLiesBehindTheStatic) {
  const std::string text = module_of(kPlace + R"(
.shared .align 4 .b8 first[20];
mov.u64 %d12, rest;
add.s64 %d13, %d12, %d11;
st.shared.b32 [%d13], %r1;
mov.u64 %d14, first;
sub.s64 %d15, %d12, %d14;
cvt.u32.u64 %r4, %d15;
st.global.u32 [%d0], %r4;
)",
                                     1, ".extern .shared .align 16 .b8 rest[];\n");
  const uint64_t to = room(4);
  run(text, {to}, 1, 32, 1, 128);
  EXPECT_EQ(download<uint32_t>(to, 1)[0], 32u);
  EXPECT_THROW(run(text, {to}, 1, 32, 1, 124), Fault);
}

TEST_F(MachineTest, BlocksAndGridsHaveThreeAxes) {
  const std::string text = module_of(R"(
mov.u32 %r0, %tid.x;
mov.u32 %r1, %tid.y;
mov.u32 %r2, %tid.z;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %ntid.y;
mad.lo.u32 %r5, %r2, %r4, %r1;
mad.lo.u32 %r5, %r5, %r3, %r0;
mul.wide.u32 %d1, %r5, 4;
add.s64 %d1, %d0, %d1;
st.global.u32 [%d1], %r2;
)",
                                     1);
  const Module module = parse_module(text);
  const uint64_t to = room(24 * 4);
  KernelLaunch launch;
  launch.entry = &module.entries.at("kernel");
  launch.block = {4, 3, 2};
  launch.parameters.resize(8);
  std::memcpy(launch.parameters.data(), &to, 8);
  Machine(memory_, 0, 3).run(launch);
  for (uint32_t i = 0; i < 24; ++i) EXPECT_EQ(download<uint32_t>(to, 24)[i], i / 12);
}

}  // namespace
}  // namespace tiny::emulation

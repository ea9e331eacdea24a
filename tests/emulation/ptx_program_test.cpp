// What the parser takes and refuses; what it refuses for its types, the assembler refuses too.
#include "tests/emulation/ptx_program.h"

#include "tests/emulation/kernels.h"

namespace tiny::emulation {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_module(text);
  } catch (const Refused& r) {
    return r.what();
  }
  return "";
}

TEST(PtxProgram, ReadsAModule) {
  const Module module = parse_module(R"(
// A comment. /* of no meaning */
.version 7.0 /* lowest */
.target sm_80
.address_size 64
.visible .entry first(.param .u64 b0, .param .s32 n, .param .align 16 .b8 block[32])
.maxntid 16, 8, 1
{ .shared .align 8 .b8 a[4]; .shared .b32 b[2]; ret; }
.visible .entry second() .reqntid 32 { ret; }
)");
  EXPECT_EQ(module.version, 70u);
  EXPECT_EQ(module.target, "sm_80");
  ASSERT_EQ(module.entries.size(), 2u);
  const Entry& first = module.entries.at("first");
  ASSERT_EQ(first.parameters.size(), 3u);
  EXPECT_EQ(first.parameters[1].offset, 8u);
  EXPECT_EQ(first.parameters[2].offset, 16u);
  EXPECT_EQ(first.parameter_bytes, 48u);
  EXPECT_EQ(first.threads_max, (std::array<uint32_t, 3>{16, 8, 1}));
  EXPECT_FALSE(first.threads_are_exact);
  EXPECT_EQ(first.shared_bytes, 12u);
  EXPECT_TRUE(module.entries.at("second").threads_are_exact);
}

TEST(PtxProgram, RefusesWhatItDoesNotKnowByNameAndLine) {
  EXPECT_EQ(refusal(module_of("\nfrobnicate.b32 %r1, %r2;\n", 0)),
            "ptx line 11: frobnicate.b32: unknown instruction");
  const auto word = [](const std::string& body, const std::string& part) {
    const std::string words = refusal(module_of(body, 1));
    EXPECT_NE(words.find(part), std::string::npos) << body << ": " << words;
  };
  word("add.ftz.f32 %r1, %r2, %r3;", "unknown modifier .ftz");
  word("ex2.approx.f32 %r1, %r2;", "unknown instruction");
  word("sqrt.approx.f32 %r1, %r2;", "approximations are not known");
  word(".texref a;", "unknown directive \".texref\"");
  word("bra $NOWHERE;", "no label $NOWHERE");
  word("$A:\n$A:", "a label twice: $A");
  word("ld.param.u64 %d0, [other];", "no parameter other");
  word("ld.param.u64 %d0, [p0+8];", "reads outside of the parameter p0");
  word("mov.u32 %r1, %clock;", "unknown name %clock");
  word("ld.shared.b32 %r1, [%r2", "expected \"]\"");
  EXPECT_EQ(refusal(".version 7.0\n.target sm_75\n.global .b32 x;\n"),
            "ptx line 3: unknown directive \".global\"");
  EXPECT_EQ(refusal(".target sm_75\n"), "ptx line 2: the module has no .version");
}

// Types, which a machine without them would not miss.
TEST(PtxProgram, RefusesWhatTheAssemblerRefuses) {
  for (const std::string body : {"add.s32 %r1, %r2, %d3;",
                                 "add.s64 %d1, %d2, %r3;",
                                 "add.s32 %r1, %r2;",
                                 "setp.lt.s32 %r1, %r2, %r3;",
                                 "and.b32 %r1, %r2, %p1;",
                                 "mul.s32 %r1, %r2, %r3;",
                                 "fma.f32 %r1, %r2, %r3;",
                                 "shl.u32 %r1, %r2, %r3;",
                                 "setp.lt.b32 %p1, %r2, %r3;",
                                 "setp.equ.s32 %p1, %r2, %r3;",
                                 "cvt.s32.f32 %r1, %r2;",
                                 "cvt.f32.s32 %r1, %r2;",
                                 "cvt.rn.f64.f32 %d1, %r2;",
                                 "ld.global.b32 %r1, [%r2];",
                                 "ld.global.v4.b64 {%d1, %d2}, [%d3];",
                                 "ld.global.v2.b32 %r1, [%d3];",
                                 "st.global.b64 [%d1], %r2;",
                                 "selp.b32 %r1, %r2, %r3, %r4;",
                                 "shl.b32 %r1, %r2, %d3;",
                                 "mov.u32 %tid.x, %r1;",
                                 "mov.b32 %r1, %r99;",
                                 "neg.u32 %r1, %r2;",
                                 "atom.global.cas.b32 %r1, [%d1], %r2;",
                                 "atom.global.add.b32 %r1, [%d1], %r2;",
                                 "shfl.sync.bfly.b32 %r1, %r2, 1, 31;",
                                 "bar.sync;",
                                 "mov.b64 %d1, {%r1, %d2};"}) {
    const std::string text = module_of(body, 0);
    EXPECT_NE(refusal(text), "") << body;
    if (!tiny::testing::ptx_assembler().empty()) {
      EXPECT_FALSE(assembles(text)) << body;
    }
  }
}

}  // namespace
}  // namespace tiny::emulation

// Products of matrices that four warps form together of what they share: the interpreter and the
// emulated machine compute them, and mistakes in their order, places and layouts are noticed.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/text.h"
#include "codegen/choose/strategies.h"
#include "codegen/linear/group_hazards.h"
#include "cost/group_machines.h"
#include "tests/emulation/matrix_kernels.h"
#include "tests/support/assembler.h"
#include "tests/support/failure.h"

namespace tiny::emulation {
namespace {

constexpr const char* kTarget = "sm_90a";
constexpr DType kOperands[] = {kFloat16, kBFloat16};

void expect_right(const Product& p, const std::string& options, uint64_t seed = 0) {
  const Generated g = generated(p, options);
  EXPECT_EQ(find_hazard(g.program), "") << options;
  EXPECT_TRUE(interprets(g, p)) << options << "\n" << to_string(g.program);
  EXPECT_EQ(emulation_fails(g, p, seed, kTarget), "") << options;
}

tiny::Machine hopper() {
  const GroupMachine& described = *find_group_machine("h100");
  tiny::Machine machine(generic_target(described.limits.access_bytes));
  imitate(described, machine);
  machine.group.argument_alignment = 256;
  machine.group.matrices = matrices_of(described.compute, false);
  return machine;
}

std::string chosen(const Product& p, const tiny::Machine& machine) {
  Graph graph;
  return to_text(choose_options(prepare_kernel(kernel_of(graph, p), machine), machine));
}

TEST(SharedProducts, EachShapeAndType) {
  for (const DType dtype : kOperands)
    for (const int64_t columns : {64, 128, 256})
      expect_right({130, 100, columns + 8, dtype, false, true},
                   wide({130, 100, columns + 8, dtype}, columns, {.turned_b = true}));
}

TEST(SharedProducts, OperandsThatLieTheOtherWay) {
  for (const bool turned_a : {false, true})
    for (const bool turned_b : {false, true}) {
      const Product p{70, 136, 72, kFloat16, turned_a, turned_b};
      expect_right(p, wide(p, 64, {.turned_a = turned_a, .turned_b = turned_b}));
    }
}

TEST(SharedProducts, CopiesRunAhead) {
  for (const int64_t rooms : {2, 3, 4}) {
    const Product p{72, 64 * 6 + 8, 136, kBFloat16, false, true};
    expect_right(p, wide(p, 128, {.turned_b = true, .rooms = rooms}), 3);
  }
}

TEST(SharedProducts, BatchesAndWhatIsDoneWithTheResult) {
  Product p{70, 72, 72, kFloat16};
  p.batch = 2;
  p.has_bias = true;
  p.result = kFloat16;
  expect_right(p, wide(p, 64, {.rooms = 2}));
}

// Where there is a room for it, a step's products run while the next one's operands are copied.
TEST(SharedProducts, StepsLeaveProductsUnderWay) {
  const Product p{72, 64 * 6 + 8, 136, kBFloat16, false, true};
  for (const int64_t rooms : {1, 2, 3, 4}) {
    const LinearProgram program =
        generated(p, wide(p, 128, {.turned_b = true, .rooms = rooms})).program;
    std::vector<int64_t> waits;
    for (const LinearOp& op : program.ops)
      if (op.op == Op::WaitMmas) waits.push_back(op.imm);
    EXPECT_EQ(waits, rooms < 3 ? std::vector<int64_t>{0} : (std::vector<int64_t>{1, 0})) << rooms;
  }
}

// What the assembler notes: nothing spilled, and products that run beside the threads.
TEST(SharedProducts, AreAssembledWithoutSpills) {
  const std::string assembler = tiny::testing::ptx_assembler();
  if (assembler.empty()) GTEST_SKIP() << tiny::testing::kNoAssembler;
  const Product large{8192, 8192, 8192, kBFloat16, false, true};
  std::vector<LinearProgram> programs{generated(large, chosen(large, hopper())).program};
  for (const int64_t columns : {64, 256}) {
    const Product p{128, 256, 512, kFloat16, false, true};
    programs.push_back(generated(p, wide(p, columns, {.turned_b = true, .rooms = 3})).program);
  }
  for (const LinearProgram& program : programs) {
    const std::string text = render_ptx(program, ptx_target(90)).text;
    EXPECT_NE(text.find(".target sm_90a"), std::string::npos);
    const auto assembled = tiny::testing::assemble(assembler, text, kTarget);
    EXPECT_EQ(assembled.status, 0) << assembled.log;
    EXPECT_TRUE(assembled.spilled().empty()) << assembled.log;
    EXPECT_EQ(assembled.log.find("C75"), std::string::npos) << assembled.log;  // serialised
  }
}

TEST(SharedProducts, WhatDoesNotFitIsRefused) {
  using tiny::testing::expect_failure;
  using tiny::testing::failure_of;
  const Product p{128, 128, 256};
  const auto refused = [&](const std::string& options, const char* why) {
    expect_failure(failure_of([&] { generated(p, options); }), Status::InvalidArgument, {why});
  };
  refused("TILE r0 16; TILE r1 64; TILE r2 16; TC r3 r4 r5 m64n64k16_f16",
          "the operands of m64n64k16_f16 are shared, swizzled by 3");
  // 128 columns side by side are no line.
  refused(wide(p, 128), "the second operand does not lie in lines of 64 elements");
  const Generated g = generated(p, wide(p, 64));
  for (const char* other : {"sm_80", "sm_100a", "sm_120"})
    expect_failure(failure_of([&] { render_ptx(g.program, ptx_target(other)); }),
                   Status::Unsupported, {"m64n64k16_f16", other});
}

struct Mistake {
  const char* what;
  bool is_hazard;  // of order, whatever the values
  std::function<void(LinearProgram&)> plant;
};

std::vector<LinearId> all(const LinearProgram& p, Op op) {
  std::vector<LinearId> found;
  for (LinearId i = 0; i < p.ops.size(); ++i)
    if (p.ops[i].op == op) found.push_back(i);
  return found;
}
// An op that does nothing stands there: a number that nobody reads.
void drop(LinearProgram& p, LinearId at) {
  p.ops[at] = {};
  p.ops[at].dtype = kInt64;
}
void drop_fences(LinearProgram& p, int64_t which) {
  for (const LinearId i : all(p, Op::Fence))
    if (p.ops[i].imm == which) drop(p, i);
}
// The address that operand `source` of the first product begins at, as another.
void move_operand(LinearProgram& p, size_t source, int64_t bytes) {
  const LinearId product = all(p, Op::Mma).front();
  const auto insert = [&](LinearId at, LinearOp op) {
    for (LinearOp& other : p.ops)
      for (size_t s = 0; s < other.count; ++s)
        if (other.src[s] >= at) ++other.src[s];
    p.ops.insert(p.ops.begin() + at, op);
  };
  LinearOp number, address;
  number.dtype = kInt64, number.imm = bytes;
  address.op = Op::Address, address.dtype = kAddress, address.count = 2, address.imm = 1;
  address.src = {p.ops[product].src[source], product};
  insert(product, number);
  insert(product + 1, address);
  p.ops[product + 2].src[source] = product + 1;
}

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> kMistakes = {
      {"no fence of memory", true, [](LinearProgram& p) { drop_fences(p, 0); }},
      {"the fence of memory before the copies are there", true,
       [](LinearProgram& p) {
         const LinearId wait = all(p, Op::WaitCopies).front();
         for (const LinearId i : all(p, Op::Fence))
           if (i > wait && p.ops[i].imm == 0) return std::swap(p.ops[i], p.ops[wait]);
       }},
      {"no fence of sums", true, [](LinearProgram& p) { drop_fences(p, 1); }},
      {"no wait for products", true,
       [](LinearProgram& p) {
         for (const LinearId i : all(p, Op::WaitMmas)) drop(p, i);
       }},
      {"a wait that leaves one group of products", true,
       [](LinearProgram& p) {
         for (const LinearId i : all(p, Op::WaitMmas)) ++p.ops[i].imm;
       }},
      {"no wait for the last step's products", true,
       [](LinearProgram& p) { drop(p, all(p, Op::WaitMmas).back()); }},
      {"products that are no group", true,
       [](LinearProgram& p) {
         for (const LinearId i : all(p, Op::CommitMmas)) drop(p, i);
       }},
      {"no wait for copies", true,
       [](LinearProgram& p) { drop(p, all(p, Op::WaitCopies).front()); }},
      {"no barrier", true, [](LinearProgram& p) { drop(p, all(p, Op::Barrier).back()); }},
      {"a room too few", true,
       [](LinearProgram& p) {
         for (const LinearId i : all(p, Op::FloorMod))
           if (LinearOp& by = p.ops[p.ops[i].src[1]]; by.op == Op::Const && by.imm == 3) by.imm = 2;
       }},
      {"A begins eight steps later", false, [](LinearProgram& p) { move_operand(p, 0, 16); }},
      {"B begins a product later", false, [](LinearProgram& p) { move_operand(p, 1, 32); }},
      {"A is turned", false,
       [](LinearProgram& p) {
         for (const LinearId i : all(p, Op::Mma)) p.ops[i].imm ^= kTurnedA;
       }},
      {"operands of the other type", false,
       [](LinearProgram& p) {
         for (const LinearId i : all(p, Op::Mma)) p.ops[i].aux += 3;
       }},
      {"the result's rows exchanged", false,
       [](LinearProgram& p) {
         for (const LinearId i : all(p, Op::Part)) p.ops[i].imm ^= 2;
       }},
      {"what is swizzled is stored as if it were not", false,
       [](LinearProgram& p) {
         for (const LinearId i : all(p, Op::Xor))
           p.ops[i].op = Op::Or, p.ops[i].src[1] = p.ops[i].src[0];
       }},
  };
  return kMistakes;
}

TEST(SharedProducts, EachMistakeIsNoticed) {
  const Product p{72, 64 * 5, 72, kFloat16, false, true};
  const Generated whole = generated(p, wide(p, 64, {.turned_b = true, .rooms = 3}));
  ASSERT_EQ(find_hazard(whole.program), "");
  ASSERT_EQ(emulation_fails(whole, p, 0, kTarget), "");
  for (const Mistake& mistake : mistakes()) {
    Generated planted = whole;
    mistake.plant(planted.program);
    bool is_noticed = false;
    for (uint64_t seed = 0; seed < 8 && !is_noticed; ++seed)
      is_noticed = !emulation_fails(planted, p, seed, kTarget).empty();
    EXPECT_TRUE(is_noticed) << mistake.what;
    EXPECT_EQ(!find_hazard(planted.program).empty(), mistake.is_hazard)
        << mistake.what << ": " << find_hazard(planted.program);
  }
}

// Of the text alone: what descriptors say.
TEST(SharedProducts, OtherDescriptorsAreNoticed) {
  const Product p{72, 64 * 2, 72, kFloat16, false, true};
  const Generated g = generated(p, wide(p, 64, {.turned_b = true}));
  const std::string known = "0x4000004000010000";  // PTX ISA, "Matrix Descriptor Format"
  const auto fails = [&](const std::string& other) {
    return emulation_fails(g, p, 0, kTarget, [&](std::string& text) {
      size_t found = 0;
      for (size_t at = 0; (at = text.find(known, at)) != std::string::npos; ++found)
        text.replace(at, known.size(), other), at += other.size();
      EXPECT_GT(found, 0u) << text;
    });
  };
  EXPECT_EQ(fails(known), "");
  EXPECT_NE(fails("0x4000002000010000"), "");  // blocks that lie nearer
  EXPECT_NE(fails("0x8000004000010000"), "");  // lines of 64 bytes
  EXPECT_NE(fails("0x4002004000010000"), "");  // a pattern that begins elsewhere
}

// Of each tile and row that is proposed, the list with the most rooms, and of the first all.
TEST(SharedProducts, WhatIsProposedComputesTheProduct) {
  const tiny::Machine machine = hopper();
  for (const Product& p : std::vector<Product>{{72, 136, 264, kFloat16, false, true},
                                               {72, 136, 136, kBFloat16},
                                               {72, 72, 72, kFloat16, true, false}}) {
    Graph graph;
    const Kernel kernel = prepare_kernel(kernel_of(graph, p), machine);
    std::string last;
    int tried = 0;
    for (const Proposal& proposal : all_proposals(Seen(kernel, machine, 1))) {
      const std::string options = to_text(proposal.made.options);
      if (options.find(" m64n") == std::string::npos) continue;
      const std::string tile = options.substr(0, options.find("PIPELINE"));
      if (tile == last && tried > 1) continue;
      last = tile;
      ++tried;
      expect_right(p, options, 1);
    }
    EXPECT_GT(tried, 2);
  }
}

// The largest tile, whose operands lie in as many rooms as there are: what all groups of a time
// read of an operand at one step comes from memory once.
TEST(SharedProducts, LargeProductsHaveLargeTiles) {
  for (const DType dtype : kOperands) {
    const std::string options = chosen({8192, 8192, 8192, dtype, false, true}, hopper());
    EXPECT_NE(options.find("m64n256k16"), std::string::npos) << options;
    EXPECT_TRUE(options.ends_with("PIPELINE r2 4")) << options;
  }
}

TEST(SharedProducts, LargeProductsAreSuchWhereThereAreThese) {
  for (const DType dtype : kOperands)
    for (const bool turned_b : {false, true}) {
      const Product p{4096, 4096, 4096, dtype, false, turned_b};
      EXPECT_NE(chosen(p, hopper()).find(" m64n"), std::string::npos) << chosen(p, hopper());
      tiny::Machine other = hopper();
      other.group.matrices = matrices_of(100, false);
      EXPECT_EQ(chosen(p, other).find(" m64n"), std::string::npos) << chosen(p, other);
    }
}

}  // namespace
}  // namespace tiny::emulation

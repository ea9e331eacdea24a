#include "ir/linear.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/matrix.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;

constexpr DType kFloat32x8 = kFloat32.with_lanes(8);
constexpr DType kBoolx8 = kBool.with_lanes(8);

// A legal program that copies and sums, with the positions of what tests refer to.
struct Legal {
  LinearProgram p;
  LinearId zero, ten, in, out, n, begin, one, yes, vector, mask;

  Legal() {
    p.name = "legal";
    p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
    p.variables = {{"n", 1, 64}};
    p.scratch_bytes = 256;
    in = p.add(Op::Param, kAddress, {}, 0);
    out = p.add(Op::Param, kAddress, {}, 1);
    zero = p.add(Op::Const, kInt64, {}, 0);
    ten = p.add(Op::Const, kInt64, {}, 10);
    n = p.add(Op::Variable, kInt64, {}, 0);
    begin = p.add(Op::LaunchArg, kInt64, {}, 0);
    one = p.add(Op::Const, kFloat32, {}, 0x3F800000);
    yes = p.add(Op::Const, kBool, {}, 1);
    vector = p.add(Op::Broadcast, kFloat32x8, {one});
    mask = p.add(Op::LaneRange, kBoolx8, {zero, n});
  }
  LinearId add(Op op, DType t, std::initializer_list<LinearId> src, int64_t imm = 0,
               int32_t aux = 0) {
    return p.add(op, t, src, imm, aux);
  }
};

TEST(Linear, ALegalProgramIsAccepted) {
  Legal l;
  const LinearId scratch = l.add(Op::Scratch, kAddress, {}, 64);
  const LinearId row = l.add(Op::Address, kAddress, {l.in, l.begin}, 40);
  const LinearId acc = l.add(Op::Accumulator, kFloat32x8, {l.vector});
  const LinearId loop = l.add(Op::Loop, kInt64, {l.zero, l.n}, 8);
  const LinearId x = l.add(Op::Load, kFloat32x8, {row, loop, l.mask}, 4, 1);
  const LinearId sum = l.add(Op::Fma, kFloat32x8, {x, l.vector, acc});
  l.add(Op::Set, kVoid, {acc, sum});
  l.add(Op::Store, kVoid, {scratch, loop, sum}, 0, 1);
  l.add(Op::EndLoop, kVoid, {loop});
  const LinearId total = l.add(Op::Fold, kFloat32, {acc}, 0, static_cast<int32_t>(Op::Add));
  const LinearId above = l.add(Op::Less, kBool, {l.one, total});
  const LinearId block = l.add(Op::If, kVoid, {above});
  l.add(Op::Store, kVoid, {l.out, l.zero, total});
  l.add(Op::EndIf, kVoid, {block});
  const LinearId lanes = l.add(Op::Ramp, kInt64.with_lanes(8), {l.begin}, 2);
  const LinearId gathered = l.add(Op::Load, kFloat32x8, {l.in, lanes, l.mask});
  l.add(Op::Store, kVoid, {l.out, lanes, gathered});
  l.add(Op::Check, kVoid, {l.mask, l.begin}, 3);
  EXPECT_NO_THROW(verify(l.p));
  const std::string text = to_string(l.p);
  EXPECT_NE(text.find("float32x8 Fma"), std::string::npos) << text;
  EXPECT_NE(text.find("    %14 = float32x8 Load"), std::string::npos) << text;  // indented
}

// The same as a program of groups of 8 x 3 threads, which share memory and meet.
struct LegalGroup : Legal {
  LinearId thread, row, half;

  LegalGroup() {
    p.name = "group";
    p.grouped = true;
    p.group = {8, 3, 1};
    p.shared_bytes = 128;
    thread = p.add(Op::LaunchArg, kInt64, {}, 3);
    row = p.add(Op::LaunchArg, kInt64, {}, 4);
    half = p.add(Op::LessEqual, kBool, {thread, zero});
  }
  LinearId fold(LinearId value, int64_t axes, Op op = Op::Add) {
    return add(Op::GroupFold, p.ops[value].dtype, {value}, axes, static_cast<int32_t>(op));
  }
};

TEST(Linear, ALegalProgramOfGroupsIsAccepted) {
  LegalGroup l;
  const LinearId shared = l.add(Op::Shared, kAddress, {}, 64);
  const LinearId loop = l.add(Op::Loop, kInt64, {l.zero, l.n}, 1);
  l.add(Op::Barrier, kVoid, {});
  const LinearId block = l.add(Op::If, kVoid, {l.half});
  l.add(Op::Store, kVoid, {shared, l.thread, l.one});
  l.add(Op::EndIf, kVoid, {block});
  l.add(Op::Barrier, kVoid, {});
  const LinearId sum = l.fold(l.add(Op::Load, kFloat32x8, {shared, l.thread}, 0, 1), 1);
  l.add(Op::EndLoop, kVoid, {loop});
  // What is folded over an axis is the same along it, and a loop to it is walked by all.
  const LinearId same = l.fold(l.thread, 1, Op::Max);
  const LinearId walk = l.add(Op::Loop, kInt64, {l.zero, same}, 1);
  l.add(Op::Barrier, kVoid, {});
  l.add(Op::EndLoop, kVoid, {walk});
  static_cast<void>(sum);
  EXPECT_NO_THROW(verify(l.p));
  EXPECT_NE(to_string(l.p).find("group 8x3x1 shared 128"), std::string::npos) << to_string(l.p);
}

struct Planted {
  const char* law;
  std::function<void(Legal&)> plant;
};

const std::vector<Planted>& planted() {
  static const auto& all = *new std::vector<Planted>{
      {"the op is legal in a linear program", [](Legal& l) { l.add(Op::Exp, kFloat32, {l.one}); }},
      {"the op is legal in a linear program", [](Legal& l) { l.add(Op::Range, kInt64, {l.ten}); }},
      {"sources come first", [](Legal& l) { l.add(Op::Neg, kFloat32, {200}); }},
      {"sources come first",
       [](Legal& l) { l.add(Op::Neg, kFloat32, {static_cast<LinearId>(l.p.ops.size())}); }},
      {"sources are in an enclosing block",
       [](Legal& l) {
         const LinearId loop = l.add(Op::Loop, kInt64, {l.zero, l.n}, 1);
         const LinearId inside = l.add(Op::Neg, kFloat32, {l.one});
         l.add(Op::EndLoop, kVoid, {loop});
         l.add(Op::Neg, kFloat32, {inside});
       }},
      {"sources are in an enclosing block",
       [](Legal& l) {
         const LinearId loop = l.add(Op::Loop, kInt64, {l.zero, l.n}, 1);
         l.add(Op::EndLoop, kVoid, {loop});
         l.add(Op::Neg, kInt64, {loop});
       }},
      {"sources have values",
       [](Legal& l) {
         const LinearId s = l.add(Op::Store, kVoid, {l.out, l.zero, l.one});
         l.add(Op::Neg, kFloat32, {s});
       }},
      {"a statement has no value",
       [](Legal& l) { l.add(Op::Store, kFloat32, {l.out, l.zero, l.one}); }},
      {"blocks nest",
       [](Legal& l) {
         const LinearId outer = l.add(Op::Loop, kInt64, {l.zero, l.n}, 1);
         l.add(Op::Loop, kInt64, {l.zero, l.n}, 1);
         l.add(Op::EndLoop, kVoid, {outer});
       }},
      {"blocks nest",
       [](Legal& l) { l.add(Op::EndLoop, kVoid, {l.zero}), l.add(Op::EndLoop, kVoid, {l.zero}); }},
      {"a block ends as it began",
       [](Legal& l) { l.add(Op::EndIf, kVoid, {l.add(Op::Loop, kInt64, {l.zero, l.n}, 1)}); }},
      {"a block is not closed", [](Legal& l) { l.add(Op::If, kVoid, {l.yes}); }},
      {"an end names its block", [](Legal& l) { l.add(Op::EndLoop, kVoid, {}); }},
      {"a constant has a dtype", [](Legal& l) { l.add(Op::Const, kVoid, {}); }},
      {"a constant has a dtype", [](Legal& l) { l.add(Op::Const, kInt64, {l.zero}); }},
      {"the slot exists", [](Legal& l) { l.add(Op::Param, kAddress, {}, 2); }},
      {"the slot exists", [](Legal& l) { l.add(Op::Param, kAddress, {}, -1); }},
      {"the slot exists", [](Legal& l) { l.add(Op::Param, kFloat32, {}, 0); }},
      {"the offset is in the scratch", [](Legal& l) { l.add(Op::Scratch, kAddress, {}, 256); }},
      {"the variable exists", [](Legal& l) { l.add(Op::Variable, kInt64, {}, 1); }},
      {"the variable exists", [](Legal& l) { l.add(Op::Variable, kInt32, {}, 0); }},
      {"the launch argument exists", [](Legal& l) { l.add(Op::LaunchArg, kInt64, {}, 3); }},
      {"an address is an address and an index",
       [](Legal& l) { l.add(Op::Address, kAddress, {l.in, l.one}, 4); }},
      {"an address is an address and an index",
       [](Legal& l) { l.add(Op::Address, kAddress, {l.zero, l.zero}, 4); }},
      {"load address, index [, mask]", [](Legal& l) { l.add(Op::Load, kFloat32, {l.in}); }},
      {"store address, index, value [, mask]",
       [](Legal& l) { l.add(Op::Store, kVoid, {l.out, l.zero}); }},
      {"the first source is an address",
       [](Legal& l) { l.add(Op::Load, kFloat32, {l.zero, l.zero}); }},
      {"the index is int64", [](Legal& l) { l.add(Op::Load, kFloat32, {l.in, l.one}); }},
      {"the index is int64",
       [](Legal& l) {
         const LinearId four = l.add(Op::Ramp, kInt64.with_lanes(4), {l.zero}, 1);
         l.add(Op::Load, kFloat32x8, {l.in, four});
       }},
      {"a vector access has a lane stride",
       [](Legal& l) { l.add(Op::Load, kFloat32x8, {l.in, l.zero}); }},
      {"a vector access has a lane stride",
       [](Legal& l) { l.add(Op::Store, kVoid, {l.out, l.zero, l.vector}); }},
      {"the mask is a bool with the lanes",
       [](Legal& l) { l.add(Op::Load, kFloat32, {l.in, l.zero, l.yes}); }},
      {"the mask is a bool with the lanes",
       [](Legal& l) { l.add(Op::Load, kFloat32x8, {l.in, l.zero, l.vector}, 0, 1); }},
      {"the mask is a bool with the lanes",
       [](Legal& l) { l.add(Op::Store, kVoid, {l.out, l.zero, l.vector, l.yes}, 0, 1); }},
      {"prefetch address, index of one lane, in units",
       [](Legal& l) { l.add(Op::Prefetch, kVoid, {l.in, l.one}, 0, 4); }},
      {"prefetch address, index of one lane, in units",
       [](Legal& l) { l.add(Op::Prefetch, kVoid, {l.in, l.zero}, 0, 0); }},
      {"loop begin, end: int64, step above 0",
       [](Legal& l) { l.add(Op::Loop, kInt64, {l.zero, l.n}, 0); }},
      {"loop begin, end: int64, step above 0",
       [](Legal& l) { l.add(Op::Loop, kInt64, {l.zero, l.one}, 1); }},
      {"if takes one bool", [](Legal& l) { l.add(Op::If, kVoid, {l.one}); }},
      {"if takes one bool", [](Legal& l) { l.add(Op::If, kVoid, {l.mask}); }},
      {"an accumulator has its value's dtype",
       [](Legal& l) { l.add(Op::Accumulator, kFloat64, {l.one}); }},
      {"set accumulator, value of its dtype",
       [](Legal& l) { l.add(Op::Set, kVoid, {l.one, l.one}); }},
      {"set accumulator, value of its dtype",
       [](Legal& l) {
         l.add(Op::Set, kVoid, {l.add(Op::Accumulator, kFloat32, {l.one}), l.zero});
       }},
      {"broadcast widens one lane", [](Legal& l) { l.add(Op::Broadcast, kFloat32x8, {l.vector}); }},
      {"broadcast widens one lane",
       [](Legal& l) { l.add(Op::Broadcast, kFloat64.with_lanes(8), {l.one}); }},
      {"ramp widens one integer lane", [](Legal& l) { l.add(Op::Ramp, kFloat32x8, {l.one}, 1); }},
      {"lanes low, high: int64", [](Legal& l) { l.add(Op::LaneRange, kBool, {l.zero, l.n}); }},
      {"lanes low, high: int64", [](Legal& l) { l.add(Op::LaneRange, kBoolx8, {l.zero, l.one}); }},
      {"fold takes a power of two of lanes to one",
       [](Legal& l) { l.add(Op::Fold, kFloat32, {l.vector}, 0, static_cast<int32_t>(Op::Div)); }},
      {"fold takes a power of two of lanes to one",
       [](Legal& l) { l.add(Op::Fold, kFloat32, {l.vector}, 0, 9999); }},
      {"fold takes a power of two of lanes to one",
       [](Legal& l) {
         const LinearId six = l.add(Op::Broadcast, kFloat32.with_lanes(6), {l.one});
         l.add(Op::Fold, kFloat32, {six}, 0, static_cast<int32_t>(Op::Add));
       }},
      {"check bool, position", [](Legal& l) { l.add(Op::Check, kVoid, {l.one, l.zero}); }},
      {"check bool, position", [](Legal& l) { l.add(Op::Check, kVoid, {l.yes, l.one}); }},
      {"the number of sources is the arity", [](Legal& l) { l.add(Op::Add, kFloat32, {l.one}); }},
      {"lanes agree", [](Legal& l) { l.add(Op::Add, kFloat32x8, {l.vector, l.one}); }},
      {"lanes agree", [](Legal& l) { l.add(Op::Where, kFloat32x8, {l.yes, l.vector, l.vector}); }},
      {"where takes a bool", [](Legal& l) { l.add(Op::Where, kFloat32, {l.one, l.one, l.one}); }},
      {"operand dtypes agree", [](Legal& l) { l.add(Op::Add, kFloat32, {l.one, l.zero}); }},
      {"operands and values are numbers or bools",
       [](Legal& l) { l.add(Op::Add, kAddress, {l.in, l.out}); }},
      {"operands and values are numbers or bools",
       [](Legal& l) { l.add(Op::Cast, kAddress, {l.zero}); }},
      {"the dtype is the operands'", [](Legal& l) { l.add(Op::Add, kFloat64, {l.one, l.one}); }},
      {"the dtype is bool", [](Legal& l) { l.add(Op::Less, kFloat32, {l.one, l.one}); }},
      {"a bitcast keeps the size", [](Legal& l) { l.add(Op::Bitcast, kInt64, {l.one}); }},
      {"the op takes operands of this kind", [](Legal& l) { l.add(Op::Sqrt, kInt64, {l.zero}); }},
      {"the op takes operands of this kind",
       [](Legal& l) { l.add(Op::Shl, kFloat32, {l.one, l.one}); }},
  };
  return all;
}

TEST(Linear, EachLawRejectsAPlantedProgram) {
  ASSERT_NO_THROW(verify(Legal().p));
  for (const Planted& c : planted()) {
    Legal l;
    c.plant(l);
    SCOPED_TRACE(to_string(l.p));
    expect_failure(failure_of([&] { verify(l.p); }), Status::Internal, {c.law});
  }
}

struct PlantedInGroup {
  const char* law;
  std::function<void(LegalGroup&)> plant;
};

const std::vector<PlantedInGroup>& planted_in_groups() {
  static const auto& all = *new std::vector<PlantedInGroup>{
      {"a group has threads", [](LegalGroup& l) { l.p.group[2] = 0; }},
      {"the launch argument exists", [](LegalGroup& l) { l.add(Op::LaunchArg, kInt64, {}, 6); }},
      {"the offset is in the group's memory",
       [](LegalGroup& l) { l.add(Op::Shared, kAddress, {}, 128); }},
      {"threads of a group meet", [](LegalGroup& l) { l.add(Op::Barrier, kVoid, {l.zero}); }},
      {"keeps the dtype",
       [](LegalGroup& l) {
         l.add(Op::GroupFold, kFloat32, {l.vector}, 1, static_cast<int32_t>(Op::Add));
       }},
      {"a fold's op is associative", [](LegalGroup& l) { l.fold(l.one, 1, Op::Div); }},
      {"names its axes", [](LegalGroup& l) { l.fold(l.one, 0); }},
      {"names its axes", [](LegalGroup& l) { l.fold(l.one, 8); }},
      {"a power of two of threads", [](LegalGroup& l) { l.fold(l.one, 2); }},
      {"no block around a meeting",
       [](LegalGroup& l) {
         const LinearId block = l.add(Op::If, kVoid, {l.half});
         l.add(Op::Barrier, kVoid, {});
         l.add(Op::EndIf, kVoid, {block});
       }},
      {"no block around a meeting",
       [](LegalGroup& l) {
         const LinearId loop = l.add(Op::Loop, kInt64, {l.row, l.n}, 1);
         l.fold(l.one, 1);
         l.add(Op::EndLoop, kVoid, {loop});
       }},
      // What one thread sets, and what lies in its own memory, differs.
      {"no block around a meeting",
       [](LegalGroup& l) {
         const LinearId count = l.add(Op::Accumulator, kInt64, {l.zero});
         const LinearId loop = l.add(Op::Loop, kInt64, {l.zero, l.n}, 1);
         const LinearId walk = l.add(Op::Loop, kInt64, {l.zero, count}, 1);
         l.add(Op::Barrier, kVoid, {});
         l.add(Op::EndLoop, kVoid, {walk});
         const LinearId block = l.add(Op::If, kVoid, {l.half});
         l.add(Op::Set, kVoid, {count, l.ten});
         l.add(Op::EndIf, kVoid, {block});
         l.add(Op::EndLoop, kVoid, {loop});
       }},
      {"no block around a meeting",
       [](LegalGroup& l) {
         const LinearId own = l.add(Op::Scratch, kAddress, {}, 0);
         const LinearId loop =
             l.add(Op::Loop, kInt64, {l.zero, l.add(Op::Load, kInt64, {own, l.zero})}, 1);
         l.add(Op::Barrier, kVoid, {});
         l.add(Op::EndLoop, kVoid, {loop});
       }},
      // Folded along one axis it still differs along the other.
      {"no block around a meeting",
       [](LegalGroup& l) {
         const LinearId sum = l.fold(l.add(Op::Add, kInt64, {l.thread, l.row}), 1);
         const LinearId loop = l.add(Op::Loop, kInt64, {l.zero, sum}, 1);
         l.add(Op::Barrier, kVoid, {});
         l.add(Op::EndLoop, kVoid, {loop});
       }},
  };
  return all;
}

TEST(Linear, EachLawOfGroupsRejectsAPlantedProgram) {
  ASSERT_NO_THROW(verify(LegalGroup().p));
  for (const PlantedInGroup& c : planted_in_groups()) {
    LegalGroup l;
    c.plant(l);
    SCOPED_TRACE(to_string(l.p));
    expect_failure(failure_of([&] { verify(l.p); }), Status::Internal, {c.law});
  }
}

// The same of whole warps, which multiply matrices and copy.
struct LegalWarps : LegalGroup {
  LinearId a, b, sum, shared, memory;

  LegalWarps() {
    p.group = {kLaneColumns, kLaneRows, 2};
    const auto words = [&](int64_t lanes) {
      return add(Op::Const, kUInt32.with_lanes(lanes), {}, 0);
    };
    a = words(4);
    b = words(2);
    sum = add(Op::Const, kFloat32.with_lanes(4), {}, 0);
    shared = add(Op::Shared, kAddress, {}, 64);
    memory = add(Op::Param, kAddress, {}, 0);
  }
};

TEST(Linear, LawsOfMatricesRejectPlantedPrograms) {
  LegalWarps whole;
  const LinearId product =
      whole.add(Op::Mma, kFloat32.with_lanes(4), {whole.a, whole.b, whole.sum});
  whole.add(Op::Part, kFloat32.with_lanes(2), {product}, 2);
  whole.add(Op::Join, kUInt32.with_lanes(4), {whole.b, whole.b});
  whole.add(Op::LoadMatrix, kUInt32.with_lanes(4), {whole.shared}, 0, 1);
  whole.add(Op::CopyAsync, kVoid, {whole.shared, whole.memory, whole.ten}, 4, 16);
  whole.add(Op::Commit, kVoid, {});
  whole.add(Op::WaitCopies, kVoid, {}, 1);
  EXPECT_NO_THROW(verify(whole.p));
  const auto refused = [](const char* law, const std::function<void(LegalWarps&)>& plant) {
    LegalWarps l;
    plant(l);
    SCOPED_TRACE(to_string(l.p));
    expect_failure(failure_of([&] { verify(l.p); }), Status::Internal, {law});
  };
  const DType four = kFloat32.with_lanes(4);
  refused("a warp has its threads along axes 0 and 1", [&](LegalWarps& l) {
    l.p.group = {kLaneRows, kLaneColumns, 2};
    l.add(Op::Mma, four, {l.a, l.b, l.sum});
  });
  refused("of a row of the table",
          [&](LegalWarps& l) { l.add(Op::Mma, four, {l.a, l.b, l.sum}, 0, 99); });
  refused("the words of a thread", [&](LegalWarps& l) { l.add(Op::Mma, four, {l.b, l.a, l.sum}); });
  refused("the elements of a thread",
          [&](LegalWarps& l) { l.add(Op::Mma, kFloat32, {l.a, l.b, l.one}); });
  refused("no block around a meeting", [&](LegalWarps& l) {
    const LinearId block = l.add(Op::If, kVoid, {l.half});
    l.add(Op::Mma, four, {l.a, l.b, l.sum});
    l.add(Op::EndIf, kVoid, {block});
  });
  refused("no block around a meeting", [&](LegalWarps& l) {
    const LinearId block = l.add(Op::If, kVoid, {l.half});
    l.add(Op::LoadMatrix, kUInt32.with_lanes(2), {l.shared});
    l.add(Op::EndIf, kVoid, {block});
  });
  refused("come from the group's memory",
          [](LegalWarps& l) { l.add(Op::LoadMatrix, kUInt32.with_lanes(2), {l.memory}); });
  refused("two or four matrices",
          [](LegalWarps& l) { l.add(Op::LoadMatrix, kUInt32.with_lanes(3), {l.shared}); });
  refused("two values of one dtype",
          [](LegalWarps& l) { l.add(Op::Join, kUInt32.with_lanes(6), {l.a, l.b}); });
  refused("lanes of its value",
          [](LegalWarps& l) { l.add(Op::Part, kUInt32.with_lanes(2), {l.a}, 3); });
  refused("4, 8 or 16 bytes",
          [](LegalWarps& l) { l.add(Op::CopyAsync, kVoid, {l.shared, l.memory, l.ten}, 4, 12); });
  refused("to the group's memory",
          [](LegalWarps& l) { l.add(Op::CopyAsync, kVoid, {l.memory, l.memory, l.ten}, 4, 16); });
  refused("some groups may be under way",
          [](LegalWarps& l) { l.add(Op::WaitCopies, kVoid, {}, -1); });
}

// Four warps, whose operands lie in what they share.
struct LegalWide : LegalWarps {
  static constexpr DType kSums = kFloat32.with_lanes(32);
  int32_t row = static_cast<int32_t>(find_matrix_row("m64n64k16_f16"));
  LinearId sums;

  LegalWide() {
    p.group[2] = 4;
    sums = add(Op::Accumulator, kSums, {add(Op::Const, kSums, {}, 0)});
  }
  void multiply(LinearId first, LinearId second, LinearId to, int64_t turned = 0) {
    const LinearId product = add(Op::Mma, kSums, {first, second, to}, turned, row);
    add(Op::Set, kVoid, {to, product});
  }
};

TEST(Linear, LawsOfProductsOfWhatAGroupShares) {
  LegalWide whole;
  whole.add(Op::Fence, kVoid, {});
  whole.add(Op::Fence, kVoid, {}, 1);
  whole.multiply(whole.shared, whole.shared, whole.sums, kTurnedA | kTurnedB);
  whole.add(Op::CommitMmas, kVoid, {});
  whole.add(Op::WaitMmas, kVoid, {}, 0);
  EXPECT_NO_THROW(verify(whole.p));
  const auto refused = [](const char* law, const std::function<void(LegalWide&)>& plant) {
    LegalWide l;
    plant(l);
    SCOPED_TRACE(to_string(l.p));
    expect_failure(failure_of([&] { verify(l.p); }), Status::Internal, {law});
  };
  refused("the operands lie in the group's memory",
          [](LegalWide& l) { l.multiply(l.shared, l.memory, l.sums); });
  refused("the row's warps are a part of the group's", [](LegalWide& l) {
    l.p.group[2] = 2;
    l.multiply(l.shared, l.shared, l.sums);
  });
  refused("an operand is turned or not",
          [](LegalWide& l) { l.multiply(l.shared, l.shared, l.sums, 4); });
  refused("an accumulator of the elements of a thread",
          [](LegalWide& l) { l.multiply(l.shared, l.shared, l.sums - 1); });
  refused("is set to the sum at once", [](LegalWide& l) {
    l.add(Op::Mma, LegalWide::kSums, {l.shared, l.shared, l.sums}, 0, l.row);
  });
  refused("a fence is of memory or of sums", [](LegalWide& l) { l.add(Op::Fence, kVoid, {}, 2); });
  refused("some groups may be under way", [](LegalWide& l) { l.add(Op::WaitMmas, kVoid, {}, -1); });
}

TEST(Linear, OneThreadAloneSharesNothing) {
  const auto refused = [](const char* law, const std::function<void(Legal&)>& plant) {
    Legal l;
    plant(l);
    expect_failure(failure_of([&] { verify(l.p); }), Status::Internal, {law});
  };
  refused("a group shares memory", [](Legal& l) { l.p.shared_bytes = 64; });
  refused("a group has threads", [](Legal& l) { l.p.group[0] = 2; });
  refused("threads of a group meet", [](Legal& l) { l.add(Op::Barrier, kVoid, {}); });
  refused("a fold over threads of a group",
          [](Legal& l) { l.add(Op::GroupFold, kFloat32, {l.one}, 1, int{}); });
  refused("the offset is in the group's memory", [](Legal& l) { l.add(Op::Shared, kAddress, {}); });
}

TEST(Linear, TheErrorNamesTheProgramTheOpAndTheLaw) {
  Legal l;
  l.add(Op::Sqrt, kInt64, {l.zero});
  expect_failure(failure_of([&] { verify(l.p); }), Status::Internal,
                 {"linear program legal, op %10 Sqrt: the op takes operands"});
}

}  // namespace
}  // namespace tiny

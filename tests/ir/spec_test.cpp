#include "ir/spec.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "ir/build.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

// The pieces that illegal graphs are planted in.
struct Pieces {
  Graph g;
  UOp f32 = g.constant(kFloat32, 1), f64 = g.constant(kFloat64, 1), i32 = g.constant_int(kInt32, 1),
      i64 = g.integer(4), yes = g.boolean(true);
  UOp n = g.variable("n", 1, 9);
  UOp buffer = g.make(Op::Buffer, {g.integer(24)}, Ref<RefCounted>(), kFloat32);
  UOp param = g.make(Op::Param, {}, int64_t{0}, kFloat32);
  UOp r0 = g.make(Op::Range, {g.integer(4)}, int64_t{0});
  UOp r1 = g.make(Op::Range, {g.integer(6)}, int64_t{1});
  ViewArg view{{4, 6}, {6, 1}, 0};
  UOp load = g.make(Op::Load, {param, r0, r1}, view, kFloat32);
  UOp out = g.make(Op::Param, {}, int64_t{1}, kFloat32);
  UOp store = g.make(Op::Store, {out, load, r0, r1}, view);
};

struct Planted {
  const char* law;
  std::function<UOp(Pieces&)> node;
};

template <class Verify>
void expect_law(const char* law, const Verify& verify) {
  testing::expect_failure(testing::failure_of(verify), Status::Internal, {law});
}

const std::vector<Planted>& planted_in_both() {
  static const auto& planted = *new std::vector<Planted>{
      {"there is one lane", [](Pieces& p) { return p.g.constant(kFloat32.with_lanes(4), 1); }},
      {"a value is a number or a bool",
       [](Pieces& p) { return p.g.make(Op::Cast, {p.f32}, {}, kVoid); }},
      {"a value is a number or a bool",
       [](Pieces& p) { return p.g.make(Op::Cast, {p.f32}, {}, kAddress); }},
      {"an elementwise op has no argument",
       [](Pieces& p) { return p.g.make(Op::Neg, {p.f32}, int64_t{1}); }},
      {"a choice is made by a bool",
       [](Pieces& p) { return p.g.make(Op::Where, {p.i32, p.f32, p.f32}); }},
      {"operand dtypes agree", [](Pieces& p) { return p.g.make(Op::Add, {p.f32, p.f64}); }},
      {"operand dtypes agree",
       [](Pieces& p) { return p.g.make(Op::Where, {p.yes, p.f32, p.i32}); }},
      {"operand dtypes agree", [](Pieces& p) { return p.g.make(Op::Shl, {p.i64, p.i32}); }},
      {"a bitcast is between numbers of one size",
       [](Pieces& p) { return p.g.make(Op::Bitcast, {p.f32}, {}, kInt64); }},
      {"a bitcast is between numbers of one size",
       [](Pieces& p) { return p.g.make(Op::Bitcast, {p.yes}, {}, kInt8); }},
      {"the op takes operands of this kind", [](Pieces& p) { return p.g.make(Op::Sqrt, {p.i32}); }},
      {"the op takes operands of this kind",
       [](Pieces& p) { return p.g.make(Op::And, {p.f32, p.f32}); }},
      {"the op takes operands of this kind",
       [](Pieces& p) { return p.g.make(Op::FloorDiv, {p.yes, p.yes}); }},
      {"a constant has its bits",
       [](Pieces& p) { return p.g.make(Op::Const, {}, int64_t{1}, kInt32); }},
      {"a constant's bits are those of its dtype",
       [](Pieces& p) { return p.g.constant_bits(kInt8, 256); }},
      {"a bool is 0 or 1", [](Pieces& p) { return p.g.constant_bits(kBool, 2); }},
      {"a variable has a name and bounds",
       [](Pieces& p) { return p.g.make(Op::Variable, {}, int64_t{1}, kInt64); }},
      {"a variable is int64",
       [](Pieces& p) { return p.g.make(Op::Variable, {}, VariableArg{"m", 0, 1}, kInt32); }},
      {"a variable has a name", [](Pieces& p) { return p.g.variable("", 0, 1); }},
      {"a variable has a value", [](Pieces& p) { return p.g.variable("m", 2, 1); }},
  };
  return planted;
}

const std::vector<Planted>& planted_in_tensors() {
  static const auto& planted = *new std::vector<Planted>{
      {"the op is legal in this stage", [](Pieces& p) { return p.load; }},
      {"the op is legal in this stage",
       [](Pieces& p) { return p.g.make(Op::Scale, {p.f32, p.f32}); }},
      {"the op is legal in this stage", [](Pieces& p) { return p.r0; }},
      {"the op is legal in this stage",
       [](Pieces& p) { return p.g.make(Op::Neg, {p.g.make(Op::Sub, {p.f32, p.f32})}); }},
      {"a shape is a list of sizes",
       [](Pieces& p) { return p.g.make(Op::Reshape, {p.buffer}, int64_t{1}); }},
      {"sizes are not negative",
       [](Pieces& p) { return p.g.make(Op::Reshape, {p.buffer}, Ints{-1, 24}); }},
      {"symbolic parameters follow as sources",
       [](Pieces& p) { return p.g.make(Op::Expand, {p.buffer}, Ints{kSymbolicDim}); }},
      {"symbolic parameters follow as sources",
       [](Pieces& p) { return p.g.make(Op::Expand, {p.buffer, p.n}, Ints{24}); }},
      {"indices and sizes are int64",
       [](Pieces& p) { return p.g.make(Op::Expand, {p.buffer, p.i32}, Ints{kSymbolicDim}); }},
      {"a permutation is a list of axes",
       [](Pieces& p) { return p.g.make(Op::Permute, {p.buffer}, int64_t{0}); }},
      {"a permutation names every axis once",
       [](Pieces& p) { return p.g.make(Op::Permute, {p.buffer}, Ints{0, 0}); }},
      {"a flip is a list of axes", [](Pieces& p) { return p.g.make(Op::Flip, {p.buffer}); }},
      {"flipped axes exist, each once",
       [](Pieces& p) { return p.g.make(Op::Flip, {p.buffer}, Ints{1, 1}); }},
      {"a pad has a before and an after",
       [](Pieces& p) { return p.g.make(Op::Pad, {p.buffer}, Ints{1}); }},
      {"a pad adds elements", [](Pieces& p) { return p.g.make(Op::Pad, {p.buffer}, Ints{-1, 0}); }},
      {"a shrink has a begin and an end",
       [](Pieces& p) { return p.g.make(Op::Shrink, {p.buffer}, Ints{1}); }},
      {"a shrink begins inside",
       [](Pieces& p) { return p.g.make(Op::Shrink, {p.buffer}, Ints{-1, 3}); }},
      {"a shrink ends after it begins",
       [](Pieces& p) { return p.g.make(Op::Shrink, {p.buffer}, Ints{3, 2}); }},
      {"an unfolding is an axis and four numbers for each",
       [](Pieces& p) { return p.g.make(Op::Unfold, {p.buffer}, Ints{0, 2, 3, 1}); }},
      {"there are some windows, or none",
       [](Pieces& p) { return p.g.make(Op::Unfold, {p.buffer}, Ints{0, -2, 3, 1, 1}); }},
      {"a kernel, a stride and a dilation are at least one",
       [](Pieces& p) { return p.g.make(Op::Unfold, {p.buffer}, Ints{0, 2, 3, 0, 1}); }},
      {"memory is looked at through a view",
       [](Pieces& p) { return p.g.make(Op::AsStrided, {p.buffer}, Ints{1}); }},
      {"a view has a stride for each axis",
       [](Pieces& p) { return p.g.make(Op::AsStrided, {p.buffer}, ViewArg{{2, 2}, {1}, 0}); }},
      {"sizes are not negative",
       [](Pieces& p) { return p.g.make(Op::AsStrided, {p.buffer}, ViewArg{{-2}, {1}, 0}); }},
      {"a buffer has at most a size",
       [](Pieces& p) { return p.g.make(Op::Buffer, {p.i64, p.i64}, Ref<RefCounted>(), kFloat32); }},
      {"indices and sizes are int64",
       [](Pieces& p) { return p.g.make(Op::Buffer, {p.i32}, Ref<RefCounted>(), kFloat32); }},
      {"an iota has a size", [](Pieces& p) { return p.g.make(Op::Iota, {}, {}, kInt64); }},
      {"a reduction has an op and axes",
       [](Pieces& p) { return p.g.make(Op::ReduceAxis, {p.buffer}, Ints{0}); }},
      {"the op reduces this dtype",
       [](Pieces& p) { return p.g.make(Op::ReduceAxis, {p.buffer}, ReduceArg{Op::Or, {0}}); }},
      {"the op reduces this dtype",
       [](Pieces& p) { return p.g.make(Op::ReduceAxis, {p.buffer}, ReduceArg{Op::Div, {0}}); }},
      {"reduced axes exist",
       [](Pieces& p) { return p.g.make(Op::ReduceAxis, {p.buffer}, ReduceArg{Op::Add, {}}); }},
      {"reduced axes exist",
       [](Pieces& p) { return p.g.make(Op::ReduceAxis, {p.buffer}, ReduceArg{Op::Add, {1, 0}}); }},
      {"a transform has its part",
       [](Pieces& p) { return p.g.make(Op::Winograd, {p.buffer}, int64_t{0}); }},
      {"the transform is a known part",
       [](Pieces& p) { return p.g.make(Op::Winograd, {p.buffer}, Ints{6, 4, 3}); }},
      {"the transform is a known part",
       [](Pieces& p) { return p.g.make(Op::Winograd, {p.buffer}, Ints{0, 4}); }},
      {"tiles are of F(2, 3)",
       [](Pieces& p) { return p.g.make(Op::Winograd, {p.buffer}, Ints{0, 3, 3}); }},
      {"tiles are of F(2, 3)",
       [](Pieces& p) { return p.g.make(Op::Winograd, {p.buffer}, Ints{0, 2, 5}); }},
      {"an index is an integer",
       [](Pieces& p) { return p.g.make(Op::Gather, {p.buffer, p.f32}, int64_t{0}); }},
      {"the argument is an axis",
       [](Pieces& p) { return p.g.make(Op::Gather, {p.buffer, p.i64}); }},
      {"the axis exists", [](Pieces& p) { return p.g.make(Op::Concat, {p.buffer}, int64_t{-1}); }},
      {"parts have one dtype",
       [](Pieces& p) { return p.g.make(Op::Concat, {p.buffer, p.i32}, int64_t{0}); }},
      {"what is assigned has the target's dtype",
       [](Pieces& p) { return p.g.make(Op::Assign, {p.buffer, p.i32}, int64_t{1}); }},
      {"a write has a version",
       [](Pieces& p) { return p.g.make(Op::Assign, {p.buffer, p.buffer}); }},
      {"a version is an older one after a write",
       [](Pieces& p) { return p.g.make(Op::After, {p.buffer}, int64_t{1}); }},
      {"a version is an older one after a write",
       [](Pieces& p) { return p.g.make(Op::After, {p.buffer, p.buffer}, int64_t{1}); }},
  };
  return planted;
}

const std::vector<Planted>& planted_in_kernels() {
  static const auto& planted = *new std::vector<Planted>{
      {"the op is legal in this stage", [](Pieces& p) { return p.buffer; }},
      {"the op is legal in this stage",
       [](Pieces& p) { return p.g.make(Op::Contiguous, {p.f32}); }},
      {"sources have values",
       [](Pieces& p) { return p.g.make(Op::Cast, {p.store}, {}, kFloat32); }},
      {"a parameter has a slot", [](Pieces& p) { return p.g.make(Op::Param, {}, {}, kFloat32); }},
      {"the slot exists", [](Pieces& p) { return p.g.make(Op::Param, {}, int64_t{-1}, kFloat32); }},
      {"indices and sizes are int64",
       [](Pieces& p) { return p.g.make(Op::Range, {p.i32}, int64_t{2}); }},
      {"a range has a number", [](Pieces& p) { return p.g.make(Op::Range, {p.i64}); }},
      {"a range's number is not negative",
       [](Pieces& p) { return p.g.make(Op::Range, {p.i64}, int64_t{-2}); }},
      {"range numbers are unique",
       [](Pieces& p) { return p.r0 + p.g.make(Op::Range, {p.g.integer(5)}, int64_t{0}); }},
      {"a load is from a parameter",
       [](Pieces& p) { return p.g.make(Op::Load, {p.f32, p.r0, p.r1}, p.view, kFloat32); }},
      {"a load is from a parameter",
       [](Pieces& p) { return p.g.make(Op::Load, {p.param, p.r0, p.r1}, p.view, kInt32); }},
      {"memory is looked at through a view",
       [](Pieces& p) { return p.g.make(Op::Load, {p.param, p.r0}, {}, kFloat32); }},
      {"there is an index for each axis",
       [](Pieces& p) { return p.g.make(Op::Load, {p.param, p.r0}, p.view, kFloat32); }},
      {"there is an index for each axis",
       [](Pieces& p) {
         return p.g.make(Op::Load, {p.param, p.r0}, ViewArg{{kSymbolicDim}, {1}, 0}, kFloat32);
       }},
      {"indices and sizes are int64",
       [](Pieces& p) { return p.g.make(Op::Load, {p.param, p.i32, p.r1}, p.view, kFloat32); }},
      {"a reduction has an op", [](Pieces& p) { return p.g.make(Op::Reduce, {p.load, p.r0}); }},
      {"the op reduces this dtype",
       [](Pieces& p) { return p.g.make(Op::Reduce, {p.load, p.r0}, ReduceArg{Op::Xor, {}}); }},
      {"the op reduces this dtype",
       [](Pieces& p) { return p.g.make(Op::Reduce, {p.load, p.r0}, ReduceArg{Op::Add, {0}}); }},
      {"at least one range is bound",
       [](Pieces& p) { return p.g.make(Op::Reduce, {p.load}, ReduceArg{Op::Add, {}}); }},
      {"what is bound is a range",
       [](Pieces& p) { return p.g.make(Op::Reduce, {p.load, p.i64}, ReduceArg{Op::Add, {}}); }},
      {"a range is bound once",
       [](Pieces& p) {
         return p.g.make(Op::Reduce, {p.load, p.r0, p.r0}, ReduceArg{Op::Add, {}});
       }},
      {"a stage has strides", [](Pieces& p) { return p.g.make(Op::Stage, {p.load, p.r0}); }},
      {"a stage has a stride for each range",
       [](Pieces& p) { return p.g.make(Op::Stage, {p.load, p.r0}, StageArg{{1, 1}}); }},
      {"a stage is indexed for each range",
       [](Pieces& p) {
         return p.g.make(Op::Index, {p.g.make(Op::Stage, {p.load, p.r0}, StageArg{{1}})});
       }},
      {"a stage is indexed for each range",
       [](Pieces& p) { return p.g.make(Op::Index, {p.load, p.r0}); }},
  };
  return planted;
}

TEST(Spec, LegalGraphsAreAccepted) {
  Pieces p;
  EXPECT_NO_THROW(verify_kernel({&p.store, 1}));
  EXPECT_NO_THROW(verify_decomposed({&p.store, 1}));
  const UOp sum = p.g.make(Op::Reduce, {p.load, p.r1}, ReduceArg{Op::Add, {}});
  const UOp stage = p.g.make(Op::Stage, {p.load, p.r1}, StageArg{{1}});
  const UOp whole = sum + p.g.make(Op::Index, {stage, p.r0 + 1});
  const UOp roots[] = {p.g.make(Op::Store, {p.out, whole, p.r0}, ViewArg{{4}, {1}, 0}),
                       p.g.make(Op::Check, {less(p.r0, p.n), p.r0}, int64_t{0})};
  EXPECT_NO_THROW(verify_kernel(roots));
  const UOp symbolic = p.g.make(Op::Expand, {p.g.make(Op::Reshape, {p.buffer}, Ints{24, 1}), p.n},
                                Ints{24, kSymbolicDim});
  const UOp reduced = p.g.make(Op::ReduceAxis, {symbolic}, ReduceArg{Op::Max, {0, 1}});
  EXPECT_NO_THROW(verify_tensor(where(less(reduced, reduced), reduced, reduced)));
}

TEST(Spec, EachLawOfTensorGraphsRejectsAPlantedGraph) {
  for (const auto* list : {&planted_in_both(), &planted_in_tensors()})
    for (const Planted& c : *list) {
      Pieces p;
      const UOp node = c.node(p);
      expect_law(c.law, [&] { verify_tensor(node); });
    }
}

// Below a store, so that the illegal node is not the root.
TEST(Spec, EachLawOfKernelsRejectsAPlantedGraph) {
  for (const auto* list : {&planted_in_both(), &planted_in_kernels()})
    for (const Planted& c : *list) {
      Pieces p;
      const UOp node = c.node(p);
      const UOp target = p.g.make(Op::Param, {}, int64_t{2}, node.dtype());
      const UOp root = p.g.make(Op::Store, {target, node}, ViewArg{});
      expect_law(c.law, [&] { verify_kernel({&root, 1}); });
    }
}

TEST(Spec, EachLawOfKernelRootsRejectsAPlantedGraph) {
  Pieces p;
  const auto verify = [](const UOp& root) { verify_kernel({&root, 1}); };
  expect_law("the roots of a kernel are stores and checks", [&] { verify(p.load); });
  const UOp wrong = p.g.make(Op::Param, {}, int64_t{1}, kFloat64);
  expect_law("a store is to a parameter",
             [&] { verify(p.g.make(Op::Store, {wrong, p.load, p.r0, p.r1}, p.view)); });
  expect_law("there is an index for each axis",
             [&] { verify(p.g.make(Op::Store, {p.out, p.load, p.r0}, p.view)); });
  expect_law("a check is a bool and a position",
             [&] { verify(p.g.make(Op::Check, {p.i32, p.r0}, int64_t{0})); });
  expect_law("a check has a number", [&] { verify(p.g.make(Op::Check, {p.yes, p.r0})); });
  expect_law("a check's number exists",
             [&] { verify(p.g.make(Op::Check, {p.yes, p.r0}, int64_t{-1})); });
}

TEST(Spec, WhatDecompositionsLeaveIsChecked) {
  const auto expect = [](const char* law, const std::function<UOp(Pieces&)>& value) {
    Pieces p;
    const UOp node = value(p);
    const UOp target = p.g.make(Op::Param, {}, int64_t{2}, node.dtype());
    const UOp root = p.g.make(Op::Store, {target, node}, ViewArg{});
    EXPECT_NO_THROW(verify_kernel({&root, 1})) << law;
    expect_law(law, [&] { verify_decomposed({&root, 1}); });
  };
  expect("transcendental ops are decomposed", [](Pieces& p) { return p.g.make(Op::Exp, {p.f32}); });
  expect("arithmetic is on 32 bits or more", [](Pieces& p) {
    const UOp small = p.g.constant_int(kInt8, 1);
    return p.g.make(Op::Add, {small, small});
  });
  expect("arithmetic is on 32 bits or more", [](Pieces& p) {
    const UOp small = p.g.constant(kFloat16, 1);
    return p.g.make(Op::Where, {p.g.constant_bits(kBool, 1), small, small});
  });
  expect("a cast to bool is a comparison",
         [](Pieces& p) { return p.g.make(Op::Cast, {p.f32}, {}, kBool); });
  expect("16-bit floats are made from float32",
         [](Pieces& p) { return p.g.make(Op::Cast, {p.f64}, {}, kFloat16); });
  expect("16-bit floats are converted to float32",
         [](Pieces& p) { return p.g.make(Op::Cast, {p.g.constant(kBFloat16, 1)}, {}, kInt32); });
}

TEST(Spec, TheErrorNamesThePassTheLawAndTheNode) {
  Pieces p;
  const UOp bad = p.g.make(Op::Add, {p.f32, p.f64});
  expect_law("after pass fuse: operand dtypes agree: float32 Add of (float32 Const, float64 Const)",
             [&] { verify_tensor(bad, "fuse"); });
}

}  // namespace
}  // namespace tiny

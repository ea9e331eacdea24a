// Every elementwise op on every dtype and lane count that a register holds, against the evaluator.
#include "tests/render/machine_runner.h"
#include "tests/support/failure.h"

namespace tiny::test {
namespace {

constexpr size_t kCount = 512;

// out[i] = op(in0[i], in1[i], ...) for i in 0..kCount, `lanes` at a time.
LinearProgram elementwise(Op op, std::vector<DType> in, DType out, int64_t lanes) {
  LinearProgram p;
  p.name = "E";
  for (DType d : in) p.params.push_back({d, true, false});
  p.params.push_back({out, false, true});
  std::vector<LinearId> bases;
  for (size_t i = 0; i <= in.size(); ++i)
    bases.push_back(p.add(Op::Param, kAddress, {}, static_cast<int64_t>(i)));
  const LinearId zero = p.add(Op::Const, kInt64, {}, 0), end = p.add(Op::Const, kInt64, {}, kCount);
  const LinearId i = p.add(Op::Loop, kInt64, {zero, end}, lanes);
  std::vector<LinearId> v;
  for (size_t s = 0; s < in.size(); ++s)
    v.push_back(p.add(Op::Load, in[s].with_lanes(lanes), {bases[s], i}, 0, lanes > 1 ? 1 : 0));
  const DType d = out.with_lanes(lanes);
  if (op == Op::Scale) {  // by what is not infinite
    for (const double limit : {-2000.0, 2000.0}) {
      const LinearId c = p.add(Op::Const, d, {}, static_cast<int64_t>(bits_of(out, limit)));
      v[1] = p.add(limit < 0 ? Op::Max : Op::Min, d, {v[1], c});
    }
  }
  const LinearId r = v.size() == 1   ? p.add(op, d, {v[0]})
                     : v.size() == 2 ? p.add(op, d, {v[0], v[1]})
                                     : p.add(op, d, {v[0], v[1], v[2]});
  p.add(Op::Store, kVoid, {bases.back(), i, r}, 0, lanes > 1 ? 1 : 0);
  p.add(Op::EndLoop, kVoid, {i});
  return p;
}

void check(Op op, const std::vector<DType>& in, DType out, bool exact_nan = false) {
  int64_t widest = out.bytes();
  for (DType d : in) widest = std::max(widest, d.bytes());
  std::mt19937_64 random(static_cast<uint64_t>(op) * 1000 + static_cast<uint64_t>(out.scalar));
  for (int64_t lanes : {1, 2, 4, 8, 16, 32, 64}) {
    SCOPED_TRACE(
        cat(info(op).name, " ", to_string(in[0]), " to ", to_string(out), " lanes ", lanes));
    KernelCall launch;
    for (DType d : in) launch.buffers.push_back(sample(d, kCount, random));
    launch.buffers.push_back(zeros(out, kCount));
    const LinearProgram p = elementwise(op, in, out, lanes);
    verify(p);
    const Outcome want = evaluate(p, launch);
    for (const Target& target : targets_here()) {
      if (lanes * widest > target.vector_bytes || (op == Op::Scale && !target.scales)) continue;
      SCOPED_TRACE(target.name);
      const std::string wrong = difference(p, want, execute(p, launch, target), exact_nan);
      ASSERT_EQ(wrong, "") << x86_listing(p, target);
    }
  }
}

const DType kInts[] = {kInt32, kInt64, kUInt32, kUInt64, kInt8, kInt16, kUInt8, kUInt16};
const DType kAll[] = {kBool,   kInt8,   kInt16,   kInt32,    kInt64,   kUInt8,  kUInt16,
                      kUInt32, kUInt64, kFloat16, kBFloat16, kFloat32, kFloat64};

TEST(X86Elementwise, FloatBinaryOpsMatch) {
  for (DType d : {kFloat32, kFloat64})
    for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Max, Op::Min})
      check(op, {d, d}, d, op == Op::Max || op == Op::Min);
}

TEST(X86Elementwise, FloatUnaryOpsMatch) {
  for (DType d : {kFloat32, kFloat64})
    for (Op op : {Op::Neg, Op::Abs, Op::Sqrt, Op::Floor, Op::Ceil, Op::Trunc, Op::Round})
      check(op, {d}, d, op == Op::Neg || op == Op::Abs);
}

TEST(X86Elementwise, ScaleMatchesWhereThereIsOne) {
  for (DType d : {kFloat32, kFloat64}) {
    check(Op::Scale, {d, d}, d);
    const LinearProgram p = elementwise(Op::Scale, {d, d}, d, 4);
    testing::expect_failure(testing::failure_of([&] { render_x86(p, avx2_target()); }),
                            Status::Unsupported);
  }
}

TEST(X86Elementwise, FmaIsFused) {
  for (DType d : {kFloat32, kFloat64}) check(Op::Fma, {d, d, d}, d);
}

TEST(X86Elementwise, IntegerOpsMatch) {
  for (DType d : kInts) {
    for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Xor, Op::Shl,
                  Op::Shr, Op::FloorDiv, Op::FloorMod, Op::TruncDiv, Op::TruncMod})
      check(op, {d, d}, d);
    for (Op op : {Op::Neg, Op::Abs, Op::Not}) check(op, {d}, d);
  }
}

TEST(X86Elementwise, ComparisonsMatch) {
  for (Op op : {Op::Less, Op::LessEqual, Op::Equal, Op::NotEqual}) {
    for (DType d : kInts) check(op, {d, d}, kBool);
    for (DType d : {kBool, kFloat32, kFloat64}) check(op, {d, d}, kBool);
  }
}

TEST(X86Elementwise, BoolLogicMatches) {
  for (Op op : {Op::And, Op::Or, Op::Xor, Op::Max, Op::Min, Op::Add, Op::Mul})
    check(op, {kBool, kBool}, kBool);
  check(Op::Not, {kBool}, kBool);
}

TEST(X86Elementwise, WherePicks) {
  for (DType d : kAll) check(Op::Where, {kBool, d, d}, d, true);
}

TEST(X86Elementwise, CastsMatch) {
  for (DType from : kAll)
    for (DType to : kAll) check(Op::Cast, {from}, to, to == kBool);
}

TEST(X86Elementwise, BitcastsKeepBits) {
  for (DType from : kAll)
    for (DType to : kAll)
      if (from.bits() == to.bits() && !from.is_bool() && !to.is_bool())
        check(Op::Bitcast, {from}, to, true);
}

}  // namespace
}  // namespace tiny::test

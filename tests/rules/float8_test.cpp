// Floats of 8 bits: their values beside their definition, and the rules beside those, bit for bit.
#include "rules/float8.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "ir/build.h"
#include "ir/fold.h"
#include "rules/decompositions.h"
#include "rules/narrow.h"

namespace tiny {
namespace {

const DType kFloat8s[] = {kFloat8E4M3FN, kFloat8E4M3FNUZ, kFloat8E5M2, kFloat8E5M2FNUZ};
constexpr double kInf = std::numeric_limits<double>::infinity();

// A function of inputs, as the decompositions leave it.
class Inside {
 public:
  Inside(Op op, DType operand, DType declared = kVoid) {
    for (int i = 0; i < info(op).arity; ++i) {
      const DType t = op == Op::Where && i == 0 ? kBool : operand;
      inputs_.push_back(graph_.make(Op::Buffer, {}, int64_t{i}, t));
      inside_.push_back(graph_.make(Op::Buffer, {}, int64_t{i}, dtype_in_kernel(t)));
    }
    const UOp whole = graph_.make(op, inputs_, {}, declared);
    after_ = decompose(whole);
    steps_ = std::make_unique<Evaluator>(after_, inside_);
    defined_ = std::make_unique<Evaluator>(whole, inputs_);
  }
  uint64_t operator()(const std::vector<uint64_t>& in) { return (*steps_)(in); }
  uint64_t defined(const std::vector<uint64_t>& in) { return (*defined_)(in); }
  const UOp& after() const { return after_; }

 private:
  Graph graph_;
  std::vector<UOp> inputs_, inside_;
  UOp after_;
  std::unique_ptr<Evaluator> steps_, defined_;
};

TEST(Float8, TheEndsOfEachFormat) {
  struct Ends {
    DType dtype;
    double greatest, least_normal, least;
  };
  for (const auto& [t, greatest, least_normal, least] :
       {Ends{kFloat8E4M3FN, 448, 0x1p-6, 0x1p-9}, Ends{kFloat8E4M3FNUZ, 240, 0x1p-7, 0x1p-10},
        Ends{kFloat8E5M2, 57344, 0x1p-14, 0x1p-16},
        Ends{kFloat8E5M2FNUZ, 57344, 0x1p-15, 0x1p-17}}) {
    EXPECT_EQ(double_of(t, 1), least) << to_string(t);
    EXPECT_EQ(double_of(t, uint64_t{1} << t.info().mantissa), least_normal) << to_string(t);
    for (const double beyond : {greatest, greatest * 1.01, 1e30}) {
      EXPECT_EQ(double_of(t, bits_of(t, beyond)), greatest) << to_string(t);
      EXPECT_EQ(double_of(t, bits_of(t, -beyond)), -greatest) << to_string(t);
    }
    EXPECT_TRUE(std::isnan(double_of(t, bits_of(t, std::nan("")))));
    const double endless = double_of(t, bits_of(t, -kInf));
    EXPECT_TRUE(t.has_infinities() ? endless == -kInf : std::isnan(endless)) << to_string(t);
    EXPECT_EQ(bits_of(t, -0.0), t.has_negative_zero() ? 0x80u : 0u) << to_string(t);
    EXPECT_EQ(double_of(t, highest_bits(t)), t.has_infinities() ? kInf : greatest);
    EXPECT_EQ(double_of(t, lowest_bits(t)), t.has_infinities() ? -kInf : -greatest);
  }
}

TEST(Float8, EveryValueIsItsOwnNearest) {
  for (const DType t : kFloat8s) {
    int numbers = 0;
    for (uint64_t bits = 0; bits < 256; ++bits) {
      const double value = double_of(t, bits);
      if (std::isnan(value)) continue;
      EXPECT_EQ(bits_of(t, value), bits) << to_string(t);
      ++numbers;
    }
    const int expected = t == kFloat8E4M3FN ? 254 : t == kFloat8E5M2 ? 250 : 255;
    EXPECT_EQ(numbers, expected) << to_string(t);
  }
}

TEST(Float8, NothingOfThemIsLeftInKernels) {
  for (const DType t : kFloat8s) {
    const Inside f(Op::Add, t);
    for (const UOp& u : topological(std::span(&f.after(), 1)))
      EXPECT_FALSE(u.dtype().is_float8()) << to_string(u.dtype());
  }
}

TEST(Float8, AllBecomeFloatsExactly) {
  for (const DType t : kFloat8s)
    for (const DType to : {kFloat32, kFloat16, kFloat64, kInt32}) {
      Inside f(Op::Cast, t, to);
      for (uint64_t bits = 0; bits < 256; ++bits) {
        const uint64_t found = f({bits}), wanted = f.defined({bits});
        if (std::isnan(double_of(t, bits)) && to.is_float())
          EXPECT_TRUE(std::isnan(double_of(to, found))) << to_string(t) << " " << bits;
        else
          EXPECT_EQ(found, wanted) << to_string(t) << " " << bits << " " << to_string(to);
      }
    }
}

TEST(Float8, FloatsBecomeTheNearest) {
  std::mt19937 rng(7);
  std::vector<float> values{0.0F, -0.0F, 1e-45F, 3e38F, static_cast<float>(kInf), std::nanf("")};
  for (int i = 0; i < 20000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng())));
  for (const DType t : kFloat8s) {
    std::vector<float> all = values;
    for (uint64_t bits = 0; bits + 1 < highest_bits(t); ++bits) {
      const double low = double_of(t, bits), high = double_of(t, bits + 1);
      for (const double at : {low, (low + high) / 2, high}) {  // halves, and both sides of them
        const auto between = static_cast<float>(at);
        all.insert(all.end(),
                   {between, std::nextafter(between, -1e9F), std::nextafter(between, 1e9F)});
      }
    }
    Inside f(Op::Cast, kFloat32, t);
    for (const float value : all)
      for (const float one : {value, -value}) {
        const uint64_t bits = std::bit_cast<uint32_t>(one);
        EXPECT_EQ(f({bits}), f.defined({bits})) << to_string(t) << " of " << one;
      }
  }
}

TEST(Float8, ArithmeticIsFloatsAndRoundedOnce) {
  std::mt19937 rng(3);
  for (const DType t : kFloat8s)
    for (const Op op : {Op::Neg, Op::Abs, Op::Add, Op::Mul, Op::Div, Op::Max, Op::Min, Op::Less,
                        Op::Equal, Op::Where, Op::Sqrt}) {
      Inside f(op, t);
      for (int i = 0; i < 2000; ++i) {
        std::vector<uint64_t> in;
        for (int k = 0; k < info(op).arity; ++k) in.push_back(rng() % 256);
        if (op == Op::Where) in[0] %= 2;
        const uint64_t found = f(in), wanted = f.defined(in);
        const bool is_nan = f.after().dtype() == kUInt8 && std::isnan(double_of(t, wanted));
        if (is_nan)
          EXPECT_TRUE(std::isnan(double_of(t, found))) << info(op).name << " " << to_string(t);
        else
          EXPECT_EQ(found, wanted) << info(op).name << " " << to_string(t) << " " << in[0];
      }
    }
}

}  // namespace
}  // namespace tiny

#include "rules/constant_power.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "ir/build.h"
#include "ir/fold.h"
#include "rules/decompositions.h"
#include "tests/rules/ulp_error.h"

namespace tiny {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// x^exponent of an opaque x, as a kernel computes it.
class Power {
 public:
  Power(DType t, double exponent) : t_(t), x_(graph_.make(Op::Buffer, {}, int64_t{0}, t)) {
    const UOp power = elementwise(Op::Pow, {x_, graph_.constant(t, exponent)});
    evaluator_ = std::make_unique<Evaluator>(decompose(power), std::span(&x_, 1));
  }
  double operator()(double x) {
    const uint64_t bits = bits_of(t_, x);
    return double_of(t_, (*evaluator_)({&bits, 1}));
  }
  size_t steps() const { return evaluator_->size(); }

 private:
  Graph graph_;
  DType t_;
  UOp x_;
  std::unique_ptr<Evaluator> evaluator_;
};

// Exponents with a form of their own, in float64 too, and such that only float32 has one for.
const double kShort[] = {0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 1.5};
const double kOfFloat32[] = {5, 6, 7, 10, 33, 64, -3, -4, -17, -64, 2.5, -1.5, 7.5, -63.5};

TEST(ConstantPower, IsAccurateOverTheWholeRange) {
  for (DType t : {kFloat32, kFloat64}) {
    std::vector<double> exponents(std::begin(kShort), std::end(kShort));
    exponents.insert(exponents.end(), std::begin(kOfFloat32), std::end(kOfFloat32));
    exponents.push_back(double_of(t, bits_of(t, 2.2)));
    for (double exponent : exponents) {
      Power power(t, exponent);
      std::mt19937_64 rng(3);
      double worst = 0, at = 0;
      for (int i = 0; i < 4000; ++i) {
        // Bases whose powers fill the range of the format, denormals included.
        const double range = t == kFloat32 ? 149 : 1074;
        const double spread = i % 4 ? range / std::max(1.0, std::fabs(exponent)) : 1;
        const double unit = static_cast<double>(rng() >> 11) * 0x1p-53;
        double x = double_of(t, bits_of(t, std::exp2((unit * 2 - 1) * spread)));
        if (i % 3 == 0) x = -x;
        const double error = ulp_error(
            t, power(x), powl(static_cast<long double>(x), static_cast<long double>(exponent)));
        if (error > worst) worst = error, at = x;
      }
      EXPECT_LE(worst, t == kFloat32 ? 2 : 3)
          << to_string(t) << " " << at << " to the power of " << exponent;
    }
  }
}

TEST(ConstantPower, HasTheSpecialCasesOfC) {
  for (DType t : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    std::vector<double> exponents(std::begin(kShort), std::end(kShort));
    exponents.insert(exponents.end(), std::begin(kOfFloat32), std::end(kOfFloat32));
    for (double exponent : exponents) {
      Power power(t, exponent);
      for (double x : {0.0, -0.0, 1.0, -1.0, kInf, -kInf, kNaN, -kNaN, -4.0}) {
        const double got = power(x), want = double_of(t, bits_of(t, std::pow(x, exponent)));
        EXPECT_TRUE(std::isnan(want) ? std::isnan(got)
                                     : got == want && std::signbit(got) == std::signbit(want))
            << to_string(t) << " pow(" << x << ", " << exponent << ") is " << got << ", not "
            << want;
      }
    }
  }
}

TEST(ConstantPower, TakesFewSteps) {
  for (DType t : {kFloat32, kFloat64}) {
    const size_t general = Power(t, 2.2).steps();
    // A root has three for -inf and -0.0 before it.
    for (double exponent : kShort) EXPECT_LE(Power(t, exponent).steps(), 5U) << exponent;
    for (double exponent : kOfFloat32) {
      if (t == kFloat32)
        EXPECT_LE(Power(t, exponent).steps() * 2, general) << exponent;
      else
        EXPECT_GT(Power(t, exponent).steps() * 4, general) << exponent;
    }
  }
}

UOp constant(const UOp& like, double value) {
  return like.graph().constant(like.dtype(), value);
}

// Repeated multiplication, wrapping.
uint64_t product_of(uint64_t x, int n) {
  uint64_t product = 1;
  for (int i = 0; i < n; ++i) product *= x;
  return product;
}

TEST(ConstantPower, OfIntegersWraps) {
  for (DType t : {kInt8, kUInt8, kInt16, kInt32, kUInt32, kInt64, kUInt64}) {
    for (int n : {0, 1, 2, 3, 5, 12, 31, 64}) {
      Graph graph;
      const UOp x = graph.make(Op::Buffer, {}, int64_t{0}, t);
      Evaluator power(constant_power(x, n, constant), std::span(&x, 1));
      for (int64_t v : {0, 1, 2, 3, 7, 11, 100, -1, -2, -7}) {
        if (v < 0 && t.is_unsigned()) continue;
        const auto mask = ~uint64_t{0} >> (64 - t.bits());
        const uint64_t bits = static_cast<uint64_t>(v) & mask;
        EXPECT_EQ(power({&bits, 1}) & mask, product_of(static_cast<uint64_t>(v), n) & mask)
            << to_string(t) << " " << v << " to the power of " << n;
      }
    }
  }
}

TEST(ConstantPower, OfIntegersToNegativePowersIsZeroButForOnes) {
  Graph graph;
  const UOp x = graph.make(Op::Buffer, {}, int64_t{0}, kInt32);
  for (int n : {-1, -2, -7}) {
    Evaluator power(constant_power(x, n, constant), std::span(&x, 1));
    for (int v : {0, 1, 2, -1, -3}) {
      const int want = v == 1 ? 1 : v == -1 ? (n % 2 ? -1 : 1) : 0;
      const uint64_t bits = bits_of(kInt32, v);
      EXPECT_EQ(double_of(kInt32, power({&bits, 1})), want) << v << " to the power of " << n;
    }
  }
}

}  // namespace
}  // namespace tiny

#include "rules/decompositions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "base/text.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "tests/rules/rule_fuzzer.h"
#include "tests/rules/ulp_error.h"

namespace tiny {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// A function of one or two opaque inputs, decomposed.
class Decomposed {
 public:
  Decomposed(Op op, DType t, DType declared = kVoid, int arity = 0) {
    if (arity == 0) arity = info(op).arity;
    for (int i = 0; i < arity; ++i)
      inputs_.push_back(
          graph_.make(Op::Buffer, {}, int64_t{i}, op == Op::Where && i == 0 ? kBool : t));
    before_ = graph_.make(op, inputs_, {}, declared);
    after_ = decompose(before_);
    evaluator_ = std::make_unique<Evaluator>(after_, inputs_);
    reference_ = std::make_unique<Evaluator>(before_, inputs_);
  }
  double operator()(double x) { return number({bits_of(inputs_[0].dtype(), x)}); }
  double operator()(double x, double y) {
    const DType t = inputs_[0].dtype();
    return number({bits_of(t, x), bits_of(t, y)});
  }
  uint64_t bits(std::vector<uint64_t> in) { return (*evaluator_)(in); }
  uint64_t expected_bits(std::vector<uint64_t> in) { return (*reference_)(in); }
  const UOp& after() const { return after_; }
  DType dtype() const { return after_.dtype(); }
  size_t steps() const { return evaluator_->size(); }

 private:
  double number(const std::vector<uint64_t>& in) { return double_of(dtype(), (*evaluator_)(in)); }

  Graph graph_;
  std::vector<UOp> inputs_;
  UOp before_, after_;
  std::unique_ptr<Evaluator> evaluator_, reference_;
};

struct Worst {
  double error = 0;
  double at = 0;
  double at_y = 0;
};

using Reference = long double (*)(long double);

// The greatest error over x spread evenly over the floats between two positive bounds, and their
// opposites.
Worst worst_between(Decomposed& f, DType t, Reference exact, double low, double high, int samples,
                    uint32_t seed) {
  std::mt19937_64 rng(seed);
  Worst worst;
  const uint64_t from = bits_of(t, low), to = bits_of(t, high);
  for (int i = 0; i < samples; ++i) {
    const uint64_t step = (to - from) / static_cast<uint64_t>(samples);
    const uint64_t bits = from + static_cast<uint64_t>(i) * step + (step ? rng() % step : 0);
    double x = double_of(t, bits);
    if (i % 2) x = -x;
    const double error = ulp_error(t, f(x), exact(static_cast<long double>(x)));
    if (error > worst.error) worst = {error, x, 0};
  }
  return worst;
}

struct Accuracy {
  Op op;
  DType t;
  Reference exact;
  double bound;
  double low, high;
};

// The least positive and the greatest number of a format.
constexpr double kTiny32 = 0x1p-149, kHuge32 = 0x1.fffffep127;
constexpr double kTiny64 = 0x1p-1074, kHuge64 = 0x1.fffffffffffffp1023;

const Accuracy kAccuracy[] = {
    {Op::Exp, kFloat32, expl, 1, kTiny32, kHuge32},   {Op::Exp, kFloat32, expl, 1, 0.01, 104},
    {Op::Log, kFloat32, logl, 1, kTiny32, kHuge32},   {Op::Log, kFloat32, logl, 1, 0.5, 2},
    {Op::Tanh, kFloat32, tanhl, 4, kTiny32, kHuge32}, {Op::Tanh, kFloat32, tanhl, 4, 0.01, 12},
    {Op::Erf, kFloat32, erfl, 2, kTiny32, kHuge32},   {Op::Erf, kFloat32, erfl, 2, 0.01, 5},
    {Op::Sin, kFloat32, sinl, 2, kTiny32, 1e5},       {Op::Sin, kFloat32, sinl, 2, 0.1, 100},
    {Op::Sin, kFloat32, sinl, 2, 1e5, 1e9},           {Op::Cos, kFloat32, cosl, 2, kTiny32, 1e5},
    {Op::Cos, kFloat32, cosl, 2, 0.1, 100},           {Op::Cos, kFloat32, cosl, 2, 1e5, 1e9},
    {Op::Sin, kFloat32, sinl, 2, 1e9, kHuge32},       {Op::Cos, kFloat32, cosl, 2, 1e9, kHuge32},
    {Op::Exp, kFloat64, expl, 1, kTiny64, kHuge64},   {Op::Exp, kFloat64, expl, 1, 0.01, 746},
    {Op::Log, kFloat64, logl, 1, kTiny64, kHuge64},   {Op::Log, kFloat64, logl, 1, 0.5, 2},
    {Op::Tanh, kFloat64, tanhl, 3, kTiny64, kHuge64}, {Op::Tanh, kFloat64, tanhl, 3, 0.01, 22},
    {Op::Erf, kFloat64, erfl, 3, kTiny64, kHuge64},   {Op::Erf, kFloat64, erfl, 3, 0.01, 7},
    {Op::Sin, kFloat64, sinl, 3, kTiny64, 1e5},       {Op::Sin, kFloat64, sinl, 3, 0.1, 100},
    {Op::Cos, kFloat64, cosl, 3, kTiny64, 1e5},       {Op::Cos, kFloat64, cosl, 3, 0.1, 100},
    {Op::Sin, kFloat64, sinl, 3, 1e5, kHuge64},       {Op::Cos, kFloat64, cosl, 3, 1e5, kHuge64},
};

TEST(Decompositions, AreAccurate) {
  for (const Accuracy& a : kAccuracy) {
    Decomposed f(a.op, a.t);
    const int samples = a.t == kFloat32 ? 60000 : 20000;
    const Worst w = worst_between(f, a.t, a.exact, a.low, a.high, samples, 1);
    std::printf("%-5s %-8s %10.3g .. %-10.3g %6.3f ulp at %.9g, %zu steps\n", info(a.op).symbol,
                to_string(a.t).c_str(), a.low, a.high, w.error, w.at, f.steps());
    EXPECT_LE(w.error, a.bound) << info(a.op).name << " of " << to_string(a.t) << " at "
                                << cat(w.at);
  }
}

void expect_value(Decomposed& f, double x, double want, const char* name) {
  const double got = f(x);
  EXPECT_TRUE(std::isnan(want) ? std::isnan(got)
                               : got == want && std::signbit(got) == std::signbit(want))
      << name << "(" << x << ") is " << got << ", not " << want;
}

TEST(Decompositions, OfSpecialValuesAreAsInC) {
  for (DType t : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    for (Op op : {Op::Exp, Op::Log, Op::Tanh, Op::Erf, Op::Sin, Op::Cos}) {
      Decomposed f(op, t);
      const double least = t == kFloat64    ? kTiny64
                           : t == kFloat16  ? 0x1p-24
                           : t == kBFloat16 ? 0x1p-133
                                            : kTiny32;
      for (double x : {0.0, -0.0, kInf, -kInf, kNaN, 1000.0, -1000.0, least, -least}) {
        if (std::fabs(x) == 1000 && (op == Op::Sin || op == Op::Cos || op == Op::Log)) continue;
        const uint64_t bits = bits_of(t, x);
        const uint64_t want = f.expected_bits({bits});
        expect_value(f, x, double_of(t, want), info(op).name);
      }
    }
  }
}

struct PowCase {
  double x, y, want;
};
const PowCase kPow[] = {
    {0.0, 3, 0},         {-0.0, 3, -0.0},    {-0.0, 2, 0},       {0.0, -1, kInf},
    {-0.0, -1, -kInf},   {-0.0, -2, kInf},   {0.0, -0.5, kInf},  {0.0, 0, 1},
    {kNaN, 0, 1},        {1, kNaN, 1},       {1, kInf, 1},       {-1, kInf, 1},
    {-1, -kInf, 1},      {-1, kNaN, kNaN},   {2, kNaN, kNaN},    {kNaN, 2, kNaN},
    {-8, 1.0 / 3, kNaN}, {-8, 3, -512},      {-8, 2, 64},        {-2, -1, -0.5},
    {kInf, 2, kInf},     {kInf, -1, 0},      {-kInf, 3, -kInf},  {-kInf, 2, kInf},
    {-kInf, -3, -0.0},   {-kInf, 0.5, kInf}, {0.5, kInf, 0},     {0.5, -kInf, kInf},
    {2, kInf, kInf},     {2, -kInf, 0},      {-2, kInf, kInf},   {-0.5, kInf, 0},
    {kInf, 0, 1},        {2, 10, 1024},      {10, 2, 100},       {4, 0.5, 2},
    {1e30, 40, kInf},    {1e-30, 40, 0},     {-1e30, 41, -kInf}, {-1e-30, 41, -0.0},
    {0.0, kInf, 0},      {0.0, -kInf, kInf}, {kInf, kInf, kInf}, {kInf, -kInf, 0},
};

TEST(Decompositions, PowHasTheSpecialCasesOfC) {
  for (DType t : {kFloat32, kFloat64}) {
    Decomposed f(Op::Pow, t);
    for (const PowCase& c : kPow) {
      const double want = double_of(t, bits_of(t, c.want)), got = f(c.x, c.y);
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got)
                                   : got == want && std::signbit(got) == std::signbit(want))
          << to_string(t) << " pow(" << c.x << ", " << c.y << ") is " << got << ", not " << want;
    }
  }
}

TEST(Decompositions, PowIsAccurate) {
  for (DType t : {kFloat32, kFloat64}) {
    Decomposed f(Op::Pow, t);
    std::mt19937_64 rng(5);
    std::uniform_real_distribution<double> unit(0, 1);
    Worst worst;
    const double digits = t == kFloat32 ? 127 : 1023;
    for (int i = 0; i < 60000; ++i) {
      // Results over the whole range of exponents, bases near 1 and far, some y integers.
      const double spread = i % 3 ? digits : 2;
      double x = std::exp2((unit(rng) * 2 - 1) * spread * 0.99);
      if (i % 5 == 0) x = 1 + (unit(rng) - 0.5) * 0.01;
      double y = (unit(rng) * 2 - 1) * digits / std::max(1e-3, std::fabs(std::log2(x)));
      if (i % 4 == 0) y = std::round(y);
      if (i % 8 == 0) x = -x;
      x = double_of(t, bits_of(t, x));
      y = double_of(t, bits_of(t, y));
      if (!std::isfinite(x) || !std::isfinite(y) || x == 0) continue;
      const double error =
          ulp_error(t, f(x, y), powl(static_cast<long double>(x), static_cast<long double>(y)));
      if (error > worst.error) worst = {error, x, y};
    }
    std::printf("pow   %-8s %6.3f ulp at %.17g, %.17g, %zu steps\n", to_string(t).c_str(),
                worst.error, worst.at, worst.at_y, f.steps());
    EXPECT_LE(worst.error, t == kFloat32 ? 2 : 3);
  }
}

// What may be left in a kernel that is decomposed.
void expect_legal(const UOp& root) {
  for (const UOp& u : topological({&root, 1})) {
    if (!has(u.op(), kElementwise)) continue;
    EXPECT_FALSE(has(u.op(), kTranscendental)) << expression_text(root);
    const DType operand = u.src().back().dtype();
    const bool moves = u.op() == Op::Cast || u.op() == Op::Bitcast;
    if (moves) {
      const auto is_half = [](DType t) { return t.is_float() && t.bits() == 16; };
      if (u.op() == Op::Cast && is_half(u.dtype())) {
        EXPECT_EQ(operand, kFloat32);
      }
      if (u.op() == Op::Cast && is_half(operand)) {
        EXPECT_EQ(u.dtype(), kFloat32);
      }
      EXPECT_FALSE(u.dtype().is_bool());
      continue;
    }
    const bool is_choice = u.op() == Op::Where && !operand.is_float();
    EXPECT_TRUE(operand.is_bool() || operand.bits() >= 32 || is_choice)
        << info(u.op()).name << " of " << to_string(operand);
  }
}

uint64_t random_bits(DType t, std::mt19937_64& rng) {
  if (t.is_bool()) return rng() % 2;
  if (t.is_float() && rng() % 3) {
    static const double kSome[] = {0.0,  -0.0, 1,    -1,    2,    0.5, kInf,   -kInf,
                                   kNaN, 300,  -300, 70000, 1e-5, 3.7, -128.6, 1e30};
    return bits_of(t, kSome[rng() % std::size(kSome)]);
  }
  if (t.is_int() && rng() % 3) return bits_of_int(t, static_cast<int64_t>(rng() % 24) - 8);
  return t.bits() == 64 ? rng() : rng() & ((uint64_t{1} << t.bits()) - 1);
}

constexpr DType kEveryDtype[] = {kBool,   kInt8,   kInt16,   kInt32,    kInt64,   kUInt8,  kUInt16,
                                 kUInt32, kUInt64, kFloat16, kBFloat16, kFloat32, kFloat64};

bool takes(Op op, DType t) {
  const OpInfo& o = info(op);
  if (!(o.traits & (kFloatOperands | kIntOperands | kLogicOperands))) return true;
  return (o.traits & kFloatOperands && t.is_float()) || (o.traits & kIntOperands && t.is_int()) ||
         (o.traits & kLogicOperands && t.is_bool());
}

void expect_same_bits(Decomposed& f, std::vector<uint64_t> in, const std::string& what) {
  const uint64_t want = f.expected_bits(in), got = f.bits(in);
  if (want == got) return;
  const DType t = f.dtype();
  if (t.is_float() && std::isnan(double_of(t, want)) && std::isnan(double_of(t, got))) return;
  ADD_FAILURE() << what << " is " << double_of(t, got) << ", not " << double_of(t, want) << " at "
                << in[0] << " " << in.back();
}

// Rounded quotients by constants have no division, and every bit of one's result but a zero's sign.
TEST(Decompositions, RoundedQuotientsByConstantsAreThoseOfDivisions) {
  std::mt19937_64 rng(11);
  std::vector<double> divisors{1,     3,          0.0193651f,    255, -0.7f,
                               1e-30, 1.9999999f, 0x1.fffffep-7, 1e30};
  for (int i = 0; i < 30; ++i)
    divisors.push_back(double_of(kFloat32, (rng() & 0x7fffff) | (100 + rng() % 50) << 23));
  for (const double divisor : divisors) {
    Graph graph;
    const UOp x = graph.make(Op::Buffer, {}, int64_t{0}, kFloat32);
    const UOp before =
        elementwise(Op::Round, {elementwise(Op::Div, {x, graph.constant(kFloat32, divisor)})});
    const UOp after = decompose(before);
    for (const UOp& u : topological({&after, 1})) EXPECT_NE(u.op(), Op::Div) << divisor;
    const std::vector<UOp> inputs{x};
    Evaluator evaluator(after, inputs), reference(before, inputs);
    const auto same = [&](uint64_t bits) {
      const double is = double_of(kFloat32, evaluator(std::vector{bits}));
      const double wanted = double_of(kFloat32, reference(std::vector{bits}));
      EXPECT_TRUE(is == wanted || (std::isnan(is) && std::isnan(wanted)))
          << double_of(kFloat32, bits) << " / " << divisor << ": " << is << ", not " << wanted;
    };
    for (const double special : {0.0, -0.0, kInf, -kInf, kNaN, 1e-45, 3.4e38, -3.4e38})
      same(bits_of(kFloat32, special));
    for (int i = 0; i < 3000; ++i) same(rng() & 0xffffffff);
    // Halves, and their neighbours.
    for (int i = 0; i < 3000; ++i) {
      const double half = (static_cast<double>(rng() % 1024) - 511.5) * divisor;
      same((bits_of(kFloat32, half) + rng() % 3 - 1) & 0xffffffff);
    }
  }
}

// What is clamped to a type of bytes passes through none on its way to an integer.
TEST(Decompositions, ClampedFloatsAreIntegersWithoutBytes) {
  std::mt19937_64 rng(12);
  struct Case {
    DType bytes;
    double low, high;
    bool fits;
  };
  for (const Case& c :
       {Case{kUInt8, 0, 255, true}, Case{kInt8, -128, 127, true}, Case{kUInt8, 3, 17.5, true},
        Case{kUInt8, -1, 255, false}, Case{kInt8, -128, 128, false}, Case{kUInt8, 0, 1000, false}})
    for (const DType to : {kInt32, c.bytes}) {
      Graph graph;
      const UOp x = graph.make(Op::Buffer, {}, int64_t{0}, kFloat32);
      const UOp clamped =
          elementwise(Op::Min, {elementwise(Op::Max, {x, graph.constant(kFloat32, c.low)}),
                                graph.constant(kFloat32, c.high)});
      const UOp before = cast(cast(clamped, c.bytes), to);
      const UOp after = decompose(before);
      const auto is_byte = [&](const UOp& u) { return u.dtype() == c.bytes; };
      if (to == kInt32) {
        EXPECT_EQ(std::ranges::none_of(topological({&after, 1}), is_byte), c.fits);
      }
      const std::vector<UOp> inputs{x};
      Evaluator evaluator(after, inputs), reference(before, inputs);
      std::vector<uint64_t> samples;
      for (const double special : {0.0, -0.0, kInf, -kInf, kNaN, 0.5, -0.5, 254.9, 255.5, -128.5})
        samples.push_back(bits_of(kFloat32, special));
      for (int i = 0; i < 2000; ++i) samples.push_back(rng() & 0xffffffff);
      for (int i = 0; i < 2000; ++i)
        samples.push_back(bits_of(kFloat32, static_cast<double>(rng() % 6000) / 10 - 300));
      for (const uint64_t bits : samples)
        EXPECT_EQ(evaluator(std::vector{bits}), reference(std::vector{bits}))
            << double_of(kFloat32, bits) << " in " << c.low << " .. " << c.high;
    }
}

// What is quantised and widened again is no integer on the way, and asks for no NaN or infinity
// where there is none.
TEST(Decompositions, QuantisedFloatsStayFloats) {
  std::mt19937_64 rng(13);
  for (const int offset : {0, -130, 7}) {
    for (const bool is_of_bytes : {false, true}) {
      Graph graph;
      const auto number = [&](double value) { return graph.constant(kFloat32, value); };
      const UOp x = graph.make(Op::Buffer, {}, int64_t{0}, is_of_bytes ? kUInt8 : kFloat32);
      const UOp scaled = is_of_bytes ? cast(x, kFloat32) * number(0.0371) : x;
      const UOp shared = elementwise(Op::Exp, {neg(scaled)}) + number(1);
      const UOp real = elementwise(Op::Div, {scaled, is_of_bytes ? shared : number(1.5)});
      const UOp whole = elementwise(Op::Round, {elementwise(Op::Div, {real, number(0.0193)})});
      const UOp clamped = elementwise(
          Op::Min, {elementwise(Op::Max, {whole + number(130), number(0)}), number(255)});
      const UOp integer = cast(cast(clamped, kUInt8), kInt32);
      const UOp before =
          cast(offset == 0 ? integer : integer + graph.constant_int(kInt32, offset), kFloat32);
      const UOp after = decompose(before);
      const auto order = topological({&after, 1});
      EXPECT_TRUE(std::ranges::none_of(
          order, [](const UOp& u) { return u.op() == Op::Cast && u.src(0).dtype().is_float(); }));
      const auto is_equal = [](const UOp& u) { return u.op() == Op::Equal; };
      EXPECT_EQ(std::ranges::none_of(order, is_equal), is_of_bytes);
      std::vector<uint64_t> samples;
      if (is_of_bytes) {
        for (uint64_t byte = 0; byte < 256; ++byte) samples.push_back(byte);
      } else {
        for (const double special : {0.0, -0.0, kInf, -kInf, kNaN, -0.001, 1e38, -1e38, 1e-40})
          samples.push_back(bits_of(kFloat32, special));
        for (int i = 0; i < 2000; ++i) samples.push_back(rng() & 0xffffffff);
        for (int i = 0; i < 2000; ++i)
          samples.push_back(bits_of(kFloat32, static_cast<double>(rng() % 1000) / 100 - 5));
      }
      const std::vector<UOp> inputs{x};
      Evaluator evaluator(after, inputs), reference(before, inputs);
      for (const uint64_t bits : samples)
        EXPECT_EQ(evaluator(std::vector{bits}), reference(std::vector{bits})) << bits;
    }
  }
}

TEST(Decompositions, EveryOpOfEveryDtypeKeepsItsBits) {
  int ops = 0;
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!has(op, kElementwise) || !legal_in(op, kKernelStage)) continue;
    if (op == Op::Cast || op == Op::Bitcast) continue;
    for (DType t : kEveryDtype) {
      if (!takes(op, t)) continue;
      Decomposed f(op, t);
      expect_legal(f.after());
      if (has(op, kTranscendental)) continue;  // for their values see above
      std::mt19937_64 rng(i);
      for (int trial = 0; trial < 300; ++trial) {
        std::vector<uint64_t> in;
        for (int s = 0; s < info(op).arity; ++s)
          in.push_back(op == Op::Where && s == 0 ? rng() % 2 : random_bits(t, rng));
        expect_same_bits(f, in, cat(info(op).name, " of ", to_string(t)));
      }
      ++ops;
    }
  }
  EXPECT_GT(ops, 200);
}

TEST(Decompositions, EveryCastKeepsItsBits) {
  for (DType from : kEveryDtype)
    for (DType to : kEveryDtype) {
      Decomposed f(Op::Cast, from, to, 1);
      expect_legal(f.after());
      std::mt19937_64 rng(7);
      for (int trial = 0; trial < 300; ++trial)
        expect_same_bits(f, {random_bits(from, rng)}, cat(to_string(from), " to ", to_string(to)));
    }
}

TEST(Decompositions, OfNarrowFloatsRoundOnceFromFloat32) {
  for (Op op : {Op::Exp, Op::Log, Op::Tanh, Op::Erf, Op::Sin, Op::Cos})
    for (DType t : {kFloat16, kBFloat16}) {
      Decomposed f(op, t), wide(op, kFloat32);
      std::mt19937_64 rng(3);
      for (int trial = 0; trial < 2000; ++trial) {
        const double x = double_of(t, rng() & 0xFFFF);
        const double want = double_of(t, bits_of(t, wide(x))), got = f(x);
        EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
            << info(op).name << " " << x;
      }
    }
}

TEST(Decompositions, ReductionsOfNarrowTypesAccumulateWide) {
  Graph g;
  const UOp r = g.make(Op::Range, {g.integer(8)}, int64_t{0});
  const UOp half = g.make(Op::Buffer, {}, int64_t{0}, kFloat16);
  const UOp sum = decompose(g.make(Op::Reduce, {half, r}, ReduceArg{Op::Add, {}}));
  ASSERT_EQ(sum.op(), Op::Cast);
  EXPECT_EQ(sum.dtype(), kFloat16);
  EXPECT_EQ(sum.src(0).op(), Op::Reduce);
  EXPECT_EQ(sum.src(0).dtype(), kFloat32);
  EXPECT_EQ(sum.src(0).src(1), r);
}

TEST(Decompositions, LeaveIndicesAndRangesAlone) {
  Graph g;
  const UOp r = g.make(Op::Range, {g.make(Op::Add, {g.integer(4), g.integer(4)})}, int64_t{0});
  const UOp index = floor_mod(r * 3 + 1, 7);
  EXPECT_EQ(decompose(index), index);
}

TEST(Decompositions, RootsShareWhatTheyHaveInCommon) {
  Graph g;
  const UOp x = g.make(Op::Buffer, {}, int64_t{0}, kFloat32);
  const UOp roots[] = {g.make(Op::Sin, {x}), g.make(Op::Cos, {x})};
  const std::vector<UOp> both = decompose(roots);
  const size_t one = topological({&both[0], 1}).size();
  EXPECT_LT(topological(both).size(), one + 20);
}

// A word's value times `scale`: what is known not to be large takes fewer steps.
TEST(Decompositions, OfNearArgumentsAreAsAccurate) {
  for (const Op op : {Op::Sin, Op::Cos}) {
    for (const double scale : {6.2831853 / 65536, 1.0, 15.5}) {
      Graph g;
      const UOp word = g.make(Op::Buffer, {}, int64_t{0}, kInt16);
      const UOp x = cast(word, kFloat32) * g.constant(kFloat32, scale);
      const UOp steps = decompose(g.make(op, {x}));
      const UOp words[] = {word};
      Evaluator argument(x, words), value(steps, words);
      double worst = 0;
      for (uint64_t bits = 0; bits < 65536; ++bits) {
        const std::vector<uint64_t> in{bits};
        const double at = double_of(kFloat32, argument(in));
        const double got = double_of(kFloat32, value(in));
        worst = std::max(worst, ulp_error(kFloat32, got, op == Op::Sin ? sinl(at) : cosl(at)));
      }
      EXPECT_LE(worst, 0.55) << info(op).name << " of " << scale;
      EXPECT_LT(3 * value.size(), 2 * Decomposed(op, kFloat32).steps());
    }
  }
}

TEST(Decompositions, BoolRulesHold) {
  uint32_t seed = 1;
  for (const Rule& r : bool_rules().rules()) {
    const FuzzResult result = RuleFuzzer(r, false, seed++).run(50, 5000);
    EXPECT_TRUE(result.failure.empty()) << result.failure;
    EXPECT_GE(result.hits, 20) << to_string(r);
  }
}

}  // namespace
}  // namespace tiny

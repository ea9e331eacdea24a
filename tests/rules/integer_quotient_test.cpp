#include "rules/integer_quotient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "ir/build.h"
#include "tests/rules/rule_fuzzer.h"

namespace tiny {
namespace {

constexpr Op kDivisions[] = {Op::FloorDiv, Op::FloorMod, Op::TruncDiv, Op::TruncMod};
constexpr int32_t kMin = INT32_MIN, kMax = INT32_MAX;
constexpr int32_t kNumbers[] = {0,    1,        -1,       2,          -2,   3,     -3,     4,
                                -4,   5,        -5,       7,          -7,   8,     10,     -10,
                                16,   -16,      63,       64,         -64,  65,    100,    1 << 30,
                                kMax, kMax - 1, kMin + 1, -(1 << 30), kMin, 46341, -46341, 65537};

bool divides(const UOp& root) {
  return std::ranges::any_of(topological({&root, 1}), [](const UOp& u) {
    return u.dtype() == kInt32 && std::ranges::count(kDivisions, u.op()) > 0;
  });
}

uint64_t bits_of_int(int32_t number) {
  return bits_of(kInt32, number);
}

// Random numbers of all sizes beside those where something ends.
std::vector<int32_t> numbers(std::mt19937_64& random) {
  std::vector<int32_t> all(std::begin(kNumbers), std::end(kNumbers));
  for (int i = 0; i < 200; ++i)
    all.push_back(static_cast<int32_t>(static_cast<uint32_t>(random())) >> (random() % 31));
  return all;
}

TEST(IntegerQuotient, OfAnyDivisorIsWhatTheOpSays) {
  std::mt19937_64 random(1);
  const std::vector<int32_t> all = numbers(random);
  for (const Op op : kDivisions) {
    Graph g;
    const UOp a = g.make(Op::Buffer, {}, int64_t{0}, kInt32);
    const UOp b = g.make(Op::Buffer, {}, int64_t{1}, kInt32);
    const UOp inputs[] = {a, b};
    const UOp before = elementwise(op, {a, b});
    const UOp after = divide_in_floats({&before, 1})[0];
    EXPECT_FALSE(divides(after));
    Evaluator is(after, inputs), expected(before, inputs);
    for (const int32_t x : all)
      for (const int32_t y : all) {
        const std::vector<uint64_t> in{bits_of_int(x), bits_of_int(y)};
        ASSERT_EQ(is(in), expected(in)) << info(op).name << " of " << x << " and " << y;
      }
  }
}

TEST(IntegerQuotient, OfAKnownDivisorIsWhatTheOpSays) {
  std::mt19937_64 random(2);
  const std::vector<int32_t> all = numbers(random);
  for (const Op op : kDivisions)
    for (const int32_t divisor : all) {
      Graph g;
      const UOp a = g.make(Op::Buffer, {}, int64_t{0}, kInt32);
      const UOp before = g.make(op, {a, g.constant(kInt32, divisor)});
      const UOp after = divide_in_floats({&before, 1})[0];
      EXPECT_FALSE(divides(after));
      Evaluator is(after, {&a, 1}), expected(before, {&a, 1});
      for (const int32_t x : all) {
        const std::vector<uint64_t> in{bits_of_int(x)};
        ASSERT_EQ(is(in), expected(in)) << info(op).name << " of " << x << " and " << divisor;
      }
    }
}

TEST(IntegerQuotient, OfIndicesStays) {
  Graph g;
  const UOp i = g.make(Op::Range, {g.integer(100)}, int64_t{0});
  const UOp index = elementwise(Op::FloorDiv, {i, g.integer(7)});
  EXPECT_EQ(divide_in_floats({&index, 1})[0], index);
}

}  // namespace
}  // namespace tiny

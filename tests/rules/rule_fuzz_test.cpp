#include <gtest/gtest.h>

#include "rules/identities.h"
#include "tests/rules/rule_fuzzer.h"

namespace tiny {
namespace {

using namespace pattern_words;

constexpr int kHits = 300;      // of each rule
constexpr int kTrials = 80000;  // to get them
constexpr int kHitFloor = 40;   // a rule that applies less often is not tested

void expect_true(const RuleTable& table) {
  uint32_t seed = 1;
  for (const Rule& r : table.rules()) {
    const FuzzResult result = RuleFuzzer(r, table.index_only, seed++).run(kHits, kTrials);
    EXPECT_TRUE(result.failure.empty()) << result.failure;
    EXPECT_GE(result.hits, kHitFloor)
        << to_string(r) << " applied in " << result.hits << " of " << result.trials << " trials";
  }
}

TEST(RuleFuzz, IdentitiesHoldForEveryDtype) {
  expect_true(identities());
}
TEST(RuleFuzz, IntegerRulesHoldWithWrapping) {
  expect_true(integer_rules());
}
TEST(RuleFuzz, IndexRulesHold) {
  expect_true(index_rules());
}

// clang-format off
constexpr WrittenRule kFalse[] = {
    rule(x * 0,                         0),                             // nan, inf
    rule(f + 0.0,                       f),                             // -0.0
    rule(f + (-f),                      0),                             // inf
    rule(f == f,                        1),                             // nan
    rule(!(f < h),                      h <= f),                        // nan
    rule((f + c0) + c1,                 f + (c0 + c1)),                 // rounding
    rule(max(f, min(f, h)),             f),                             // nan
    rule(max(f, h),                     where(h < f, f, h)),            // nan
    rule(abs(-i),                       abs(i)),                        // unsigned
    rule((i + c0) < c1,                 i < c1 + (-c0)),                // wraps
    rule((i / c0) * c0,                 i),
    rule((i * c0) / c0,                 i,          c0 != 0),           // wraps
    rule((i << c0) >> c0,               i),
    rule(i / i,                         1),                             // 0 // 0
    rule(where(b, x, y),                where(!b, x, y)),
};
constexpr WrittenRule kFalseOfIndices[] = {
    rule((i % c0) % c1,                 i % c1,                 c0 > 0 && c1 > 0),
    rule((i / c0) / c1,                 i / (c0 * c1),          c0 * c1 > 0),       // both negative
    rule(i / c0,                        0,                      lo(i) >= 0 && hi(i) <= c0),
    rule(i % c0,                        i,                      lo(i) >= -1 && hi(i) < c0),
    rule((i % c0) / c1,                 (i / c1) % (c0 / c1),   c0 > 0 && c1 > 0),
    rule((i + j) / c0,                  i / c0 + j / c0,        c0 > 0),
    rule(trunc_div(i, j),               i / j,                  lo(j) > 0),
    rule(min(i, j),                     i,                      hi(i) <= hi(j)),
    rule(i < j,                         i <= j),
};
// clang-format on

TEST(RuleFuzz, FalseRulesAreRejected) {
  for (const Rule& r : rule_table<kFalse>("false").rules())
    EXPECT_FALSE(RuleFuzzer(r, false, 7).run(kHits, kTrials).failure.empty()) << to_string(r);
  for (const Rule& r : rule_table<kFalseOfIndices>("false of indices").rules())
    EXPECT_FALSE(RuleFuzzer(r, true, 7).run(kHits, kTrials).failure.empty()) << to_string(r);
}

}  // namespace
}  // namespace tiny

// What things take: the level of memory that a value is read from, and the processors' own data.
#include "cost/machine.h"

#include <gtest/gtest.h>

#include "cost/processors.h"

namespace tiny {
namespace {

TEST(Machine, AValueIsReadFromTheLevelThatHoldsIt) {
  const Machine machine = avx512_machine();
  const auto l2 = static_cast<double>(machine.l2_bytes), l3 = static_cast<double>(machine.l3_bytes);
  EXPECT_EQ(bandwidth_of(l2 / 2, machine), machine.l2_bandwidth);
  EXPECT_EQ(bandwidth_of(l2 / 2 + 1, machine), machine.l3_bandwidth);
  EXPECT_EQ(bandwidth_of(l2, machine, 1), machine.l2_bandwidth) << "all of the cache is its own";
  EXPECT_EQ(bandwidth_of(l3 / 2, machine), machine.l3_bandwidth);
  EXPECT_EQ(bandwidth_of(l3, machine), machine.memory_bandwidth);
}

TEST(Machine, FartherLevelsOfEveryProcessorAreSlower) {
  for (const Processor& p : known_processors()) {
    SCOPED_TRACE(p.name);
    EXPECT_GT(p.rates.l2_bandwidth, p.rates.l3_bandwidth);
    EXPECT_GT(p.rates.l3_bandwidth, p.rates.memory_bandwidth);
    EXPECT_LT(p.l1_bytes, p.l2_bytes);
    EXPECT_LT(p.l2_bytes, p.l3_bytes);
    EXPECT_GT(p.rates.launch_seconds, 0);
  }
}

TEST(Machine, NarrowVectorsMultiplyLess) {
  const Processor& zen5 = *find_processor("zen5");
  EXPECT_EQ(rates_of(zen5, avx512_target()).fma_rate, zen5.rates.fma_rate);
  EXPECT_EQ(rates_of(zen5, avx2_target()).fma_rate, zen5.fma_rate_avx2);
}

TEST(Machine, AnImitatedProcessorLeavesOnlyTheProductsThatBothHave) {
  Machine machine = avx512_machine();
  machine.dots = kAllDots;
  imitate(*find_processor("skylake"), machine);
  EXPECT_EQ(machine.dots, 0);
  EXPECT_EQ(machine.l1_bytes, find_processor("skylake")->l1_bytes);
  EXPECT_EQ(machine.vector_bytes, 64) << "its instructions stay";
}

}  // namespace
}  // namespace tiny

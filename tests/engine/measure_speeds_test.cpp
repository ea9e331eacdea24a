// What an unknown processor is measured to do, and what is assumed of known ones.
#include "engine/measure_speeds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cost/processors.h"
#include "runtime/cpu/cpuid.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/temporary_folder.h"

namespace tiny {
namespace {

namespace fs = std::filesystem;

class MeasureSpeeds : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cpu_facts().isa == CpuIsa::None) GTEST_SKIP() << "this processor runs no machine code";
  }

  Flags flags(const std::string& processor) const {
    Flags f = testing::flags_for("cpu");
    f.processor = processor;
    f.cache_dir = folder_.string();
    return f;
  }
  std::vector<fs::path> files() const { return folder_.files(".tiny"); }

  testing::TemporaryFolder folder_;
};

void expect_same_speeds(const Rates& a, const Rates& b) {
  EXPECT_EQ(a.l2_bandwidth, b.l2_bandwidth);
  EXPECT_EQ(a.l3_bandwidth, b.l3_bandwidth);
  EXPECT_EQ(a.memory_bandwidth, b.memory_bandwidth);
  EXPECT_EQ(a.fma_rate, b.fma_rate);
  EXPECT_EQ(a.bypass_bytes, b.bypass_bytes);
}

// Bounds that hold on anything with AVX2, beside whatever else runs.
TEST_F(MeasureSpeeds, MeasuresWhatAProcessorMayDo) {
  const auto backend = make_backend(flags("measure"));
  const Machine& t = backend->machine();
  EXPECT_GT(t.fma_rate, 1e9);
  EXPECT_LT(t.fma_rate, 1e12);
  EXPECT_GT(t.memory_bandwidth, 2e8);
  EXPECT_LT(t.memory_bandwidth, 1e12);
  EXPECT_GT(t.l2_bandwidth, 1e9);
  EXPECT_GT(t.l3_bandwidth, 5e8);
  EXPECT_LT(t.l2_bandwidth, 1e13);
  const int64_t l3 = t.l3_bytes;
  EXPECT_TRUE(t.bypass_bytes == 0 || t.bypass_bytes == l3 / 2 || t.bypass_bytes == l3);
  EXPECT_EQ(t.cores, make_backend(flags("auto"))->machine().cores);
}

// What is not clear is what neighbours make of it: the processor's own data stand.
TEST_F(MeasureSpeeds, StoresPassTheCachesFromWhereThatClearlyWins) {
  constexpr int64_t kUsual = 32 << 20;
  const CopyingRates even{10e9, 10e9}, better{10e9, 14e9}, worse{10e9, 7e9}, noise{10e9, 11e9};
  EXPECT_EQ(bypass_threshold(kUsual, better, worse), kUsual) << "as on Zen 5";
  EXPECT_EQ(bypass_threshold(kUsual, even, even), kUsual);
  EXPECT_EQ(bypass_threshold(kUsual, noise, noise), kUsual);
  EXPECT_EQ(bypass_threshold(kUsual, worse, worse), 0);
  EXPECT_EQ(bypass_threshold(kUsual, worse, better), 0) << "nothing is gained where it should be";
  EXPECT_EQ(bypass_threshold(kUsual, better, better), kUsual / 2);
  EXPECT_EQ(bypass_threshold(kUsual, noise, better), kUsual) << "not alike: a neighbour's doing";
}

TEST_F(MeasureSpeeds, IsDoneOnceForAllProcesses) {
  const auto backend = make_backend(flags("zen5"));
  const Machine plain = avx2_machine();
  const Rates first = cached_speeds(*backend, plain, "Some Processor", flags("auto"));
  EXPECT_NE(first.memory_bandwidth, plain.memory_bandwidth);
  ASSERT_EQ(files().size(), 1U);
  // Whoever looks on gets the kernels that everybody gets.
  Flags watched = flags("auto");
  watched.debug = 4;
  watched.spec = 1;
  watched.log = {[](void*, const char*) {}, nullptr};
  expect_same_speeds(cached_speeds(*backend, plain, "Some Processor", watched), first);
  EXPECT_EQ(files().size(), 1U);
  cached_speeds(*backend, plain, "Another Processor", flags("auto"));
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(MeasureSpeeds, IsLeftOutWhereNothingCanBeKept) {
  Flags f = flags("auto");
  f.cache = 0;
  const auto backend = make_backend(f);
  const Machine plain = avx2_machine();
  expect_same_speeds(cached_speeds(*backend, plain, "Some Processor", f), plain);
  EXPECT_TRUE(files().empty());
}

TEST_F(MeasureSpeeds, ADamagedRecordIsMadeAnew) {
  const auto backend = make_backend(flags("zen5"));
  const Machine plain = avx2_machine();
  cached_speeds(*backend, plain, "Some Processor", flags("auto"));
  ASSERT_EQ(files().size(), 1U);
  std::ofstream(files().front(), std::ios::trunc) << "no record";
  const Rates again = cached_speeds(*backend, plain, "Some Processor", flags("auto"));
  EXPECT_GT(again.fma_rate, 1e9);
  expect_same_speeds(cached_speeds(*backend, plain, "Some Processor", flags("auto")), again);
}

TEST_F(MeasureSpeeds, AKnownProcessorIsImitated) {
  const Processor& skylake = *find_processor("skylake");
  const auto backend = make_backend(flags("skylake"));
  const Machine& t = backend->machine();
  EXPECT_EQ(t.l1_bytes, 32 << 10);
  EXPECT_EQ(t.bypass_bytes, skylake.rates.bypass_bytes);
  EXPECT_EQ(t.l3_bandwidth, skylake.rates.l3_bandwidth);
  EXPECT_EQ(t.dots, 0) << "Skylake has no products of bytes";
  Flags narrow = flags("skylake");
  narrow.isa = "avx2";
  EXPECT_EQ(make_backend(narrow)->machine().fma_rate, skylake.fma_rate_avx2);
  EXPECT_LT(skylake.fma_rate_avx2, skylake.rates.fma_rate);
  EXPECT_TRUE(files().empty()) << "nothing is measured";
}

TEST_F(MeasureSpeeds, AnUnknownNameListsTheKnown) {
  testing::expect_failure(
      testing::failure_of([&] { make_backend(flags("i486")); }), Status::InvalidArgument,
      {"processor \"i486\"", "auto, measure, zen5, zen4, emeraldrapids, skylake"});
}

TEST(Processors, AreToldByVendorFamilyAndModel) {
  EXPECT_EQ(find_processor("GenuineIntel", 6, 0x55), find_processor("skylake"));
  EXPECT_EQ(find_processor("GenuineIntel", 6, 0x6A), nullptr);
  EXPECT_EQ(find_processor("AuthenticAMD", 26, 2), find_processor("zen5"));
  EXPECT_EQ(find_processor("AuthenticAMD", 26, 0x24), nullptr) << "has narrower units";
  EXPECT_EQ(find_processor("AuthenticAMD", 25, 0x11), find_processor("zen4"));
  EXPECT_EQ(find_processor("AuthenticAMD", 25, 0x01), nullptr) << "Zen 3";
  EXPECT_EQ(find_processor("AuthenticAMD", 6, 0x55), nullptr);
}

}  // namespace
}  // namespace tiny

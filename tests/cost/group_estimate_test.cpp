// What kernels are estimated to take on a machine that computes in groups: lists of options of one
// kernel, in the order in which such a machine would take longer.
#include "cost/group_estimate.h"

#include <gtest/gtest.h>

#include <string>

#include "codegen/options/options.h"
#include "codegen/pipeline.h"
#include "cost/group_machines.h"
#include "engine/backend.h"
#include "schedule/schedule.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

TEST(BankConflicts, AreTheTurnsBeyondTheLeast) {
  const GroupLimits limits = find_group_machine("h100")->limits;
  const auto of = [&](int64_t step, int64_t lanes, int64_t element = 4, int64_t threads = 32) {
    return bank_conflicts({step, 0, 0}, {threads, 1, 1}, element, element * lanes, limits);
  };
  EXPECT_EQ(of(1, 1), 0);
  EXPECT_EQ(of(0, 1), 0);    // one word for all
  EXPECT_EQ(of(2, 1), 1);    // two words in each bank
  EXPECT_EQ(of(32, 1), 31);  // all in one
  EXPECT_EQ(of(33, 1), 0);   // a row that is one longer
  EXPECT_EQ(of(32, 1, 4, 8), 7);
  EXPECT_EQ(of(1, 1, 2), 0);  // two threads in a word
  EXPECT_EQ(of(4, 4), 0);     // 16 bytes of each, a quarter of a warp at a time
  EXPECT_EQ(of(32, 4), 4 * 7);
  EXPECT_EQ(bank_conflicts({1, 33, 0}, {16, 2, 1}, 4, 4, limits), 1);
  EXPECT_EQ(bank_conflicts({1, 16, 0}, {16, 2, 1}, 4, 4, limits), 0);
}

class GroupEstimates : public ::testing::Test {
 protected:
  GroupEstimates() {
    Flags flags = testing::flags_for("interp");
    flags.cache = 0;
    flags.processor = "h100";
    context_ = make_ref<Context>(flags);
  }
  const Machine& machine() const { return context_->backend().machine(); }
  Tensor input(const Ints& shape) { return make_placeholder(context_, kFloat32, to_shape(shape)); }
  Estimate of(const Tensor& output, const std::string& options) {
    const Schedule schedule = make_schedule({{output.node()}}, machine());
    const Kernel kernel = prepare_kernel(schedule.kernels.front().kernel, machine());
    return estimate(apply_options(kernel, parse_options(options)), machine());
  }

  Ref<Context> context_;
};

TEST_F(GroupEstimates, ThreadsBesideEachOtherShareSectors) {
  const Tensor t = add(input({4096, 4096}), input({4096, 4096}));
  const Estimate beside = of(t, "TILE r0 256; LOCAL r1 0; THREAD r0");
  const Estimate wide = of(t, "TILE r0 1024; TILE r1 4; VEC r2; LOCAL r1 0; THREAD r0");
  const Estimate apart = of(t, "TILE r0 8; ORDER r1 r0; TILE r0 256; LOCAL r2 0; THREAD r1");
  EXPECT_LE(wide.seconds, beside.seconds);
  EXPECT_LT(5 * beside.seconds, apart.seconds);
  EXPECT_EQ(beside.bound(), Resource::Memory);
  // Three parameters of 64 MB at 3.35 TB/s.
  EXPECT_NEAR(beside[Resource::Memory], 3 * 4096.0 * 4096 * 4 / 3.35e12, 1e-6);
}

TEST_F(GroupEstimates, OneGroupIsNoMachine) {
  const Tensor t = sum(input({4096, 4096}), {1});
  const Estimate one = of(t, "TILE r1 256; LOCAL r2 0");
  const Estimate all = of(t, "TILE r1 256; LOCAL r2 0; THREAD r0");
  EXPECT_LT(20 * all.seconds, one.seconds);
}

TEST_F(GroupEstimates, ATileSavesWhatItShares) {
  const Tensor t = matmul(input({2048, 2048}), input({2048, 2048}));
  const Estimate plain = of(t, "TILE r1 256; LOCAL r3 0; THREAD r0; THREAD r1");
  const Estimate tiled =
      of(t,
         "TILE r0 64; TILE r1 64; TILE r2 16; ORDER r0 r1 r3 r4 r2 r5; THREAD r0; THREAD r1; "
         "ORDER r2 r5 r3 r4; STAGE p0 r2 r3 pad 4 shared; LOCAL r6 0; TILE r7 16; LOCAL r8 1; "
         "STAGE p1 r2 r4 pad 4 shared; TILE r10 4; VEC r11; LOCAL r10 0; LOCAL r9 1; "
         "TILE r4 4; VEC r12; LOCAL r4 0; TILE r3 16; LOCAL r13 1; UPCAST r3");
  EXPECT_LT(2 * tiled.seconds, plain.seconds);
  EXPECT_LT(8 * tiled[Resource::Level2], plain[Resource::Level2]);
}

TEST(GroupMachines, AreNamedAndStandForNoDeviceOfTheirOwn) {
  for (const GroupMachine& m : known_group_machines()) {
    EXPECT_EQ(find_group_machine(m.name), &m);
    Flags flags = testing::flags_for("interp");
    flags.processor = m.name;
    const Ref<Context> context = make_ref<Context>(flags);
    EXPECT_TRUE(context->backend().target().computes_in_groups());
    EXPECT_EQ(context->backend().target().cores, m.processors);
    flags.device = "cpu";
    testing::expect_failure(testing::failure_of([&] { make_ref<Context>(flags); }),
                            Status::InvalidArgument, {std::string(m.name), "cpu"});
  }
  EXPECT_EQ(find_group_machine("zen5"), nullptr);
  EXPECT_FALSE(testing::new_context("interp")->backend().target().computes_in_groups());
}

}  // namespace
}  // namespace tiny

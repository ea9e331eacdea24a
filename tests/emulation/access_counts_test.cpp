// What accesses ask of memory, as the emulated machine counts it: of patterns that are known, and
// of the kernels that are chosen for an H100.
#include "tests/emulation/access_counts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "engine/context.h"
#include "schedule/schedule.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/program.h"
#include "tensor/reduce.h"
#include "tests/emulation/kernels.h"
#include "tests/emulation/launched.h"
#include "tests/support/context.h"

namespace tiny::emulation {
namespace {

// Of 32 threads that load so many bytes each, `step` bytes apart.
AccessCounts counted(bool is_shared, uint32_t bytes, uint32_t step) {
  const std::string lanes = bytes > 4 ? cat(".v", bytes / 4) : "";
  std::vector<std::string> names;
  for (uint32_t n = 0; n < bytes / 4; ++n) names.push_back(cat("%r", n + 8));
  const std::string values = bytes > 4 ? cat("{", join(names, ", "), "}") : names[0];
  const std::string text =
      module_of(cat(is_shared ? ".shared .align 16 .b8 memory[8192];\nmov.u64 %d0, memory;\n" : "",
                    "mov.u32 %r0, %tid.x;\nmul.lo.u32 %r0, %r0, ", step,
                    ";\ncvt.u64.u32 %d1, %r0;\nadd.u64 %d0, %d0, %d1;\nst.",
                    is_shared ? "shared" : "global", lanes, ".b32 [%d0], ", values, ";\n"),
                1);
  const Module module = parse_module(text);
  GlobalMemory memory;
  KernelLaunch launch;
  launch.entry = &module.entries.at("kernel");
  launch.block = {kWarp, 1, 1};
  const uint64_t address = memory.allocate(1 << 16, 0, kRoom);
  launch.parameters.resize(8);
  std::memcpy(launch.parameters.data(), &address, 8);
  AccessCounts counts;
  Machine machine(memory, 0, 1);
  machine.set_counts(&counts);
  machine.run(launch);
  return counts;
}

TEST(AccessCounts, SectorsOfAWarp) {
  const auto sectors = [](uint32_t bytes, uint32_t step) {
    return counted(false, bytes, step).sectors();
  };
  EXPECT_EQ(sectors(4, 4).asked, 4u);
  EXPECT_EQ(sectors(16, 16).asked, 16u);
  EXPECT_EQ(sectors(4, 8).asked, 8u);
  EXPECT_EQ(sectors(4, 8).least, 4u);
  EXPECT_EQ(sectors(4, 256).asked, 32u);
  EXPECT_EQ(sectors(4, 0).asked, 1u);
  EXPECT_EQ(sectors(4, 4).accesses, 1u);
}

TEST(AccessCounts, TurnsOfBanks) {
  const auto turns = [](uint32_t bytes, uint32_t step) {
    return counted(true, bytes, step).shared_turns();
  };
  EXPECT_EQ(turns(4, 4).asked, 1u);
  EXPECT_EQ(turns(4, 8).asked, 2u);
  EXPECT_EQ(turns(4, 128).asked, 32u);
  EXPECT_EQ(turns(4, 132).asked, 1u);
  EXPECT_EQ(turns(16, 16).asked, 4u);
  EXPECT_EQ(turns(16, 144).asked, 4u);  // rows of 128 bytes and one piece between
  EXPECT_EQ(turns(16, 128).asked, 32u);
  EXPECT_EQ(turns(16, 128).least, 4u);
  EXPECT_NE(counted(true, 4, 8).wasteful(true).find("2 for 1"), std::string::npos);
}

class ChosenKernels : public ::testing::Test {
 protected:
  ChosenKernels() {
    Flags flags = tiny::testing::flags_for("interp");
    flags.cache = 0;
    flags.processor = "h100";
    context_ = make_ref<Context>(flags);
  }
  Tensor input(const Ints& shape, DType dtype = kFloat32) {
    return make_placeholder(context_, dtype, to_shape(shape));
  }
  // Of some groups of each kernel.
  std::vector<AccessCounts> counts_of(const Tensor& output) {
    constexpr int64_t kGroups = 2;
    tiny::Machine machine = context_->backend().machine();
    machine.group.argument_alignment = 256;
    std::vector<AccessCounts> all;
    for (const ScheduledKernel& k : make_schedule({{output.node()}}, machine).kernels) {
      const CodegenResult made = generate(k.kernel, machine, {});
      Launched launched(made.program, "sm_90a");
      std::vector<std::vector<std::byte>> buffers(made.program.params.size());
      for (auto& buffer : buffers) {
        buffer.resize(kBufferBytes);
        launched.add_buffer(buffer.data(), kBufferBytes);
      }
      AccessCounts counts;
      const int64_t groups = made.threads_extent.is_const() ? made.threads_extent.value() : 1;
      const int64_t few = std::min(groups, kGroups);
      launched.run(0, few, 1, static_cast<uint32_t>(few), 1, &counts);
      all.push_back(counts);
    }
    return all;
  }

  static constexpr int64_t kBufferBytes = 48 << 20;
  Ref<Context> context_;
};

void expect_least(const AccessCounts& counts) {
  EXPECT_GT(counts.sectors().accesses, 0u);
  EXPECT_EQ(counts.sectors().asked, counts.sectors().least) << counts.wasteful(false);
  EXPECT_EQ(counts.shared_turns().asked, counts.shared_turns().least) << counts.wasteful(true);
}

// Sizes that tiles divide, such that vectors of four do, and such that nothing does: nothing is
// read or stored twice, nor elements one by one.
TEST_F(ChosenKernels, ElementsAreWholeSectors) {
  for (const DType dtype : {kFloat32, kBFloat16})
    for (const Ints& shape : {Ints{4096, 1024}, Ints{1000, 1000}, Ints{1009, 1003}}) {
      SCOPED_TRACE(cat(shape[0], " x ", shape[1], ", ", dtype.bytes(), " bytes"));
      expect_least(counts_of(add(input(shape, dtype), input(shape, dtype)))[0]);
      expect_least(counts_of(relu(input(shape, dtype)))[0]);
    }
  expect_least(counts_of(add(input({1000, 1000}), input({1000})))[0]);
  expect_least(counts_of(relu(permute(input({2048, 1024}), {1, 0})))[0]);
}

TEST_F(ChosenKernels, RowsAreWholeSectorsAndMeetNoBank) {
  for (const int64_t columns : {768, 1000, 1024, 4096}) {
    SCOPED_TRACE(columns);
    expect_least(counts_of(softmax(input({1024, columns}), 1))[0]);
    expect_least(counts_of(sum(input({4096, columns}), {1}))[0]);
  }
  expect_least(counts_of(softmax(input({4096, 1024}, kBFloat16), 1))[0]);
  expect_least(counts_of(sum(input({512, 4096}), {0}))[0]);
}

// Lines of operands that four warps multiply at once: of 128 rows and 256 columns, whose steps lie
// side by side, the columns' pieces are stored in all banks; eight warps have too few rows for it.
TEST_F(ChosenKernels, WideProductsStoreTheirOperandsInAllBanks) {
  const Tensor columns = permute(input({2048, 512}, kBFloat16), {1, 0});
  const AccessCounts counts = counts_of(matmul(input({2048, 512}, kBFloat16), columns))[0];
  const AccessCounts::Totals turns = counts.shared_turns();
  EXPECT_GT(turns.least, 0u);
  EXPECT_LE(3 * turns.asked, 4 * turns.least) << counts.wasteful(true);
}

}  // namespace
}  // namespace tiny::emulation

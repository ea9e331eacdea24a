// The backend of CUDA's devices over the emulated driver: what is listed, what is kept on disk, and
// graphs whose kernels run on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/half.h"
#include "base/matrix.h"
#include "engine/context.h"
#include "engine/cuda_backend.h"
#include "engine/kernel_cache.h"
#include "engine/realize.h"
#include "ir/build.h"
#include "shape/shape.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/fake_cuda.h"
#include "tests/support/temporary_folder.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Setting;

class CudaBackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fake_.is_there()) GTEST_SKIP() << testing::kNoFakeCuda;
    fake_.reset();
  }
  void TearDown() override {
    if (!fake_.is_there()) return;
    EXPECT_EQ(fake_.left(), "");
    fake_.reset();
  }
  Flags flags(const std::string& device = "cuda") const {
    Flags f = testing::flags_for(device);
    f.spec = 0;  // what is verified is not taken from disk
    f.debug = 0;
    f.cache_dir = folder_.string();
    return f;
  }
  // The sums of rows of x * x + 1, and what the kernels' cache did.
  static CompileCounts compute(const Ref<Context>& context) {
    constexpr int64_t kRows = 5, kColumns = 77;
    std::vector<float> data(kRows * kColumns);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 11);
    Graph& graph = context->graph();
    const UOp x = make_buffer(graph, context->from_host(data.data(), std::ssize(data) * 4),
                              kFloat32, std::ssize(data));
    const UOp one = make_expand(make_reshape(graph.constant(kFloat32, 1), {1}), shape_of(x));
    const UOp y = make_reshape(add(mul(x, x), one), {kRows, kColumns});
    std::vector<float> sums(kRows);
    read(*context, make_reduce(y, Op::Add, {1}), sums.data(), kRows * 4);
    for (size_t row = 0; row < kRows; ++row) {
      float wanted = 0;
      for (size_t i = 0; i < kColumns; ++i) {
        const float value = data[row * kColumns + i];
        wanted += value * value + 1;
      }
      EXPECT_EQ(sums[row], wanted);
    }
    return context->kernels().times();
  }

  const testing::FakeCuda fake_;
  testing::TemporaryFolder folder_;
};

TEST_F(CudaBackendTest, DevicesAreListedWithWhatTheyHave) {
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  const std::vector<BackendInfo> all = list_cuda_backends();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].name, "cuda:1");
  EXPECT_EQ(all[1].description, "Emulated GPU 1, compute capability 9.0");
  EXPECT_TRUE(all[1].available);
  EXPECT_EQ(all[1].units, 132);
  EXPECT_EQ(all[1].group.threads, 1024);
}

TEST_F(CudaBackendTest, ADeviceThatCannotBeUsedIsListedWithTheReason) {
  const auto reason = [&](const char* name, const char* value) {
    const Setting setting(name, value);
    fake_.reset();
    const std::vector<BackendInfo> all = list_cuda_backends();
    EXPECT_EQ(all.size(), 1u);
    EXPECT_FALSE(all[0].available);
    expect_failure(failure_of([&] { make_ref<Context>(flags()); }), Status::Device,
                   {all[0].reason});
    return all[0].reason;
  };
  EXPECT_EQ(reason("FAKE_CUDA_COMPUTE", "70"), "it is of compute capability 7.0; needed is 7.5");
  EXPECT_EQ(reason("FAKE_CUDA_VERSION", "10020"),
            "the CUDA driver is of version 10.2; needed is 11.4");
}

TEST_F(CudaBackendTest, KernelsAreKeptAsTheyWereAssembled) {
  const CompileCounts first = compute(make_ref<Context>(flags()));
  EXPECT_GT(first.compiled, 0);
  EXPECT_EQ(first.on_disk, 0);
  {
    const Setting fail("FAKE_CUDA_FAIL", "cuLinkCreate_v2:1:801");
    const CompileCounts second = compute(make_ref<Context>(flags()));
    EXPECT_EQ(second.compiled, 0);
    EXPECT_EQ(second.on_disk, first.compiled);
  }
  // Of another driver they may not be.
  const Setting version("FAKE_CUDA_VERSION", "13000");
  fake_.reset();
  EXPECT_EQ(compute(make_ref<Context>(flags())).on_disk, 0);
}

// A product of float16 that tiles of any device fit, and what its kernels are chosen for.
void multiply_halves(const Ref<Context>& context) {
  constexpr int64_t kSide = 160;
  const auto number_at = [](int64_t i) { return static_cast<float>((i * 7 + i / 11) % 5 - 2); };
  std::vector<uint16_t> data;
  for (int64_t i = 0; i < kSide * kSide; ++i) data.push_back(half_from_float(number_at(i)));
  Graph& graph = context->graph();
  const UOp x = make_buffer(graph, context->from_host(data.data(), std::ssize(data) * 2), kFloat16,
                            std::ssize(data));
  const UOp wide = cast(x, kFloat32);
  const auto side = [&](bool has_columns) {
    const Shape shape{has_columns ? 1 : kSide, has_columns ? kSide : 1, kSide};
    return make_expand(make_reshape(wide, shape), {kSide, kSide, kSide});
  };
  std::vector<float> sums(kSide * kSide);
  read(*context, make_reduce(mul(side(false), side(true)), Op::Add, {2}), sums.data(),
       std::ssize(sums) * 4);
  for (int64_t row = 0; row < kSide; ++row)
    for (int64_t column = 0; column < kSide; ++column) {
      float wanted = 0;
      for (int64_t k = 0; k < kSide; ++k)
        wanted += number_at(row * kSide + k) * number_at(column * kSide + k);
      ASSERT_EQ(sums[static_cast<size_t>(row * kSide + column)], wanted) << row << " " << column;
    }
}

// Of each generation, with a driver that knows all of it and with one that does not.
TEST_F(CudaBackendTest, KernelsAreThoseOfTheDeviceThatItsDriverKnows) {
  struct Device {
    const char *compute, *driver, *target;
    bool has_products = false, has_wide = false;
  };
  constexpr Device kDevices[] = {
      {"75", "11040", "sm_75"},
      {"80", "11040", "sm_80", true},
      {"86", "12020", "sm_86", true},
      {"89", "12040", "sm_89", true},
      {"90", "12000", "sm_90", true, true},
      {"90", "13000", "sm_90", true, true},
      {"90", "11080", "sm_90", true},  // wgmma came with CUDA 12
      {"90", "11070", "sm_87", true},
      {"100", "12080", "sm_100", true},
      {"103", "12090", "sm_103", true},
      {"103", "12080", "sm_100", true},
      {"110", "13000", "sm_103", true},
      {"120", "12080", "sm_120", true},
      {"120", "12060", "sm_90", true},
      {"121", "13010", "sm_121", true},
  };
  for (const Device& device : kDevices) {
    SCOPED_TRACE(cat(device.compute, ", driver ", device.driver));
    const Setting compute_of("FAKE_CUDA_COMPUTE", device.compute),
        version("FAKE_CUDA_VERSION", device.driver);
    fake_.reset();
    {
      const Ref<Context> context = make_ref<Context>(flags());
      const Machine& machine = context->backend().machine();
      EXPECT_TRUE(machine.name.starts_with(cat("cuda ", device.target, " "))) << machine.name;
      EXPECT_EQ(machine.has_matrices(find_matrix_row("m16n8k16_f16")), device.has_products);
      EXPECT_EQ(machine.has_matrices(find_matrix_row("m64n256k16_f16")), device.has_wide);
      EXPECT_LE(machine.group.shared_bytes, machine.of_groups.shared_bytes);
      compute(context);
      multiply_halves(context);
    }
    EXPECT_EQ(fake_.left(), "");
  }
}

// What the driver says of an H200 is what its kernels are chosen by.
TEST_F(CudaBackendTest, RatesAreTheDrivers) {
  const Ref<Context> context = make_ref<Context>(flags());
  const Machine& machine = context->backend().machine();
  EXPECT_EQ(machine.cores, 132);
  EXPECT_NEAR(machine.memory_bandwidth, 4.917e12, 1e9);  // 2 * 3.201 GHz * 6144 bits
  EXPECT_EQ(machine.of_groups.shared_bytes, 228 << 10);
  EXPECT_NEAR(machine.fma_rate, 33.5e12, 1e11);
  const Setting fail("FAKE_CUDA_COMPUTE", "89");
  fake_.reset();
  const Ref<Context> small = make_ref<Context>(flags());
  EXPECT_EQ(small->backend().machine().group.shared_bytes, 99 << 10);
  EXPECT_EQ(small->backend().machine().of_groups.threads, 1536);
}

TEST_F(CudaBackendTest, TwoDevicesBesideEachOther) {
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  const Ref<Context> first = make_ref<Context>(flags("cuda:0")),
                     second = make_ref<Context>(flags("cuda:1"));
  compute(first);
  compute(second);
  compute(first);
  expect_failure(failure_of([&] { make_ref<Context>(flags("cuda:2")); }), Status::Device,
                 {"no device cuda:2: the CUDA driver has 2"});
}

TEST_F(CudaBackendTest, ALostDeviceIsToldByItsContextAndAnotherLives) {
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  {
    const Ref<Context> lost = make_ref<Context>(flags("cuda:0")),
                       other = make_ref<Context>(flags("cuda:1"));
    compute(lost);
    {
      const Setting fail("FAKE_CUDA_FAIL", "cuStreamSynchronize:1:700");
      expect_failure(
          failure_of([&] { compute(lost); }), Status::DeviceLost,
          {"the device cuda:0 is lost: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"});
    }
    expect_failure(failure_of([&] { compute(lost); }), Status::DeviceLost);
    compute(other);
  }
  fake_.reset();  // what a lost device had is not given back
}

}  // namespace
}  // namespace tiny

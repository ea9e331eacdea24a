// Device opencl as the engine uses it, against the interpreter.
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "codegen/options/options.h"
#include "engine/backend.h"
#include "engine/lowering.h"
#include "engine/trial.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/indexing.h"
#include "tensor/matmul.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Floats;

class EngineOpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::has_opencl()) GTEST_SKIP() << "no driver of OpenCL has a device here";
  }
};

Ref<Context> context_on(const char* device, const std::string& options) {
  Flags flags = testing::flags_for(device);
  flags.opts = options;
  flags.noopt = options.empty() ? 1 : 0;
  flags.spec = 1;
  return make_ref<Context>(flags);
}

// Small whole numbers, which add exactly in any order.
Tensor numbers(const Ref<Context>& context, const Ints& shape, int64_t step) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  Floats values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * step % 17 - 8));
  return testing::floats(context, values, shape);
}

Floats product(const char* device, const std::string& options, int64_t m, int64_t k, int64_t n) {
  const Ref<Context> context = context_on(device, options);
  return testing::floats_of(matmul(numbers(context, {m, k}, 7), numbers(context, {k, n}, 5)));
}

// As in tests/codegen/groups_test.cpp: both operands shared by a group of 16 x 16 threads.
constexpr const char* kTiledProduct =
    "TILE r0 32; TILE r3 2; TILE r1 32; TILE r5 2; TILE r2 16; ORDER r0 r1 r2 r7 r3 r5 r4 r6; "
    "STAGE p0 r2 r7 shared; STAGE p1 r2 shared; "
    "THREAD r0; THREAD r1; LOCAL r3 1; LOCAL r5 0; UPCAST r4; UPCAST r6";

TEST_F(EngineOpenCl, ATiledProductOfGroupsIsExact) {
  EXPECT_EQ(product("opencl", kTiledProduct, 70, 50, 90), product("interp", "", 70, 50, 90));
  const std::string filled =
      std::string(kTiledProduct) + "; LOCAL r8 0; LOCAL r9 1; LOCAL r11 1; LOCAL r12 0";
  EXPECT_EQ(product("opencl", filled, 33, 17, 35), product("interp", "", 33, 17, 35));
}

TEST_F(EngineOpenCl, ASumIsFoldedOverThreads) {
  const Floats want = product("interp", "", 5, 200, 7);
  for (const char* list : {"TILE r2 32; LOCAL r3 0; THREAD r0; THREAD r1",
                           "TILE r2 64; TILE r3 8; LOCAL r3 1; LOCAL r4 0; THREAD r0"})
    EXPECT_EQ(product("opencl", list, 5, 200, 7), want) << list;
}

// What a search tries are kernels of the same loops, several in a unit of the driver's compiler.
TEST_F(EngineOpenCl, ListsOfOneKernelAreLoadedTogether) {
  const Ref<Context> context = context_on("opencl", "");
  Backend& backend = context->backend();
  const UOp node = matmul(numbers(context, {33, 17}, 7), numbers(context, {17, 35}, 5)).node();
  const Schedule schedule = make_schedule({&node, 1}, backend.machine());
  const Kernel& kernel = schedule.kernels.front().kernel;
  Trial trial(backend.device(), kernel, context->stop());
  Lowering lowering(kernel, backend, {}, trial, context->stop());
  const std::set<ProgramHash> none;
  std::vector<Code> codes;
  for (std::optional<Lowered>& one :
       lowering.lower(std::vector{parse_options(""), parse_options("UNROLL r2")},
                      {.must_fit = true, .with_code = true, .executed_max = 0, .seen = &none}))
    codes.push_back(std::move(one.value().code));
  EXPECT_EQ(backend.load(codes, context->stop()).size(), 2U);
}

// A device that is a processor has vectors, and kernels that walk them.
TEST_F(EngineOpenCl, AProcessorComputesInVectors) {
  const Ref<Context> context = make_ref<Context>(testing::flags_for("opencl"));
  const Machine& machine = context->backend().machine();
  if (machine.computes_in_groups()) GTEST_SKIP() << "the device is no processor";
  EXPECT_GE(machine.lanes(kFloat32), 4);
  EXPECT_EQ(
      testing::floats_of(matmul(numbers(context, {70, 50}, 7), numbers(context, {50, 90}, 5))),
      product("interp", "", 70, 50, 90));
}

// The status of the queue: which check failed, and where.
TEST_F(EngineOpenCl, AnIndexOutOfRangeIsAnErrorThatSaysWhere) {
  const auto message = [](const char* device) {
    const Ref<Context> context = context_on(device, "");
    const std::vector<int64_t> places{0, 3, 9, 1};
    const Tensor index = from_data(context, kInt64, {4}, places.data(), 32);
    const Tensor picked = gather(numbers(context, {4}, 1), index);
    const Error error = failure_of([&] { testing::floats_of(picked); });
    EXPECT_EQ(error.status(), Status::Index) << error.message();
    return error.message();
  };
  EXPECT_EQ(message("opencl"), message("interp"));
}

TEST_F(EngineOpenCl, ADeviceThatIsNotThereIsNamed) {
  expect_failure(failure_of([] { context_on("opencl:99", ""); }), Status::Device,
                 {"opencl:99", "numbered from 0"});
  expect_failure(failure_of([] { context_on("opencl:x", ""); }), Status::InvalidArgument,
                 {"opencl:x", "known: cpu"});
  EXPECT_EQ(context_on("opencl:0", "")->backend().device().name(), "opencl");
}

}  // namespace
}  // namespace tiny

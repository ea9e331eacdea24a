#include "render/c/opencl.h"

#include <gtest/gtest.h>

#include "runtime/opencl/device.h"
#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"
#include "tests/support/environment.h"

namespace tiny {
namespace {

// The first device, or null where there is none.
std::unique_ptr<OpenClDevice> open_device() {
  return opencl_devices().empty() ? nullptr : make_opencl_device(0, 0);
}

class RenderOpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = open_device();
    if (!device_) GTEST_SKIP() << "no driver of OpenCL has a device here";
    queue_ = device_->make_queue();
  }

  // One piece of the program on the device; its buffers and status are as after the naive one.
  void run(Executable& executable, const LinearProgram& program, LinearBuffers& buffers,
           KernelArgs& args) {
    std::vector<Ref<Buffer>> memory;
    std::vector<Argument> arguments;
    for (size_t i = 0; i < program.params.size(); ++i) {
      const int64_t bytes = bytes_of(program.params[i]);
      // Behind an offset, as in an arena.
      memory.push_back(device_->allocate(bytes + kOffset));
      device_->copy_in(queue_.get(), *memory[i], kOffset, buffers.param(i), bytes);
      arguments.push_back({memory[i].get(), kOffset});
    }
    device_->clear_status(*queue_);
    const std::span<const int64_t> variables(args.variables, program.variables.size());
    const Launch launch{&executable, arguments, variables, args.begin, args.end};
    device_->launch(queue_.get(), launch, StopSignal());
    for (size_t i = 0; i < program.params.size(); ++i)
      device_->copy_out(queue_.get(), args.buffers[i], *memory[i], kOffset,
                        bytes_of(program.params[i]));
    *args.status = device_->status(*queue_);
  }

  void expect_same(uint64_t first_seed, size_t count, RandomLinearOptions options) {
    options.clears_scratch = true;
    options.dots = 0;  // no device of OpenCL has them
    std::vector<LinearProgram> programs;
    for (size_t i = 0; i < count; ++i) programs.push_back(random_linear(first_seed + i, options));
    const std::vector<Ref<Executable>> executables = device_->load(render_opencl(programs));
    for (size_t i = 0; i < count; ++i) {
      LinearBuffers expected(programs[i], first_seed + i), got(programs[i], first_seed + i);
      KernelArgs want = one_piece(expected), args = one_piece(got);
      naive::run(programs[i], want);
      run(*executables[i], programs[i], got, args);
      ASSERT_EQ(difference(programs[i], expected, got), "")
          << "seed " << first_seed + i << "\n" << to_string(programs[i]);
    }
  }

  std::unique_ptr<OpenClDevice> device_;
  Ref<Queue> queue_;

 private:
  static constexpr int64_t kOffset = 192;

  static int64_t bytes_of(const LinearParam& param) {
    return (param.written ? kRandomOutputs : kRandomInputs) * param.element.bytes();
  }
  static KernelArgs one_piece(LinearBuffers& buffers) {
    KernelArgs args = buffers.args();
    args.end = args.begin + 1;
    args.worker = 0;
    return args;
  }
};

// PROGRAMS and PROGRAM_SEED look further, or at one.
TEST_F(RenderOpenCl, RandomProgramsGiveTheBitsOfTheNaiveEvaluator) {
  const auto count = static_cast<size_t>(testing::number_from("PROGRAMS", 6));
  const auto seed = static_cast<uint64_t>(testing::number_from("PROGRAM_SEED", 1));
  expect_same(seed, count, {.steps = 50, .lanes_max = 1});
  expect_same(seed + 1000, count, {.steps = 50, .lanes_max = 4});
  expect_same(seed + 2000, count, {.steps = 40, .odd_lanes = true});
}

}  // namespace
}  // namespace tiny

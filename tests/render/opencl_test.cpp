#include "render/c/opencl.h"

#include <gtest/gtest.h>

#include "render/bytecode.h"
#include "runtime/interp/interp.h"
#include "runtime/opencl/device.h"
#include "tests/render/group_programs.h"
#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"
#include "tests/support/environment.h"

namespace tiny {
namespace {

// The first device, or null where there is none.
std::unique_ptr<OpenClDevice> open_device() {
  return opencl_devices().empty() ? nullptr : make_opencl_device({0}, 0);
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
      ASSERT_EQ(difference(programs[i], expected, got), "") << "seed " << first_seed + i << "\n"
                                                            << to_string(programs[i]);
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

// With WITHOUT_BARRIER none waits, which oclgrind reports (opencl_races.sh).
TEST_F(RenderOpenCl, ThreadsMeet) {
  const bool has_barrier = testing::number_from("WITHOUT_BARRIER", 0) == 0;
  const LinearProgram program = testing::reversal(has_barrier);
  const std::vector<Ref<Executable>> loaded = device_->load(render_opencl({&program, 1}));
  constexpr int64_t kGroups = 3, kCount = kGroups * testing::kReversalThreads;
  std::vector<int32_t> values(kCount), got(kCount);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
  const int64_t bytes = kCount * kInt32.bytes();
  const Ref<Buffer> in = device_->allocate(bytes), out = device_->allocate(bytes);
  device_->copy_in(queue_.get(), *in, 0, values.data(), bytes);
  const Argument arguments[] = {{in.get(), 0}, {out.get(), 0}};
  device_->launch(queue_.get(), {loaded[0].get(), arguments, {}, 0, kGroups}, StopSignal());
  device_->copy_out(queue_.get(), got.data(), *out, 0, bytes);
  device_->wait(queue_.get());
  if (!has_barrier) return;  // whatever it is
  EXPECT_TRUE(testing::is_reversed(got));
}

// The axes of a group one after the other, halves combined, as the interpreter does.
TEST_F(RenderOpenCl, FoldsAreInTheInterpretersOrder) {
  for (const int64_t axes : {1, 5, 7}) {
    const LinearProgram p = testing::fold(axes);
    const std::vector<float> values = testing::fold_values();
    std::vector<float> want(values.size()), got(values.size());
    const auto run = [&](Device& device, const std::vector<Code>& codes, std::vector<float>& to) {
      const std::vector<Ref<Executable>> loaded = device.load(codes);
      const Ref<Queue> queue = device.make_queue();
      const auto bytes = std::ssize(to) * kFloat32.bytes();
      const Ref<Buffer> a = device.allocate(bytes), b = device.allocate(bytes);
      device.copy_in(queue.get(), *a, 0, values.data(), bytes);
      const Argument arguments[] = {{a.get(), 0}, {b.get(), 0}};
      device.launch(queue.get(), {loaded[0].get(), arguments, {}, 0, 1}, StopSignal());
      device.copy_out(queue.get(), to.data(), *b, 0, bytes);
      device.wait(queue.get());
    };
    run(*make_interpreter_device(), {render_bytecode(p)}, want);
    run(*device_, render_opencl({&p, 1}), got);
    EXPECT_EQ(got, want) << "axes " << axes;
  }
}

// Bools of several lanes are masks, as wide as what they were compared from.
TEST(OpenClText, MasksHaveRoomToFold) {
  LinearProgram p;
  p.name = "any";
  p.params = {{kFloat32, true, false}, {kBool, false, true}};
  p.threaded = p.grouped = true;
  p.group = {8, 8, 1};
  const DType floats = kFloat32.with_lanes(4), bools = kBool.with_lanes(4);
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId at = p.add(Op::LaunchArg, kInt64, {}, 3);
  const LinearId x = p.add(Op::Load, floats, {in, at}, 0, 1);
  const LinearId is_set = p.add(Op::NotEqual, bools, {x, p.add(Op::Const, floats, {}, 0)});
  const LinearId any = p.add(Op::GroupFold, bools, {is_set}, 1, static_cast<int32_t>(Op::Or));
  const LinearId one = p.add(Op::Fold, kBool, {any}, 0, static_cast<int32_t>(Op::Or));
  p.add(Op::Store, kVoid, {out, at, one});
  verify(p);
  const std::string text = render_opencl_unit({&p, 1});
  // 64 threads of 4 lanes of 4 bytes.
  EXPECT_NE(text.find("__local uchar folds[1024]"), std::string::npos) << text;
}

TEST(OpenClText, ASumReadsLikeOpenClC) {
  LinearProgram p;
  p.name = "sum";
  p.params = {{kFloat32, true, false}, {kFloat32, false, true}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId low = p.add(Op::Const, kInt64, {}, 0), high = p.add(Op::Const, kInt64, {}, 64);
  const LinearId acc = p.add(Op::Accumulator, kFloat32, {p.add(Op::Const, kFloat32, {}, 0)});
  const LinearId loop = p.add(Op::Loop, kInt64, {low, high}, 4);
  const LinearId x = p.add(Op::Load, kFloat32, {in, loop}, 8);
  p.add(Op::Set, kVoid, {acc, p.add(Op::Add, kFloat32, {acc, x})});
  p.add(Op::EndLoop, kVoid, {loop});
  p.add(Op::Store, kVoid, {out, low, acc});
  verify(p);
  const std::string text = render_opencl_unit({&p, 1});
  EXPECT_NE(text.find(R"(/* sum */
__kernel void sum(__global uchar *buffer0, i64 start0, __global uchar *buffer1, i64 start1, i64 begin, i64 end, __global int *status) {
  const i64 piece = begin + (i64)get_global_id(0);
  if (piece >= end) return;
  __global uchar *const p0 = buffer0 + start0;
  __global uchar *const p1 = buffer1 + start1;
  f32 acc5 = 0.0f;
  for (i64 k6 = 0l; k6 < 64l; k6 += 4) {
    const f32 v7 = load_f32_global(p0 + (address)k6 * 4 + 8);
    const f32 v8 = acc5 + v7;
    acc5 = v8;
  }
  store_f32_global(p1, acc5);
}
)"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace tiny

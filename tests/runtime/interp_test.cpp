#include "runtime/interp/interp.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "base/bytecode.h"
#include "base/error.h"
#include "render/bytecode.h"
#include "runtime/interp/step.h"
#include "tests/render/naive_linear.h"
#include "tests/render/random_linear.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

// out[i] = in[i] + in[i] * n, one lane at a time from begin to end.
LinearProgram axpy() {
  LinearProgram p;
  p.name = "axpy";
  p.params = {{kInt32, true, false}, {kInt32, false, true}};
  p.variables = {{"n", 0, 10}};
  p.threaded = true;
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId n = p.add(Op::Cast, kInt32, {p.add(Op::Variable, kInt64, {}, 0)});
  const LinearId begin = p.add(Op::LaunchArg, kInt64, {}, 0),
                 end = p.add(Op::LaunchArg, kInt64, {}, 1);
  const LinearId i = p.add(Op::Loop, kInt64, {begin, end}, 1);
  const LinearId x = p.add(Op::Load, kInt32, {in, i});
  p.add(Op::Store, kVoid, {out, i, p.add(Op::Add, kInt32, {x, p.add(Op::Mul, kInt32, {x, n})})});
  p.add(Op::EndLoop, kVoid, {i});
  verify(p);
  return p;
}

TEST(Interpreter, LaunchesWithBuffersOffsetsVariablesAndARange) {
  const auto device = make_interpreter_device();
  EXPECT_EQ(device->name(), "interp");
  const Code code = render_bytecode(axpy());
  const auto executables = device->load({&code, 1});
  const int32_t in[5] = {1, 2, 3, 4, 5};
  const Ref<Buffer> a = device->allocate(sizeof in), b = device->allocate(sizeof in);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a->host()) % 256, 0u);
  device->copy_in(nullptr, *a, 0, in, sizeof in);
  std::memset(b->host(), 0, sizeof in);
  const Argument arguments[] = {{a.get(), 4}, {b.get(), 0}};
  const int64_t variables[] = {10};
  device->launch(nullptr, {executables[0].get(), arguments, variables, 1, 4}, StopSignal());
  int32_t out[5];
  device->copy_out(nullptr, out, *b, 0, sizeof out);
  const int32_t expected[5] = {0, 33, 44, 55, 0};
  EXPECT_EQ(std::memcmp(out, expected, sizeof out), 0);
}

TEST(Interpreter, TooFewArgumentsAreAnError) {
  const auto device = make_interpreter_device();
  const Code code = render_bytecode(axpy());
  const auto executables = device->load({&code, 1});
  EXPECT_THROW(device->launch(nullptr, {executables[0].get(), {}, {}, 0, 1}, StopSignal()), Error);
}

TEST(Interpreter, RunsInSeveralThreadsAtOnce) {
  const auto device = make_interpreter_device();
  const Code code = render_bytecode(axpy());
  const auto executables = device->load({&code, 1});
  std::vector<int32_t> in(1000, 3), out(1000);
  const Ref<Buffer> a = device->wrap(in.data(), 4000), b = device->wrap(out.data(), 4000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Argument arguments[] = {{a.get(), 0}, {b.get(), 0}};
      const int64_t variables[] = {1};
      for (int i = 0; i < 50; ++i)
        device->launch(nullptr,
                       {executables[0].get(), arguments, variables, t * 250, t * 250 + 250},
                       StopSignal());
    });
  for (std::thread& t : threads) t.join();
  for (int32_t x : out) ASSERT_EQ(x, 6);
}

TEST(Interpreter, TheFirstFailedCheckIsKept) {
  LinearProgram p;
  p.name = "checks";
  const LinearId good = p.add(Op::Const, kBool, {}, 1),
                 bad = p.add(Op::Const, kBool.with_lanes(4), {}, 0);
  p.add(Op::Check, kVoid, {good, p.add(Op::Const, kInt64, {}, 5)}, 0, 1);
  p.add(Op::Check, kVoid, {bad, p.add(Op::Const, kInt64, {}, 77)}, 0, 2);
  p.add(Op::Check, kVoid, {bad, p.add(Op::Const, kInt64, {}, 78)}, 0, 3);
  const auto device = make_interpreter_device();
  const Code code = render_bytecode(p);
  const auto executables = device->load({&code, 1});
  const Ref<Queue> queue = device->make_queue();
  device->launch(queue.get(), {executables[0].get(), {}, {}, 0, 1}, StopSignal());
  EXPECT_EQ(check_id(device->status(*queue)), 2);
  EXPECT_EQ(check_position(device->status(*queue)), 77);
  device->clear_status(*queue);
  EXPECT_EQ(device->status(*queue), 0);
}

// Groups of 4 x 2 threads that write one number each.
struct GroupProgram {
  LinearProgram p;
  LinearId out, group, x, y, four;

  explicit GroupProgram(DType dtype) {
    p.name = "group";
    p.params = {{dtype, false, true}};
    p.threaded = p.grouped = true;
    p.group = {4, 2, 1};
    p.shared_bytes = 64;
    out = p.add(Op::Param, kAddress);
    group = p.add(Op::LaunchArg, kInt64, {}, 0);
    x = p.add(Op::LaunchArg, kInt64, {}, 3);
    y = p.add(Op::LaunchArg, kInt64, {}, 4);
    four = number(4);
  }
  LinearId number(int64_t n) { return p.add(Op::Const, kInt64, {}, n); }
  LinearId add(LinearId a, LinearId b) { return p.add(Op::Add, p.ops[a].dtype, {a, b}); }
  LinearId mul(LinearId a, LinearId b) { return p.add(Op::Mul, p.ops[a].dtype, {a, b}); }
  LinearId sub(LinearId a, LinearId b) { return p.add(Op::Sub, kInt64, {a, b}); }
  LinearId place() { return add(x, mul(y, four)); }
  void store(LinearId value) {
    p.add(Op::Store, kVoid, {out, add(mul(group, number(8)), place()), value});
  }
  // What groups from `begin` to before `end` write, as numbers of `T`.
  template <class T>
  std::vector<T> run(int64_t begin, int64_t end) const {
    const auto device = make_interpreter_device();
    const Code code = render_bytecode(p);
    const auto executables = device->load({&code, 1});
    std::vector<T> data(static_cast<size_t>(8 * end), T(-1));
    const Ref<Buffer> buffer = device->wrap(data.data(), std::ssize(data) * int64_t{sizeof(T)});
    const Argument argument{buffer.get(), 0};
    device->launch(nullptr, {executables[0].get(), {&argument, 1}, {}, begin, end}, StopSignal());
    return data;
  }
};

TEST(Interpreter, ThreadsOfAGroupSeeWhatOthersStoredBeforeABarrier) {
  GroupProgram g(kInt64);
  const LinearId shared = g.p.add(Op::Shared, kAddress);
  const LinearId own = g.add(g.add(g.x, g.mul(g.y, g.number(10))), g.mul(g.group, g.number(100)));
  g.p.add(Op::Store, kVoid, {shared, g.place(), own});
  g.p.add(Op::Barrier, kVoid);
  const LinearId other = g.add(g.sub(g.number(3), g.x), g.mul(g.sub(g.number(1), g.y), g.four));
  g.store(g.p.add(Op::Load, kInt64, {shared, other}));
  verify(g.p);
  EXPECT_EQ(g.run<int64_t>(1, 3),
            (std::vector<int64_t>{-1,  -1,  -1,  -1,  -1,  -1,  -1,  -1,  113, 112, 111, 110,
                                  103, 102, 101, 100, 213, 212, 211, 210, 203, 202, 201, 200}));
}

TEST(Interpreter, AGroupFoldsHalvesAsLanesAreFolded) {
  for (const int64_t axes : {1, 2, 3}) {
    GroupProgram g(kFloat32);
    // Sums that round: the order shows.
    const LinearId value = g.p.add(Op::Div, kFloat32,
                                   {g.p.add(Op::Const, kFloat32, {}, 0x3F800000),
                                    g.p.add(Op::Cast, kFloat32, {g.add(g.place(), g.number(3))})});
    g.store(g.p.add(Op::GroupFold, kFloat32, {value}, axes, static_cast<int32_t>(Op::Add)));
    verify(g.p);
    const std::vector<float> got = g.run<float>(0, 1);
    const auto of = [](int n) { return 1.0F / static_cast<float>(n + 3); };
    const auto row = [&](int y) {
      return (of(4 * y) + of(4 * y + 2)) + (of(4 * y + 1) + of(4 * y + 3));
    };
    for (int t = 0; t < 8; ++t) {
      const float both = axes == 3 ? row(0) + row(1) : of(t % 4) + of(t % 4 + 4);
      EXPECT_EQ(got[static_cast<size_t>(t)], axes == 1 ? row(t / 4) : both) << axes << " " << t;
    }
  }
}

TEST(Interpreter, ThreadsThatPartBeforeTheyMeetAreAnError) {
  GroupProgram g(kInt64);
  const LinearId block = g.p.add(Op::If, kVoid, {g.p.add(Op::Equal, kBool, {g.x, g.number(0)})});
  g.p.add(Op::Barrier, kVoid);
  g.p.add(Op::EndIf, kVoid, {block});
  g.store(g.x);
  testing::expect_failure(testing::failure_of([&] { g.run<int64_t>(0, 1); }), Status::Internal,
                          {"kernel group: threads of a group part before they meet"});
}

// The same code in the instructions of every processor: what an old one would run.
TEST(Interpreter, BothSetsOfHandlersExistForTheSameOps) {
  if (!interp::has_avx2()) GTEST_SKIP() << "this processor has no AVX2";
  for (size_t op = 0; op < kBytecodeOpCount; ++op)
    for (size_t type = 0; type < kBytecodeTypeCount; ++type)
      for (size_t to = 0; to < kBytecodeTypeCount; ++to)
        for (uint16_t lanes : {uint16_t{1}, uint16_t{16}}) {
          BytecodeInstruction i;
          i.op = static_cast<BytecodeOp>(op);
          i.type = static_cast<BytecodeType>(type);
          i.to = static_cast<BytecodeType>(to);
          i.lanes = lanes;
          ASSERT_EQ(interp::find_handler_baseline(i) == nullptr,
                    interp::find_handler_avx2(i) == nullptr);
        }
}

class BadBytecode : public ::testing::Test {
 protected:
  Code code_ = render_bytecode(axpy());

  BytecodeHeader& header() { return *reinterpret_cast<BytecodeHeader*>(code_.bytes.data()); }
  BytecodeInstruction& op(size_t i) {
    return reinterpret_cast<BytecodeInstruction*>(code_.bytes.data() + sizeof(BytecodeHeader))[i];
  }
  size_t find(BytecodeOp wanted) {
    for (size_t i = 0;; ++i)
      if (op(i).op == wanted) return i;
  }
  void expect_refused(const std::string& why) {
    testing::expect_failure(testing::failure_of([&] { load_bytecode(code_); }), Status::Device,
                            {why});
  }
};

TEST_F(BadBytecode, CutOffAnywhere) {
  const std::vector<std::byte> whole = code_.bytes;
  for (size_t n = 0; n < whole.size(); ++n) {
    code_.bytes.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_THROW(load_bytecode(code_), Error);
  }
}
TEST_F(BadBytecode, AnotherVersion) {
  header().version = 999;
  expect_refused("version");
}
TEST_F(BadBytecode, AFrameLargerThanTheScratch) {
  code_.scratch_bytes -= 64;
  expect_refused("scratch");
}
TEST_F(BadBytecode, AnUnknownOp) {
  op(3).op = static_cast<BytecodeOp>(250);
  expect_refused("the op exists");
}
TEST_F(BadBytecode, ASlotOutsideTheFrame) {
  op(find(BytecodeOp::Add)).result = header().frame_bytes;
  expect_refused("in the frame");
}
TEST_F(BadBytecode, AMisalignedSlot) {
  op(find(BytecodeOp::Add)).result += 4;
  expect_refused("aligned");
}
TEST_F(BadBytecode, AnOperandThatNothingWrote) {
  op(find(BytecodeOp::Add)).source[1] = header().frame_bytes - 8;
  expect_refused("written before");
}
TEST_F(BadBytecode, AnOpOnTypesThatItDoesNotTake) {
  op(find(BytecodeOp::Add)).op = BytecodeOp::Sqrt;
  expect_refused("takes these types");
}
TEST_F(BadBytecode, AResultOnItsOperand) {
  BytecodeInstruction& add = op(find(BytecodeOp::Add));
  add.result = add.source[0];
  expect_refused("overlap");
}
TEST_F(BadBytecode, ALoopThatEndsElsewhere) {
  op(find(BytecodeOp::Loop)).aux = 1 << 30;
  expect_refused("block");
}
TEST_F(BadBytecode, ALoopThatDoesNotCount) {
  op(find(BytecodeOp::Loop)).imm = 0;
  expect_refused("counts up");
}
TEST_F(BadBytecode, AParameterThatIsNotThere) {
  op(find(BytecodeOp::Param)).imm = 2;
  expect_refused("slot exists");
}
TEST_F(BadBytecode, NoEnd) {
  op(header().ops - 1).op = BytecodeOp::EndIf;
  expect_refused("End");
}

// Loads or throws; that a mutated program is accepted is possible, that the loader crashes is not.
TEST_F(BadBytecode, RandomDamageNeverCrashesTheLoader) {
  std::mt19937_64 rng(7);
  const std::vector<std::byte> whole = render_bytecode(random_linear(3)).bytes;
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    code_.bytes = whole;
    code_.scratch_bytes = 1 << 24;
    for (int k = 0; k < 3; ++k) code_.bytes[rng() % whole.size()] = static_cast<std::byte>(rng());
    try {
      load_bytecode(code_);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tiny

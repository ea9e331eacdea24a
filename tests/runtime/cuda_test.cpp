// The devices of CUDA over the emulated driver (tests/emulation/fake_cuda.h), which is late and
// strict, and fails where it is told to.
#include "runtime/cuda/cuda.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/kernel_abi.h"
#include "render/ptx/ptx.h"
#include "runtime/cuda/functions.h"
#include "tests/support/add_number.h"
#include "tests/support/failure.h"
#include "tests/support/fake_cuda.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using testing::Setting;
using Values = std::vector<int64_t>;

const StopSignal kNever;  // it stays until whoever obeys it has waited

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fake_.is_there()) GTEST_SKIP() << testing::kNoFakeCuda;
    fake_.reset();
  }
  // Whatever a test did, nothing is left and no context is current.
  void TearDown() override {
    if (!fake_.is_there()) return;
    device_.reset();
    CUctx_st* current = nullptr;
    fake_.function<cuda::Result (*)(CUctx_st**)>("cuCtxGetCurrent")(&current);
    EXPECT_EQ(current, nullptr);
    if (!is_lost_) {
      EXPECT_EQ(fake_.left(), "");
    }
    fake_.reset();
  }

  CudaDevice& device() {
    if (!device_) device_ = make_cuda_device(0);
    return *device_;
  }
  static Ref<Buffer> buffer(Device& on, const Values& values) {
    const auto bytes = std::ssize(values) * 8;
    Ref<Buffer> out = on.allocate(bytes);
    on.copy_in(nullptr, *out, 0, values.data(), bytes);
    return out;
  }
  static Values values_in(Device& on, const Buffer& from) {
    Values out(static_cast<size_t>(from.bytes() / 8));
    on.copy_out(nullptr, out.data(), from, 0, from.bytes());
    return out;
  }
  // out[i] = in[i] + n for begin <= i < end
  static Ref<Executable> add_number(CudaDevice& on, bool as_cubin = true) {
    Code code = render_ptx(add_number_program(), ptx_target(on.facts().compute));
    if (as_cubin) code = on.assemble({&code, 1});
    return on.load({&code, 1})[0];
  }

  const testing::FakeCuda fake_;
  std::unique_ptr<CudaDevice> device_;
  bool is_lost_ = false;  // then nothing is given back
};

// A launch of add_number with what it points to.
struct Adding {
  Adding(Ref<Executable> by, Ref<Buffer> from, Ref<Buffer> into, int64_t number)
      : code(std::move(by)),
        in(std::move(from)),
        out(std::move(into)),
        arguments{{in.get(), 0}, {out.get(), 0}},
        variables{number} {
    launch.executable = code.get();
    launch.arguments = arguments;
    launch.variables = variables;
    launch.end = out->bytes() / 8;
  }
  Adding(const Adding&) = delete;
  Adding& operator=(const Adding&) = delete;

  Ref<Executable> code;
  Ref<Buffer> in, out;
  std::vector<Argument> arguments;
  Values variables;
  Launch launch;
};

TEST_F(CudaTest, SaysWhatItIs) {
  const CudaFacts& facts = device().facts();
  EXPECT_EQ(device().name(), "cuda:0");
  EXPECT_EQ(facts.name, "Emulated GPU 0");
  EXPECT_EQ(facts.compute, 90);
  EXPECT_EQ(facts.multiprocessors, 132);
  EXPECT_EQ(facts.shared_bytes, 227 << 10);
  EXPECT_EQ(facts.memory_bytes, int64_t{2} << 30);
  EXPECT_FALSE(device().sees_host());
  int64_t data = 0;
  expect_failure(failure_of([&] { device().wrap(&data, 8); }), Status::Device,
                 {"does not see the host's memory"});
}

TEST_F(CudaTest, CopiesPieceByPiece) {
  // More than both halves of the pinned memory, and an odd end.
  constexpr int64_t kBytes = (int64_t{13} << 20) + 5;
  std::vector<uint8_t> from(kBytes), to(kBytes);
  std::iota(from.begin(), from.end(), uint8_t{1});
  const Ref<Buffer> there = device().allocate(kBytes + 32), too = device().allocate(kBytes);
  const Ref<Queue> queue = device().make_queue();
  device().copy_in(queue.get(), *there, 32, from.data(), kBytes);
  device().copy(queue.get(), *too, 0, *there, 32, kBytes);
  device().copy_out(queue.get(), to.data(), *too, 0, kBytes);
  device().wait(queue.get());
  EXPECT_EQ(from, to);
  expect_failure(failure_of([&] { device().copy_in(nullptr, *too, 1, from.data(), kBytes); }),
                 Status::InvalidArgument, {"are outside a buffer"});
}

TEST_F(CudaTest, MemoryThatIsGivenBackServesAgain) {
  const int64_t before = fake_.count("memory");
  Ref<Buffer> first = device().allocate(1000);
  first = nullptr;
  EXPECT_EQ(device().kept_bytes(), 1024);
  first = device().allocate(1020);
  EXPECT_EQ(device().kept_bytes(), 0);
  EXPECT_EQ(fake_.count("memory"), before + 1);
  first = nullptr;
  device().release_kept();
  EXPECT_EQ(device().kept_bytes(), 0);
  EXPECT_EQ(fake_.count("memory"), before);
}

TEST_F(CudaTest, WhatIsKeptGoesBeforeMemoryIsShort) {
  const Setting memory("FAKE_CUDA_MEMORY", "1000000");
  Ref<Buffer> first = device().allocate(600'000);
  first = nullptr;
  const Ref<Buffer> larger = device().allocate(900'000);
  expect_failure(failure_of([&] { device().allocate(200'000); }), Status::OutOfMemory,
                 {"cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"});
}

TEST_F(CudaTest, DevicesCopyBetweenThemselvesWhereTheyReachEachOther) {
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  for (const char* reaches : {"1", "0"}) {
    const Setting peers("FAKE_CUDA_PEERS", reaches);
    const auto other = make_cuda_device(1);
    const Ref<Buffer> from = buffer(device(), {1, 2, 3, 4});
    const Ref<Buffer> to = buffer(*other, {0, 0, 0, 0});
    const auto before = device().counts().copies.load();
    copy_between({to.get(), 8}, {from.get(), 16}, 16, kNever);
    EXPECT_EQ(values_in(*other, *to), (Values{0, 3, 4, 0}));
    // Over the host both copy; between themselves the one that gets it.
    EXPECT_EQ(device().counts().copies.load() - before, std::string_view(reaches) == "1" ? 0 : 1);
    copy_between({from.get(), 0}, {to.get(), 8}, 8, kNever);
    EXPECT_EQ(values_in(device(), *from), (Values{3, 2, 3, 4}));
    expect_failure(failure_of([&] { copy_between({to.get(), 24}, {from.get(), 0}, 16, kNever); }),
                   Status::InvalidArgument, {"are outside a buffer"});
  }
}

TEST_F(CudaTest, NothingIsCopiedFromALostDevice) {
  is_lost_ = true;
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  const auto other = make_cuda_device(1);
  const Ref<Buffer> from = buffer(device(), {1}), to = buffer(*other, {0});
  {
    const Setting fail("FAKE_CUDA_FAIL", "cuStreamSynchronize:1:719");
    failure_of([&] { values_in(device(), *from); });
  }
  expect_failure(failure_of([&] { copy_between({to.get(), 0}, {from.get(), 0}, 8, kNever); }),
                 Status::DeviceLost, {"the device cuda:0 is lost"});
  EXPECT_EQ(values_in(*other, *to), (Values{0}));
}

TEST_F(CudaTest, LaunchesPartsOfARange) {
  for (const bool as_cubin : {false, true}) {
    const Ref<Executable> code = add_number(device(), as_cubin);
    // More than there are blocks at once: each has a piece.
    const Values from(20'000, 5);
    Adding adding(code, buffer(device(), from), buffer(device(), Values(20'000, -1)), 37);
    adding.launch.begin = 2;
    adding.launch.end = 19'999;
    device().launch(nullptr, adding.launch, kNever);
    Values wanted(20'000, 42);
    wanted[0] = wanted[1] = wanted[19'999] = -1;
    EXPECT_EQ(values_in(device(), *adding.out), wanted);
    adding.launch.end = 2;  // nothing to do
    device().launch(nullptr, adding.launch, kNever);
  }
}

TEST_F(CudaTest, AQueueIsLate) {
  const Ref<Queue> queue = device().make_queue();
  Adding adding(add_number(device()), buffer(device(), {1, 2}), buffer(device(), {0, 0}), 1);
  const Ref<Event> begin = device().record(*queue);
  device().launch(queue.get(), adding.launch, kNever);
  const Ref<Event> end = device().record(*queue);
  EXPECT_EQ(values_in(device(), *adding.out), (Values{0, 0}));
  device().wait(queue.get());
  EXPECT_EQ(values_in(device(), *adding.out), (Values{2, 3}));
  EXPECT_GT(device().seconds(*begin, *end), 0);
}

TEST_F(CudaTest, AGraphKeepsTheOrderThatLaunchesAskFor) {
  const Ref<Executable> code = add_number(device());
  for (int seed = 1; seed <= 8; ++seed) {
    const Setting order("FAKE_CUDA_SEED", std::to_string(seed));
    // a -> b -> d, a -> c -> d's input; the last reads what both wrote one after the other.
    const Ref<Buffer> a = buffer(device(), {1, 1}), b = buffer(device(), {0, 0}),
                      c = buffer(device(), {0, 0});
    Adding first(code, a, b, 10), second(code, b, c, 100), third(code, c, b, 1000);
    const std::vector<uint32_t> after_first{0}, after_second{0, 1};
    second.launch.after = after_first;
    third.launch.after = after_second;
    std::vector<Launch> launches{first.launch, second.launch, third.launch};
    const Ref<Queue> queue = device().make_queue();
    const Ref<Prepared> prepared = device().prepare(launches);
    prepared->run(queue.get(), kNever);
    device().wait(queue.get());
    EXPECT_EQ(values_in(device(), *b), (Values{1111, 1111}));
    // What changes in its place is seen once that is said.
    second.variables[0] = 200;
    prepared->changed();
    prepared->run(queue.get(), kNever);
    device().wait(queue.get());
    EXPECT_EQ(values_in(device(), *b), (Values{1211, 1211}));
    // One that has nothing to do is left out, and the order is kept.
    launches[1].end = 0;
    prepared->changed();
    prepared->run(queue.get(), kNever);
    device().wait(queue.get());
    EXPECT_EQ(values_in(device(), *b), (Values{1211, 1211}));
    EXPECT_EQ(values_in(device(), *c), (Values{211, 211}));
  }
}

TEST_F(CudaTest, ManyRunsLeaveNothing) {
  const Ref<Queue> queue = device().make_queue();
  const Ref<Executable> code = add_number(device());
  Adding there(code, buffer(device(), {0}), buffer(device(), {0}), 1);
  Adding back(code, there.out, there.in, 0);
  const std::vector<uint32_t> after{0};
  back.launch.after = after;
  const std::vector<Launch> launches{there.launch, back.launch};
  const Ref<Prepared> prepared = device().prepare(launches);
  std::string before;
  for (int i = 0; i < 1000; ++i) {
    prepared->changed();
    prepared->run(queue.get(), kNever);
    EXPECT_EQ(device().status(*queue), 0);
    const Ref<Buffer> result = device().allocate(1 + i % 7 * 300);
    if (i == 100) before = fake_.left();
  }
  EXPECT_EQ(fake_.left(), before);
  EXPECT_EQ(values_in(device(), *there.in), (Values{1000}));
}

// in[0] is checked to be positive.
LinearProgram checked_program() {
  LinearProgram p;
  p.name = "checked";
  p.params = {{kInt64, true, false}};
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), zero = p.add(Op::Const, kInt64);
  const LinearId value = p.add(Op::Load, kInt64, {in, zero});
  const LinearId ok = p.add(Op::Less, kBool, {zero, value});
  p.add(Op::Check, kVoid, {ok, value}, 0, 3);
  return p;
}

TEST_F(CudaTest, AFailedCheckIsTheQueuesStatus) {
  Code code = render_ptx(checked_program(), ptx_target(90));
  const Ref<Executable> loaded = device().load({&code, 1})[0];
  const Ref<Queue> queue = device().make_queue();
  const auto status_of = [&](int64_t value) {
    const Ref<Buffer> in = buffer(device(), {value});
    const std::vector<Argument> arguments{{in.get(), 0}};
    Launch launch;
    launch.executable = loaded.get();
    launch.arguments = arguments;
    device().clear_status(*queue);
    device().launch(queue.get(), launch, kNever);
    return device().status(*queue);
  };
  EXPECT_EQ(status_of(1), 0);
  EXPECT_EQ(status_of(-7), check_status(3, -7));
  EXPECT_EQ(status_of(1), 0);
}

// The second entry subtracts here, which tells it from the first.
TEST_F(CudaTest, ArgumentsThatAreNotAlignedHaveAnEntryOfTheirOwn) {
  LinearProgram any = add_number_program();
  any.name += kAnyAlignment;
  for (LinearOp& op : any.ops)
    if (op.op == Op::Add) op.op = Op::Sub;
  const std::vector<Code> units{render_ptx(add_number_program(), ptx_target(90)),
                                render_ptx(any, ptx_target(90))};
  const Code code = device().assemble(units);
  Adding adding(device().load({&code, 1})[0], buffer(device(), {10, 20, 30}),
                buffer(device(), {0, 0, 0}), 1);
  adding.launch.end = 2;
  device().launch(nullptr, adding.launch, kNever);
  EXPECT_EQ(values_in(device(), *adding.out), (Values{11, 21, 0}));
  // Also where only what a graph's node points to moves.
  const std::vector<Launch> launches{adding.launch, adding.launch};
  const Ref<Prepared> prepared = device().prepare(launches);
  const Ref<Queue> queue = device().make_queue();
  prepared->run(queue.get(), kNever);
  adding.arguments[1].byte_offset = 8;
  prepared->changed();
  prepared->run(queue.get(), kNever);
  device().wait(queue.get());
  EXPECT_EQ(values_in(device(), *adding.out), (Values{11, 9, 19}));
}

TEST_F(CudaTest, WhatTheAssemblerRefusesIsTold) {
  Code code;
  code.kind = CodeKind::Ptx;
  code.name = "wrong";
  code.entry = "wrong";
  code.text =
      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry wrong() { no.way; }\n";
  expect_failure(failure_of([&] { device().load({&code, 1}); }), Status::Device,
                 {"kernel wrong", "CUDA_ERROR_INVALID_PTX", "unknown instruction"});
  code.text = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry other() { ret; }\n";
  expect_failure(failure_of([&] { device().load({&code, 1}); }), Status::Device,
                 {"the module has no kernel wrong"});
  code.text = ".version 7.8\n.target sm_100\n.address_size 64\n.visible .entry wrong() { ret; }\n";
  expect_failure(failure_of([&] { device().assemble({&code, 1}); }), Status::Device,
                 {"cuLinkAddData_v2: CUDA_ERROR_NO_BINARY_FOR_GPU"});
}

TEST_F(CudaTest, WhyThereIsNoDevice) {
  const auto refused = [&](const char* name, const char* value, std::string_view words) {
    const Setting setting(name, value);
    fake_.reset();
    expect_failure(failure_of([&] { make_cuda_device(0); }), Status::Device, {words});
  };
  refused("FAKE_CUDA_VERSION", "11030", "the CUDA driver is of version 11.3; needed is 11.4");
  refused("FAKE_CUDA_DEVICES", "0", "CUDA_ERROR_NO_DEVICE");
  refused("FAKE_CUDA_COMPUTE", "61", "it is of compute capability 6.1; needed is 7.5");
  fake_.reset();
  expect_failure(failure_of([&] { make_cuda_device(1); }), Status::Device,
                 {"no device cuda:1: the CUDA driver has 1"});
  EXPECT_EQ(list_cuda_devices().size(), 1u);
}

// All that a user of the device does, with calls of every function of the driver.
void do_all(CudaDevice& on) {
  Code ptx = render_ptx(add_number_program(), ptx_target(90));
  const Code cubin = on.assemble({&ptx, 1});
  const Ref<Executable> code = on.load({&cubin, 1})[0];
  ptx.shared_bytes = 64 << 10;
  on.load({&ptx, 1});
  const Values from{1, 2, 3};
  const Ref<Buffer> a = on.allocate(24), b = on.allocate(24);
  const Ref<Queue> queue = on.make_queue();
  on.copy_in(queue.get(), *a, 0, from.data(), 24);
  on.copy(queue.get(), *b, 0, *a, 0, 24);
  on.clear_status(*queue);
  Adding there(code, a, b, 1), back(code, b, a, 1);
  const std::vector<uint32_t> after{0};
  back.launch.after = after;
  const std::vector<Launch> launches{there.launch, back.launch};
  const Ref<Event> begin = on.record(*queue);
  const Ref<Prepared> prepared = on.prepare(launches);
  prepared->run(queue.get(), kNever);
  there.variables[0] = 2;
  prepared->changed();
  prepared->run(queue.get(), kNever);
  on.launch(queue.get(), back.launch, kNever);
  const Ref<Event> end = on.record(*queue);
  EXPECT_FALSE(on.has_happened(*end));
  on.wait_until(*end);
  EXPECT_TRUE(on.has_happened(*end));
  on.wait(queue.get());
  EXPECT_EQ(on.status(*queue), 0);
  on.seconds(*begin, *end);
  Values to(3);
  on.copy_out(queue.get(), to.data(), *a, 0, 24);
  on.wait(queue.get());
  std::vector<std::byte> many(1 << 20);
  const Ref<Buffer> large = on.allocate(1 << 20);
  on.copy_in(nullptr, *large, 0, many.data(), 1 << 20);
  EXPECT_EQ(to, (Values{6, 7, 8}));
  const auto other = make_cuda_device(1);
  const Ref<Buffer> copy = other->allocate(24);
  copy_between({copy.get(), 0}, {a.get(), 0}, 24, kNever);
  other->copy_out(nullptr, to.data(), *copy, 0, 24);
  EXPECT_EQ(to, (Values{6, 7, 8}));
}

constexpr const char* kSymbols[] = {
#define CUDA_FUNCTION(symbol, ...) #symbol,
#include "runtime/cuda/functions.def"
};
bool is_of_words(std::string_view symbol) {
  return symbol == "cuGetErrorName" || symbol == "cuGetErrorString";
}
// What a destructor calls has nobody to tell.
bool cleans_up(std::string_view symbol) {
  for (const std::string_view word : {"Destroy", "Free", "Release", "Unload", "PopCurrent"})
    if (symbol.find(word) != std::string_view::npos) return true;
  return false;
}

TEST_F(CudaTest, AnErrorOfEachCallIsToldAndHarmsNothing) {
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  constexpr int kFailures = 4;  // of the first calls
  for (const std::string symbol : kSymbols) {
    if (is_of_words(symbol)) continue;
    bool was_told = false;
    for (int n = 1; n <= kFailures; ++n) {
      fake_.reset();
      Error error(Status::Ok, "");
      {
        const Setting fail("FAKE_CUDA_FAIL", cat(symbol, ":", n, ":801"));
        error = failure_of([&] { do_all(*make_cuda_device(0)); });
      }
      if (error.status() == Status::Ok) continue;
      was_told = true;
      EXPECT_EQ(error.status(), Status::Device) << symbol;
      // Which version a driver without a version has is not known.
      if (symbol != "cuDriverGetVersion") {
        EXPECT_NE(error.message().find(symbol + ": CUDA error 801"), std::string::npos)
            << symbol << ": " << error.message();
      }
      if (!cleans_up(symbol)) {
        EXPECT_EQ(fake_.left(), "") << symbol << ", call " << n;
      }
      do_all(*make_cuda_device(0));
    }
    EXPECT_TRUE(was_told || cleans_up(symbol)) << symbol;
  }
  fake_.reset();  // a context that could not be popped is current
}

TEST_F(CudaTest, OutOfMemoryIsToldAsThat) {
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  for (const char* symbol : {"cuMemAlloc_v2", "cuMemHostAlloc", "cuModuleLoadDataEx",
                             "cuGraphInstantiateWithFlags", "cuStreamCreate"}) {
    fake_.reset();
    const Setting fail("FAKE_CUDA_FAIL", cat(symbol, ":1:2"));
    expect_failure(failure_of([&] { do_all(*make_cuda_device(0)); }), Status::OutOfMemory,
                   {symbol, "CUDA_ERROR_OUT_OF_MEMORY"});
    EXPECT_EQ(fake_.left(), "") << symbol;
  }
}

// Wherever the driver says that the device is lost, it stays lost, and another one lives.
TEST_F(CudaTest, ALostDeviceStaysLost) {
  is_lost_ = true;
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  for (const char* symbol : {"cuStreamSynchronize", "cuMemcpyHtoDAsync_v2", "cuLaunchKernel",
                             "cuGraphLaunch", "cuEventRecord", "cuModuleLoadDataEx"}) {
    fake_.reset();
    const auto lost = make_cuda_device(0), other = make_cuda_device(1);
    const Ref<Buffer> buffer = lost->allocate(64);
    {
      const Setting fail("FAKE_CUDA_FAIL", cat(symbol, ":1:719"));
      expect_failure(failure_of([&] { do_all(*lost); }), Status::DeviceLost,
                     {"the device cuda:0 is lost", symbol, "CUDA_ERROR_LAUNCH_FAILED"});
    }
    expect_failure(failure_of([&] { do_all(*lost); }), Status::DeviceLost, {symbol});
    expect_failure(failure_of([&] { lost->allocate(1 << 20); }), Status::DeviceLost, {symbol});
    do_all(*other);
  }
}

// Stores to out[1000000].
LinearProgram faulty_program() {
  LinearProgram p;
  p.name = "faulty";
  p.params = {{kInt64, false, true}};
  const LinearId out = p.add(Op::Param, kAddress, {}, 0);
  const LinearId far = p.add(Op::Const, kInt64, {}, 1'000'000);
  p.add(Op::Store, kVoid, {out, far, far});
  return p;
}

// Another library of the process has the same primary context: it finds its context current and
// its memory as it was whatever ours does, and either may go first.
TEST_F(CudaTest, AnotherLibraryMayHaveThePrimaryContextToo) {
  using cuda::Result;
  const auto retain = fake_.function<Result (*)(CUctx_st**, int)>("cuDevicePrimaryCtxRetain");
  const auto release = fake_.function<Result (*)(int)>("cuDevicePrimaryCtxRelease_v2");
  const auto push = fake_.function<Result (*)(CUctx_st*)>("cuCtxPushCurrent_v2");
  const auto pop = fake_.function<Result (*)(CUctx_st**)>("cuCtxPopCurrent_v2");
  const auto get_current = fake_.function<Result (*)(CUctx_st**)>("cuCtxGetCurrent");
  const auto allocate = fake_.function<Result (*)(uint64_t*, size_t)>("cuMemAlloc_v2");
  const auto give_back = fake_.function<Result (*)(uint64_t)>("cuMemFree_v2");
  ASSERT_EQ(fake_.function<Result (*)(unsigned)>("cuInit")(0), cuda::kSuccess);
  CUctx_st *others = nullptr, *current = nullptr;
  ASSERT_EQ(retain(&others, 0), cuda::kSuccess);
  ASSERT_EQ(push(others), cuda::kSuccess);
  uint64_t memory = 0;
  ASSERT_EQ(allocate(&memory, 64), cuda::kSuccess);
  const auto works = [&] {
    Adding one(add_number(device()), buffer(device(), {1, 2, 3}), buffer(device(), {0, 0, 0}), 5);
    device().launch(nullptr, one.launch, kNever);
    EXPECT_EQ(values_in(device(), *one.out), Values({6, 7, 8}));
  };
  works();
  EXPECT_EQ(get_current(&current), cuda::kSuccess);
  EXPECT_EQ(current, others);
  device_.reset();
  EXPECT_EQ(get_current(&current), cuda::kSuccess);
  EXPECT_EQ(current, others) << "still retained by the other";
  EXPECT_EQ(give_back(memory), cuda::kSuccess) << "its memory was not ours to free";
  // Now the other goes first.
  works();
  ASSERT_EQ(pop(&current), cuda::kSuccess);
  ASSERT_EQ(release(0), cuda::kSuccess);
  works();
}

TEST_F(CudaTest, AKernelThatFaultsLosesItsDeviceAlone) {
  is_lost_ = true;
  const Setting devices("FAKE_CUDA_DEVICES", "2");
  const auto other = make_cuda_device(1);
  const Ref<Buffer> there = buffer(*other, {1, 2, 3});
  Code code = render_ptx(faulty_program(), ptx_target(90));
  const Ref<Executable> faulty = device().load({&code, 1})[0];
  const Ref<Buffer> out = buffer(device(), {0});
  const Ref<Queue> queue = device().make_queue();
  const std::vector<Argument> arguments{{out.get(), 0}};
  Launch launch;
  launch.executable = faulty.get();
  launch.arguments = arguments;
  device().launch(queue.get(), launch, kNever);
  expect_failure(failure_of([&] { device().wait(queue.get()); }), Status::DeviceLost,
                 {"cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"});
  EXPECT_NE(fake_.fault().find("in no allocation of the device"), std::string::npos)
      << fake_.fault();
  expect_failure(failure_of([&] { values_in(device(), *out); }), Status::DeviceLost);
  EXPECT_EQ(values_in(*other, *there), (Values{1, 2, 3}));
  // Memory of one device is not the other's.
  EXPECT_EQ(fake_.count("context"), 2);
}

TEST_F(CudaTest, AForkLeavesTheDeviceBehind) {
  const Ref<Buffer> there = buffer(device(), {5});
  const pid_t child = fork();
  if (child == 0) {
    const Error error = failure_of([&] { values_in(device(), *there); });
    const bool is_told = error.status() == Status::DeviceLost &&
                         error.message().find("stayed behind") != std::string::npos;
    const int64_t before = fake_.count("calls");
    device_.reset();
    _exit(is_told && fake_.count("calls") == before ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(values_in(device(), *there), (Values{5}));
}

TEST_F(CudaTest, AStopIsThrownFromTheWait) {
  StopSignal stop;
  auto token = make_ref<CancelToken>();
  stop.set_token(token);
  const Ref<Queue> queue = device().make_queue();
  Adding adding(add_number(device()), buffer(device(), {1}), buffer(device(), {0}), 1);
  device().launch(queue.get(), adding.launch, stop);
  token->set();
  expect_failure(failure_of([&] { device().wait(queue.get()); }), Status::Cancelled);
  device().wait(queue.get());
}

}  // namespace
}  // namespace tiny

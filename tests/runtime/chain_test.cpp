// Launches that are given together come after those that they must come after, on pools of any
// size, whoever else launches at the same time.
#include "runtime/cpu/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "render/bytecode.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/executable.h"
#include "tests/support/add_number.h"

namespace tiny {
namespace {

// As bytecode, so that the thread sanitizer sees what it reads and writes.
Ref<Executable> add_number(Device& device) {
  const LinearProgram p = add_number_program();
  verify(p);
  const Code code = render_bytecode(p);
  return device.load(std::span(&code, 1))[0];
}

// Rows of buffers: each launch adds to what one before it, another in each row, has stored.
class Rows {
 public:
  Rows(Device& device, const Ref<Executable>& executable, int64_t length, size_t rows, size_t steps)
      : queue_(device.make_queue()) {
    const size_t count = rows * (steps + 1);
    for (size_t b = 0; b < count; ++b) {
      buffers_.push_back(device.allocate(length * 8));
      auto* values = reinterpret_cast<int64_t*>(buffers_.back()->host());
      for (int64_t i = 0; i < length; ++i) values[i] = b < rows ? i : -1;
    }
    arguments_.resize(2 * rows * steps);
    after_.resize(rows * steps);
    for (size_t step = 0; step < steps; ++step)
      for (size_t row = 0; row < rows; ++row) {
        const size_t k = step * rows + row;
        const size_t from = (row + step) % rows;  // the row whose value is gone on with
        arguments_[2 * k] = {buffers_[step * rows + from].get(), 0};
        arguments_[2 * k + 1] = {buffers_[(step + 1) * rows + row].get(), 0};
        if (step > 0) after_[k] = {static_cast<uint32_t>((step - 1) * rows + from)};
        Launch& launch = launches_.emplace_back();
        launch.executable = executable.get();
        // Every third is short.
        launch.end = k % 3 == 0 ? std::min<int64_t>(length, 2) : length;
      }
    for (size_t k = 0; k < launches_.size(); ++k) {
      launches_[k].arguments = std::span(arguments_).subspan(2 * k, 2);
      launches_[k].variables = number_;
      launches_[k].after = after_[k];
    }
  }

  void run_and_check(Device& device, const StopSignal& stop) {
    for (const Launch& launch : launches_) std::fill_n(stored(launch), launch.end, int64_t{-1});
    device.launch_all(queue_.get(), launches_, stop);
    for (const Launch& launch : launches_) {
      const auto* read = reinterpret_cast<const int64_t*>(launch.arguments[0].buffer->host());
      for (int64_t i = 0; i < launch.end; ++i) ASSERT_EQ(stored(launch)[i], read[i] + 5) << i;
    }
  }
  void run(Device& device, const StopSignal& stop) {
    device.launch_all(queue_.get(), launches_, stop);
  }

 private:
  static int64_t* stored(const Launch& launch) {
    return reinterpret_cast<int64_t*>(launch.arguments[1].buffer->host());
  }

  Ref<Queue> queue_;
  const int64_t number_[1] = {5};
  std::vector<Ref<Buffer>> buffers_;
  std::vector<Argument> arguments_;
  std::vector<std::vector<uint32_t>> after_;
  std::vector<Launch> launches_;
};

TEST(Chain, EachLaunchSeesWhatItComesAfter) {
  for (const int threads : {1, 2, 3, 7}) {
    const auto device = make_cpu_device({.threads = threads});
    const Ref<Executable> executable = add_number(*device);
    for (const int64_t length : {1, 3, 40, 600, 5000})
      for (const size_t rows : {size_t{1}, size_t{3}}) {
        Rows chain(*device, executable, length, rows, 12);
        for (int again = 0; again < 6; ++again) chain.run_and_check(*device, StopSignal());
      }
  }
}

TEST(Chain, MoreCallersThanCoresGetTheirOwnResults) {
  const auto device = make_cpu_device({.threads = 2});
  const Ref<Executable> executable = add_number(*device);
  std::vector<std::thread> callers;
  for (int t = 0; t < 5; ++t)
    callers.emplace_back([&, t] {
      Rows chain(*device, executable, 400 + 100 * t, 3, 10);
      for (int again = 0; again < 30; ++again) chain.run_and_check(*device, StopSignal());
    });
  for (std::thread& t : callers) t.join();
}

// A pool of the caller's that does one task after the other, the last one first.
TEST(Chain, ThreadsOfTheCallersMayComeOneAfterTheOther) {
  OwnThreads own;
  own.run = [](void*, void (*task)(void*, size_t), void* data, size_t count) {
    while (count-- > 0) task(data, count);
  };
  const auto device = make_cpu_device({.threads = 4, .own = own});
  const Ref<Executable> executable = add_number(*device);
  Rows chain(*device, executable, 20'000, 3, 6);
  for (int again = 0; again < 10; ++again) chain.run_and_check(*device, StopSignal());
}

// Notes what each worker does, in order.
class Notes : public CpuExecutable {
 public:
  explicit Notes(int workers) : CpuExecutable("notes", 0), done_(static_cast<size_t>(workers)) {}
  void run(const KernelArgs& args) const override {
    for (int64_t i = args.begin; i < args.end; ++i)
      done_[static_cast<size_t>(args.worker)].push_back(i);
  }
  const std::vector<int64_t>& of(int worker) const { return done_[static_cast<size_t>(worker)]; }

 private:
  mutable std::vector<std::vector<int64_t>> done_;
};

TEST(Chain, AWorkerTakesItsOwnShareOfEachLaunchFirst) {
  constexpr int kWorkers = 3, kLaunches = 5;
  constexpr int64_t kIterations = kWorkers * kPiecesPerWorker;
  for (int again = 0; again < 20; ++again) {
    ThreadPool pool(kWorkers);
    std::unique_ptr<AlignedMemory> scratch[kWorkers];
    for (auto& s : scratch) s = std::make_unique<AlignedMemory>(64);
    std::vector<Ref<Notes>> launches;
    Chain chain;
    chain.begin(0, kWorkers, StopSignal());
    std::vector<uint32_t> numbers(kLaunches);
    for (uint32_t k = 0; k < kLaunches; ++k) {
      launches.push_back(make_ref<Notes>(kWorkers));
      KernelArgs args{};
      args.end = kIterations;
      numbers[k] = k;
      const std::span<const uint32_t> before = std::span(numbers).first(k);
      chain.add({launches.back().get(), args, 2e4, before});
    }
    ASSERT_TRUE(pool.try_acquire());
    chain.run(pool, true, scratch);
    for (const Ref<Notes>& launch : launches) {
      size_t all = 0;
      for (int worker = 0; worker < kWorkers; ++worker) {
        const std::vector<int64_t>& done = launch->of(worker);
        all += done.size();
        const auto is_own = [&](int64_t i) { return i / kPiecesPerWorker == worker; };
        EXPECT_TRUE(std::ranges::is_partitioned(done, is_own)) << worker;
      }
      EXPECT_EQ(all, size_t{kIterations});
    }
  }
}

TEST(Chain, LongLaunchesAreCutFiner) {
  const Ref<Notes> launch = make_ref<Notes>(2);
  const auto pieces = [&](int64_t iterations, double nanoseconds) {
    Chain chain;
    chain.begin(0, 2, StopSignal());
    KernelArgs args{};
    args.end = iterations;
    chain.add({launch.get(), args, nanoseconds, {}});
    return chain.pieces();
  };
  EXPECT_EQ(pieces(100, 3000), 1);
  EXPECT_EQ(pieces(100, 5000), 5);
  EXPECT_EQ(pieces(100, 1e5), 2 * kPiecesPerWorker);
  EXPECT_EQ(pieces(100, 1e6), 50);
  EXPECT_EQ(pieces(7, 1e6), 7);
  EXPECT_EQ(pieces(1'000'000, 1e12), 2 * kPiecesMost);
}

// Both directions of a recurrence: the steps of one follow each other, and wait for no other.
TEST(Chain, ShortLaunchesThatDoNotWaitForEachOtherAreApart) {
  const Ref<Notes> launch = make_ref<Notes>(2);
  const auto pieces = [&](double nanoseconds, bool waits) {
    Chain chain;
    chain.begin(0, 2, StopSignal());
    std::vector<std::vector<uint32_t>> after(8);
    for (uint32_t i = 1; i < 8; ++i)
      if (waits || i > 1) after[i] = {waits ? i - 1 : i - 2};
    for (const auto& a : after) {
      Chain::Step step;
      step.executable = launch.get();
      step.args.end = 1;
      step.nanoseconds = nanoseconds;
      step.after = a;
      chain.add(step);
    }
    return chain.pieces();
  };
  EXPECT_EQ(pieces(2000, false), 8);
  EXPECT_EQ(pieces(2000, true), 2) << "one after the other, they are pieces of eight microseconds";
  EXPECT_EQ(pieces(100, false), 1) << "to hand over so little takes longer";
}

TEST(Chain, WhatIsCancelledThrowsAndMayRunAgain) {
  const auto device = make_cpu_device({.threads = 2});
  const Ref<Executable> executable = add_number(*device);
  Rows chain(*device, executable, 20'000, 2, 20);
  const Ref<CancelToken> token = make_ref<CancelToken>();
  StopSignal stop;
  stop.set_token(token);
  chain.run_and_check(*device, stop);
  token->set();
  EXPECT_THROW(chain.run(*device, stop), Error);
  token->clear();
  EXPECT_THROW(chain.run(*device, stop), Error) << "until the signal begins anew";
  stop.begin(0);
  for (int again = 0; again < 3; ++again) chain.run_and_check(*device, stop);
}

TEST(Chain, AnArgumentOutsideOfItsBufferIsRefusedAndNobodyHangs) {
  const auto device = make_cpu_device({.threads = 2});
  const Ref<Executable> executable = add_number(*device);
  Rows chain(*device, executable, 5000, 2, 10);
  for (int again = 0; again < 3; ++again) chain.run_and_check(*device, StopSignal());
  const Ref<Buffer> buffer = device->allocate(64);
  const Argument outside[] = {{buffer.get(), 0}, {buffer.get(), 65}};
  const int64_t number[] = {1};
  Launch launches[3];
  for (Launch& launch : launches) {
    launch.executable = executable.get();
    launch.arguments = outside;
    launch.variables = number;
    launch.end = 5000;
  }
  const Ref<Queue> queue = device->make_queue();
  EXPECT_THROW(device->launch_all(queue.get(), launches, StopSignal()), Error);
  chain.run_and_check(*device, StopSignal());
}

}  // namespace
}  // namespace tiny

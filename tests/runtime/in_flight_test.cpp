// Work in flight on the device that does nothing before somebody waits: order, what is held, and
// threads that give and wait at once.
#include "runtime/in_flight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/error.h"
#include "render/bytecode.h"
#include "runtime/far/far.h"
#include "tests/support/add_number.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;
using Values = std::vector<int64_t>;

class InFlightTest : public ::testing::Test {
 protected:
  Ref<Buffer> buffer(const Values& values) {
    const auto bytes = std::ssize(values) * 8;
    Ref<Buffer> out = device_->allocate(bytes);
    device_->copy_in(nullptr, *out, 0, values.data(), bytes);
    return out;
  }
  Values values_in(const Buffer& from) {
    Values out(static_cast<size_t>(from.bytes() / 8));
    device_->copy_out(nullptr, out.data(), from, 0, from.bytes());
    return out;
  }
  // to[i] = from[i] + number, in flight.
  void add(const Ref<Buffer>& from, const Ref<Buffer>& to, int64_t number) {
    const Argument arguments[] = {{from.get(), 0}, {to.get(), 0}};
    const Launch launch{code_.get(), arguments, {&number, 1}, 0, to->bytes() / 8};
    flight().give(make_ref<const Needs>(std::vector{from, to}, std::vector<Ref<RefCounted>>{code_}),
                  [&](const Queue& queue) { device_->launch(&queue, launch, flight().never()); });
  }
  InFlight& flight() { return device_->in_flight(); }

  const std::unique_ptr<Device> device_ = make_far_device();
  const Code text_ = render_bytecode(add_number_program());
  const Ref<Executable> code_ = device_->load({&text_, 1})[0];
};

TEST_F(InFlightTest, WhatIsReadIsDoneAndLaterWorkIsNot) {
  const Ref<Buffer> a = buffer({1, 2}), b = buffer({0, 0}), c = buffer({0, 0});
  add(a, b, 10);
  add(b, b, 100);
  add(b, c, 1000);
  add(c, c, 1);
  EXPECT_EQ(flight().count(), 4u);
  // A write to it has to wait for the work that reads it, and nothing else does.
  const int64_t five = 5;
  device_->copy_in(nullptr, *a, 0, &five, 8);
  EXPECT_EQ(flight().count(), 3u);
  EXPECT_EQ(values_in(*a), (Values{5, 2}));
  EXPECT_EQ(values_in(*c), (Values{1112, 1113}));
  EXPECT_EQ(flight().count(), 0u);
  EXPECT_EQ(values_in(*b), (Values{111, 112}));
  EXPECT_FALSE(flight().wait());
}

TEST_F(InFlightTest, BuffersLiveAsLongAsTheirWork) {
  Ref<Buffer> a = buffer({1}), b = buffer({0});
  const Ref<Buffer> c = buffer({0});
  const int64_t before = device_->memory().used();
  add(a, b, 1);
  add(b, c, 1);
  a = b = nullptr;
  EXPECT_EQ(device_->memory().used(), before);
  EXPECT_EQ(values_in(*c), (Values{3}));
  EXPECT_EQ(device_->memory().used(), before - 16);
}

TEST_F(InFlightTest, TooMuchWaitsForTheOldest) {
  const Ref<Buffer> a = buffer({0});
  size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    add(a, a, 1);
    most = std::max(most, flight().count());
  }
  EXPECT_LE(most, 64u);
  EXPECT_GT(most, 32u);
  EXPECT_EQ(values_in(*a), (Values{1000}));
}

TEST_F(InFlightTest, MemoryThatIsShortComesFromWhatIsDone) {
  device_->memory().set_limit(100 * 8);
  const Ref<Buffer> a = buffer(Values(30, 1));
  for (int i = 0; i < 50; ++i) add(a, device_->allocate(30 * 8), 1);
  flight().wait();
  expect_failure(failure_of([&] { device_->allocate(200 * 8); }), Status::Limit);
}

// What was given before the error is done when it is told.
TEST_F(InFlightTest, AnErrorOnTheWayWaitsForWhatIsUnderWay) {
  const Ref<Buffer> from = buffer({1});
  Ref<Buffer> to = buffer({0});
  const int64_t number = 4;
  const Argument arguments[] = {{from.get(), 0}, {to.get(), 0}};
  const Launch launch{code_.get(), arguments, {&number, 1}, 0, 1};
  expect_failure(failure_of([&] {
                   flight().give(
                       make_ref<const Needs>(std::vector{from, to}, std::vector<Ref<RefCounted>>{}),
                       [&](const Queue& queue) {
                         device_->launch(&queue, launch, flight().never());
                         throw Error(Status::Cancelled, "in between");
                       });
                 }),
                 Status::Cancelled, {"in between"});
  EXPECT_EQ(flight().count(), 0u);
  EXPECT_EQ(values_in(*to), (Values{5}));
}

TEST_F(InFlightTest, ThreadsGiveAndReadAtOnce) {
  const Ref<Buffer> shared = buffer({0});
  std::vector<std::thread> threads;
  for (int64_t of = 0; of < 4; ++of)
    threads.emplace_back([&, of] {
      for (int64_t i = 0; i < 50; ++i) {
        const Ref<Buffer> mine = buffer({of, i}), result = device_->allocate(16);
        add(mine, result, 7);
        add(shared, shared, 1);
        if (i % 3 == 0) {
          EXPECT_EQ(values_in(*result), (Values{of + 7, i + 7}));
        }
        if (i % 5 == 0) flight().retire();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(values_in(*shared), (Values{200}));
}

}  // namespace
}  // namespace tiny

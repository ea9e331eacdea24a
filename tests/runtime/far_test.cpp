// The device that the host does not see, and whose queues are late: what its users must not rely
// on.
#include "runtime/far/far.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "render/bytecode.h"
#include "tests/support/add_number.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;

class FarTest : public ::testing::Test {
 protected:
  Ref<Buffer> buffer(const std::vector<int64_t>& values) {
    const auto bytes = std::ssize(values) * 8;
    Ref<Buffer> out = device_->allocate(bytes);
    device_->copy_in(nullptr, *out, 0, values.data(), bytes);
    return out;
  }
  std::vector<int64_t> values_in(const Buffer& from) {
    std::vector<int64_t> out(static_cast<size_t>(from.bytes() / 8));
    device_->copy_out(nullptr, out.data(), from, 0, from.bytes());
    return out;
  }

  const std::unique_ptr<Device> device_ = make_far_device();
  const Ref<Queue> queue_ = device_->make_queue();
};

using Values = std::vector<int64_t>;

TEST_F(FarTest, ItsMemoryIsNotTheHosts) {
  EXPECT_FALSE(device_->sees_host());
  EXPECT_EQ(buffer({1, 2})->host(), nullptr);
  int64_t data = 0;
  expect_failure(failure_of([&] { device_->wrap(&data, 8); }), Status::Device,
                 {"far does not see the host's memory"});
  Allocator allocator;
  allocator.allocate = [](void*, size_t, size_t) -> void* {
    ADD_FAILURE() << "memory of the host serves a device that does not see it";
    return nullptr;
  };
  device_->set_allocator(allocator);
  EXPECT_EQ(values_in(*buffer({3})), (Values{3}));
}

TEST_F(FarTest, AQueueDoesNothingBeforeSomebodyWaits) {
  const Ref<Buffer> there = buffer({1, 2});
  Values from{7, 8}, to{0, 0};
  device_->copy_in(queue_.get(), *there, 0, from.data(), 16);
  device_->copy_out(queue_.get(), to.data(), *there, 0, 16);
  EXPECT_EQ(values_in(*there), (Values{1, 2}));
  from[0] = 9;
  device_->wait(queue_.get());
  EXPECT_EQ(to, (Values{9, 8}));
  expect_failure(failure_of([&] { device_->copy_in(queue_.get(), *there, 8, from.data(), 16); }),
                 Status::InvalidArgument, {"outside a buffer of 16"});
}

TEST_F(FarTest, LaunchesKeepWhatTheyWereGiven) {
  const Code code = render_bytecode(add_number_program());
  const Ref<Executable> executable = device_->load({&code, 1})[0];
  const Ref<Buffer> in = buffer({1, 2, 3}), out = buffer({0, 0, 0});
  std::array<Argument, 2> arguments{{{in.get(), 0}, {out.get(), 0}}};
  std::array<int64_t, 1> n{10};
  const Launch launch{executable.get(), arguments, n, 0, 3};
  const StopSignal stop;
  device_->launch(queue_.get(), launch, stop);
  arguments[1].byte_offset = 8;
  n[0] = 100;
  EXPECT_EQ(values_in(*out), (Values{0, 0, 0}));
  device_->wait(queue_.get());
  EXPECT_EQ(values_in(*out), (Values{11, 12, 13}));

  arguments[1].byte_offset = 0;
  const Ref<Prepared> prepared = device_->prepare({&launch, 1});
  prepared->run(queue_.get(), stop);
  device_->wait(queue_.get());
  EXPECT_EQ(values_in(*out), (Values{101, 102, 103}));
  n[0] = 200;
  prepared->run(queue_.get(), stop);
  device_->wait(queue_.get());
  EXPECT_EQ(values_in(*out), (Values{101, 102, 103})) << "it was not told";
  prepared->changed();
  prepared->run(queue_.get(), stop);
  device_->wait(queue_.get());
  EXPECT_EQ(values_in(*out), (Values{201, 202, 203}));
}

TEST_F(FarTest, AStatusIsTheQueues) {
  LinearProgram p;
  p.name = "check";
  p.add(Op::Check, kVoid, {p.add(Op::Const, kBool, {}, 0), p.add(Op::Const, kInt64, {}, 5)}, 0, 1);
  const Code code = render_bytecode(p);
  const Ref<Executable> executable = device_->load({&code, 1})[0];
  const Ref<Queue> other = device_->make_queue();
  device_->launch(queue_.get(), {executable.get(), {}, {}, 0, 1}, StopSignal());
  device_->clear_status(*other);
  EXPECT_EQ(check_position(device_->status(*queue_)), 5);
  EXPECT_EQ(device_->status(*other), 0);
  device_->clear_status(*queue_);
  EXPECT_EQ(device_->status(*queue_), 0);
}

TEST_F(FarTest, EventsHappenWhenTheWorkDoes) {
  const Ref<Event> begin = device_->record(*queue_), end = device_->record(*queue_);
  expect_failure(failure_of([&] { device_->seconds(*begin, *end); }), Status::Internal,
                 {"has not happened"});
  device_->wait(queue_.get());
  EXPECT_GE(device_->seconds(*begin, *end), 0);
}

TEST_F(FarTest, WhatIsToEndEarlyIsToldToWhoWaits) {
  const Code code = render_bytecode(add_number_program());
  const Ref<Executable> executable = device_->load({&code, 1})[0];
  const Ref<Buffer> in = buffer({1}), out = buffer({0});
  const Argument arguments[] = {{in.get(), 0}, {out.get(), 0}};
  const int64_t n = 10;
  const Ref<CancelToken> token = make_ref<CancelToken>();
  StopSignal stop;
  stop.set_token(token);
  stop.begin(0);
  device_->launch(queue_.get(), {executable.get(), arguments, {&n, 1}, 0, 1}, stop);
  token->set();
  expect_failure(failure_of([&] { device_->wait(queue_.get()); }), Status::Cancelled);
  device_->wait(queue_.get());  // nothing is left
  EXPECT_EQ(values_in(*out), (Values{0}));
}

}  // namespace
}  // namespace tiny

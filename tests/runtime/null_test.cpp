// The device that computes nothing keeps the contract of a device in all else.
#include "runtime/null/null.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace tiny {
namespace {

TEST(Null, MemoryHasASizeAndNoBytes) {
  const std::unique_ptr<Device> device = make_null_device();
  const Ref<Buffer> buffer = device->allocate(64);
  EXPECT_EQ(buffer->bytes(), 64);
  EXPECT_EQ(buffer->host(), nullptr);
  std::vector<uint8_t> data(16, 7);
  device->copy_in(nullptr, *buffer, 48, data.data(), 16);
  device->copy_out(nullptr, data.data(), *buffer, 48, 16);
  EXPECT_EQ(data, std::vector<uint8_t>(16, 0));
  EXPECT_THROW(device->copy_in(nullptr, *buffer, 49, data.data(), 16), Error);
  EXPECT_THROW(device->copy_out(nullptr, data.data(), *buffer, -1, 1), Error);
  EXPECT_THROW(device->allocate(-1), Error);
}

TEST(Null, WrappedMemoryIsTheCallers) {
  const std::unique_ptr<Device> device = make_null_device();
  std::vector<uint8_t> data(16, 7);
  EXPECT_EQ(device->wrap(data.data(), 16)->host(), reinterpret_cast<std::byte*>(data.data()));
}

TEST(Null, CountsWhatItIsAskedFor) {
  const std::unique_ptr<Device> device = make_null_device();
  const Ref<Buffer> buffer = device->allocate(64);
  const Ref<Buffer> other = device->allocate(36);
  device->copy(nullptr, *buffer, 0, *other, 0, 36);
  EXPECT_EQ(device->counts().allocations.load(), 2);
  EXPECT_EQ(device->counts().allocated_bytes.load(), 100);
  EXPECT_EQ(device->counts().copies.load(), 1);
  EXPECT_EQ(device->counts().copied_bytes.load(), 36);
}

TEST(Null, CodeIsTakenAndLaunchesReturn) {
  const std::unique_ptr<Device> device = make_null_device();
  const std::vector<Code> codes(3);
  const std::vector<Ref<Executable>> loaded = device->load(codes);
  ASSERT_EQ(loaded.size(), 3u);
  Launch launch;
  launch.executable = loaded[0].get();
  device->launch(device->make_queue().get(), launch, StopSignal());
}

}  // namespace
}  // namespace tiny

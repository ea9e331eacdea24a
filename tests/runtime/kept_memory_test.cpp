// Memory of large buffers that are gone serves the next ones, within bounds.
#include "runtime/cpu/kept_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/cpu/cpu.h"

namespace tiny {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

Ref<KeptMemory> keeping(int64_t megabytes) {
  return make_ref<KeptMemory>(megabytes * kMegabyte);
}

TEST(KeptMemory, ABufferOfAboutTheSameSizeGetsWhatIsKept) {
  const auto memory = keeping(256);
  const KeptMemory::Mapping first = memory->take(64 * kMegabyte, 0);
  memory->give(first);
  EXPECT_EQ(memory->kept(), static_cast<int64_t>(first.bytes));
  const KeptMemory::Mapping second = memory->take(63 * kMegabyte, 7000);
  EXPECT_EQ(second.base, first.base);
  EXPECT_GE(second.room(), static_cast<size_t>(63 * kMegabyte));
  EXPECT_EQ(memory->kept(), 0);
  std::memset(second.data, 1, second.room());
  memory->give(second);
  const KeptMemory::Mapping small = memory->take(8 * kMegabyte, 0);
  EXPECT_NE(small.base, first.base) << "it would waste most of what is kept";
  memory->give(small);
}

TEST(KeptMemory, WhatIsKeptAndInUseIsNeverMoreThanWasInUse) {
  const auto memory = keeping(256);
  const KeptMemory::Mapping a = memory->take(40 * kMegabyte, 0);
  memory->give(a);
  const KeptMemory::Mapping b = memory->take(20 * kMegabyte, 0);
  EXPECT_EQ(memory->kept(), 0) << "there were never 60 MB in use";
  const KeptMemory::Mapping c = memory->take(40 * kMegabyte, 0);
  memory->give(c);
  const KeptMemory::Mapping d = memory->take(20 * kMegabyte, 0);
  EXPECT_EQ(memory->kept(), 0) << "nor 80";
  memory->give(b);
  const KeptMemory::Mapping e = memory->take(4 * kMegabyte, 0);
  EXPECT_GT(memory->kept(), 0) << "but 60 were";
  memory->give(d);
  memory->give(e);
}

TEST(KeptMemory, NoMoreThanTheLimitIsKept) {
  const auto memory = keeping(50);
  std::vector<KeptMemory::Mapping> taken;
  for (int i = 0; i < 4; ++i) taken.push_back(memory->take(20 * kMegabyte, 0));
  taken.push_back(memory->take(60 * kMegabyte, 0));
  for (const auto& mapping : taken) {
    memory->give(mapping);
    EXPECT_LE(memory->kept(), 50 * kMegabyte);
  }
  EXPECT_GT(memory->kept(), 40 * kMegabyte);
  memory->drop_all();
  EXPECT_EQ(memory->kept(), 0);
  const auto none = keeping(0);
  none->give(none->take(20 * kMegabyte, 0));
  EXPECT_EQ(none->kept(), 0);
}

TEST(KeptMemory, MemoryThatCannotBeHadIsAnError) {
  const auto memory = keeping(256);
  memory->give(memory->take(20 * kMegabyte, 0));
  EXPECT_THROW(memory->take(int64_t{1} << 60, 0), Error);
  memory->give(memory->take(20 * kMegabyte, 0));
}

TEST(KeptMemory, BuffersMayOutliveTheirDevice) {
  Ref<Buffer> buffer;
  {
    const auto device = make_cpu_device({.threads = 1, .kept_bytes = 64 * kMegabyte});
    buffer = device->allocate(8 * kMegabyte);
    const std::byte* where = buffer->host();
    buffer = nullptr;
    EXPECT_GT(device->kept_bytes(), 0);
    buffer = device->allocate(8 * kMegabyte);
    EXPECT_EQ(buffer->host(), where);
    EXPECT_EQ(device->kept_bytes(), 0);
    EXPECT_EQ(device->counts().allocations.load(), 2) << "each is counted once";
    EXPECT_EQ(device->counts().allocated_bytes.load(), 16 * kMegabyte);
  }
  std::memset(buffer->host(), 1, 8 * kMegabyte);
}

TEST(KeptMemory, ThreadsTakeAndGiveAtTheSameTime) {
  const auto memory = keeping(64);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto mapping = memory->take((2 + (t + i) % 5) * kMegabyte, i * 64);
        std::memset(mapping.data, t, 4096);
        memory->give(mapping);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(memory->kept(), 64 * kMegabyte);
}

}  // namespace
}  // namespace tiny

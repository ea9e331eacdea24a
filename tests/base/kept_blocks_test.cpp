#include "base/kept_blocks.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace tiny {
namespace {

TEST(KeptBlocks, serves_what_was_given_back_and_none_of_another_size) {
  KeptBlocks blocks;
  const KeptBlocks::Scope scope(blocks);
  for (const size_t bytes : std::initializer_list<size_t>{1, 16, 17, 512, 513, 640, 1000, 4096,
                                                          5000, 100'000, 256 << 10}) {
    void* first = KeptBlocks::take(bytes);
    std::memset(first, 1, bytes);
    KeptBlocks::give(first, bytes);
    void* other = KeptBlocks::take(2 * bytes + 16);
    EXPECT_NE(first, other) << bytes;
    void* again = KeptBlocks::take(bytes);
    EXPECT_EQ(first, again) << bytes;
    std::memset(again, 2, bytes);
    KeptBlocks::give(again, bytes);
    KeptBlocks::give(other, 2 * bytes + 16);
  }
}

TEST(KeptBlocks, a_block_has_room_for_every_size_that_it_serves) {
  KeptBlocks blocks;
  const KeptBlocks::Scope scope(blocks);
  for (size_t bytes = 1; bytes <= 20'000; bytes += bytes < 2000 ? 1 : 37) {
    void* smaller = KeptBlocks::take(bytes);
    KeptBlocks::give(smaller, bytes);
    const size_t larger = bytes + bytes / 8 + 1;
    void* next = KeptBlocks::take(larger);
    EXPECT_GE(malloc_usable_size(next), larger) << bytes;
    KeptBlocks::give(next, larger);
  }
}

TEST(KeptBlocks, scopes_within_a_scope_keep_in_the_outermost) {
  KeptBlocks outer, inner;
  const KeptBlocks::Scope scope(outer);
  void* block = nullptr;
  {
    const KeptBlocks::Scope nested(inner);
    block = KeptBlocks::take(100);
    KeptBlocks::give(block, 100);
  }
  EXPECT_EQ(KeptBlocks::take(100), block);
  KeptBlocks::give(block, 100);
}

TEST(KeptBlocks, no_more_than_is_wanted_stays_at_the_end_of_a_scope) {
  KeptBlocks blocks, inner;
  std::vector<std::pair<void*, size_t>> made;
  {
    const KeptBlocks::Scope scope(blocks, 1000);
    size_t all = 0;  // bytes, at the least
    for (size_t bytes = 16; bytes <= 256 << 10; bytes += bytes / 3 / 16 * 16 + 16) {
      made.emplace_back(KeptBlocks::take(bytes), bytes);
      all += bytes;
    }
    for (const auto& [block, bytes] : made) KeptBlocks::give(block, bytes);
    EXPECT_GE(blocks.bytes(), all);
    {
      const KeptBlocks::Scope nested(inner, 0);
    }  // what is kept is the outermost's
    EXPECT_GE(blocks.bytes(), all);
  }
  EXPECT_LE(blocks.bytes(), 1000U);
  EXPECT_GE(blocks.bytes(), 16U);
  {
    const KeptBlocks::Scope scope(blocks, 0);
    void* const small = KeptBlocks::take(16);
    EXPECT_EQ(small, made.front().first);  // the largest went first
    KeptBlocks::give(small, 16);
  }
  EXPECT_EQ(blocks.bytes(), 0U);
}

TEST(KeptBlocks, blocks_outlive_the_work_and_die_on_other_threads) {
  std::vector<std::unique_ptr<std::vector<int>>> made;
  {
    KeptBlocks blocks;
    const KeptBlocks::Scope scope(blocks);
    for (int i = 0; i < 1000; ++i) made.push_back(std::make_unique<std::vector<int>>(i, i));
    for (int i = 0; i < 1000; i += 2) made[static_cast<size_t>(i)].reset();
  }
  std::thread([&] {
    KeptBlocks blocks;
    const KeptBlocks::Scope scope(blocks);
    for (int i = 1; i < 1000; i += 2) {
      ASSERT_EQ(made[static_cast<size_t>(i)]->back(), i);
      made[static_cast<size_t>(i)].reset();
    }
  }).join();
}

}  // namespace
}  // namespace tiny

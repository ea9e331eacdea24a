// What kernels of a tape wait for.
#include "engine/dependencies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <random>
#include <utility>
#include <vector>

namespace tiny {
namespace {

constexpr KernelParam kRead{kFloat32, true, false}, kWrite{kFloat32, false, true},
    kUpdate{kFloat32, true, true};

class DependenciesTest : public ::testing::Test {
 protected:
  uint32_t slot(SlotKind kind, int64_t offset = 0, int64_t bytes = 64) {
    Slot s;
    s.kind = kind;
    s.arena_offset = offset;
    s.bytes = bytes;
    if (kind == SlotKind::Arena) plan_.arena_bytes = std::max(plan_.arena_bytes, offset + bytes);
    plan_.slots.push_back(s);
    return static_cast<uint32_t>(plan_.slots.size() - 1);
  }
  struct Use {
    uint32_t slot;
    KernelParam param;
  };
  void kernel(std::initializer_list<Use> uses) {
    TapeEntry entry;
    for (const Use& use : uses) {
      entry.slots.push_back(use.slot);
      entry.info.params.push_back(use.param);
    }
    plan_.tape.push_back(std::move(entry));
  }
  std::vector<std::vector<uint32_t>> found() const { return find_dependencies(plan_); }
  using Found = std::vector<std::vector<uint32_t>>;

  Plan plan_;
};

TEST_F(DependenciesTest, WhatIsReadWasStored) {
  const uint32_t in = slot(SlotKind::Input), a = slot(SlotKind::Arena, 0);
  const uint32_t b = slot(SlotKind::Arena, 64), out = slot(SlotKind::Output);
  kernel({{in, kRead}, {a, kWrite}});
  kernel({{a, kRead}, {b, kWrite}});
  kernel({{b, kRead}, {out, kWrite}});
  EXPECT_EQ(found(), (Found{{}, {0}, {1}}));
}

TEST_F(DependenciesTest, KernelsThatReadTheSameWaitForNobodyElse) {
  const uint32_t x = slot(SlotKind::Arena, 0);
  kernel({{x, kWrite}});
  for (int i = 0; i < 3; ++i) kernel({{x, kRead}, {slot(SlotKind::Output), kWrite}});
  EXPECT_EQ(found(), (Found{{}, {0}, {0}, {0}}));
}

TEST_F(DependenciesTest, MemoryIsTakenWhenItsReadersAreDone) {
  const uint32_t a = slot(SlotKind::Arena, 0, 128), b = slot(SlotKind::Arena, 128, 64);
  const uint32_t c = slot(SlotKind::Arena, 64, 32);  // where the second half of `a` was
  kernel({{a, kWrite}});
  kernel({{a, kRead}, {b, kWrite}});
  kernel({{a, kRead}, {slot(SlotKind::Output), kWrite}});
  kernel({{b, kRead}, {c, kWrite}});
  EXPECT_EQ(found(), (Found{{}, {0}, {0}, {0, 1, 2}}));
}

TEST_F(DependenciesTest, ANeighbourInTheArenaIsNotWaitedFor) {
  const uint32_t a = slot(SlotKind::Arena, 0), b = slot(SlotKind::Arena, 64);
  kernel({{a, kWrite}});
  kernel({{b, kWrite}});
  kernel({{a, kRead}, {b, kRead}, {slot(SlotKind::Output), kWrite}});
  EXPECT_EQ(found(), (Found{{}, {}, {0, 1}}));
}

TEST_F(DependenciesTest, PartsOfOneValueAreStoredSideBySide) {
  const uint32_t old = slot(SlotKind::Arena, 0), parts = slot(SlotKind::Arena, 0);
  kernel({{old, kWrite}});
  kernel({{old, kRead}, {slot(SlotKind::Output), kWrite}});
  kernel({{parts, kWrite}});
  kernel({{parts, kWrite}});
  kernel({{parts, kRead}, {slot(SlotKind::Output), kWrite}});
  EXPECT_EQ(found(), (Found{{}, {0}, {0, 1}, {0, 1}, {2, 3}}));
}

TEST_F(DependenciesTest, WhatAddsToAValueComesAfterIt) {
  const uint32_t sum = slot(SlotKind::Arena, 0);
  kernel({{sum, kWrite}});
  kernel({{sum, kUpdate}});
  kernel({{sum, kWrite}});
  EXPECT_EQ(found(), (Found{{}, {0}, {1}}));
}

TEST_F(DependenciesTest, ASlotThatAKernelReadsAndTakesOverIsUpdated) {
  const uint32_t x = slot(SlotKind::Arena, 0);
  kernel({{x, kWrite}});
  kernel({{x, kRead}, {x, kWrite}});
  kernel({{x, kRead}, {slot(SlotKind::Output), kWrite}});
  EXPECT_EQ(found(), (Found{{}, {0}, {1}}));
}

TEST_F(DependenciesTest, WritesOfTensorsHappenInOrder) {
  plan_.has_writes = true;
  const uint32_t a = slot(SlotKind::Captured), b = slot(SlotKind::Captured);
  kernel({{a, kWrite}});
  kernel({{b, kWrite}});
  EXPECT_EQ(found(), (Found{{}, {0}}));
}

TEST_F(DependenciesTest, AnArenaThatMovesKeepsTheOrder) {
  plan_.variables.push_back({"n", 1, 8});
  kernel({{slot(SlotKind::Arena, 0), kWrite}});
  kernel({{slot(SlotKind::Arena, 64), kWrite}});
  EXPECT_EQ(found(), (Found{{}, {0}}));
}

// Of each kernel those before it by any path.
constexpr size_t kMostKernels = 1024;
using Order = std::vector<std::bitset<kMostKernels>>;

Order order_of(const std::vector<std::vector<uint32_t>>& found) {
  Order order(found.size());
  for (size_t i = 0; i < found.size(); ++i)
    for (const uint32_t earlier : found[i]) order[i] |= order[earlier], order[i].set(earlier);
  return order;
}

// By the definition: memory of both, which one of them writes; parts of one value aside.
bool are_in_conflict(const Plan& plan, const TapeEntry& a, const TapeEntry& b) {
  const auto written = [](const TapeEntry& entry, uint32_t slot) {
    bool is_written = false, is_read = false;
    for (size_t p = 0; p < entry.slots.size(); ++p) {
      if (entry.slots[p] != slot) continue;
      is_written |= entry.info.params[p].written;
      is_read |= entry.info.params[p].read;
    }
    return std::pair(is_written, is_read);
  };
  for (const uint32_t x : a.slots)
    for (const uint32_t y : b.slots) {
      const Slot &p = plan.slots[x], &q = plan.slots[y];
      if (p.kind != SlotKind::Arena || q.kind != SlotKind::Arena) continue;
      if (p.arena_offset + p.bytes <= q.arena_offset || q.arena_offset + q.bytes <= p.arena_offset)
        continue;
      const auto [a_writes, a_reads] = written(a, x);
      const auto [b_writes, b_reads] = written(b, y);
      const bool are_parts = x == y && a_writes && b_writes && !a_reads && !b_reads;
      if ((a_writes || b_writes) && !are_parts) return true;
    }
  return false;
}

Order order_by_definition(const Plan& plan) {
  std::vector<std::vector<uint32_t>> pairs(plan.tape.size());
  for (uint32_t i = 0; i < pairs.size(); ++i)
    for (uint32_t j = 0; j < i; ++j)
      if (are_in_conflict(plan, plan.tape[j], plan.tape[i])) pairs[i].push_back(j);
  return order_of(pairs);
}

class RandomTape : public DependenciesTest {
 protected:
  // Kernels of up to four parameters on slots that overlap in any way.
  void make(uint64_t seed, int slots, int kernels) {
    std::mt19937_64 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
    plan_ = {};
    for (int i = 0; i < slots; ++i) slot(SlotKind::Arena, 32 * below(24), 32 * (1 + below(12)));
    for (int i = 0; i < kernels; ++i) {
      TapeEntry entry;
      for (int p = below(4); p >= 0; --p) {
        entry.slots.push_back(static_cast<uint32_t>(below(slots)));
        constexpr KernelParam kAny[] = {kRead, kRead, kWrite, kWrite, kUpdate};
        entry.info.params.push_back(kAny[below(5)]);
      }
      plan_.tape.push_back(std::move(entry));
    }
  }
};

TEST_F(RandomTape, HasTheOrderThatTheDefinitionGives) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    make(seed, 1 + static_cast<int>(seed % 12), 40);
    EXPECT_EQ(order_of(found()), order_by_definition(plan_)) << "seed " << seed;
  }
}

TEST_F(RandomTape, ThatIsLongKeepsEveryConflictInOrder) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    make(seed, 1 + static_cast<int>(seed), 400);
    // Parts and readers that stand side by side by the hundred.
    const uint32_t value = slot(SlotKind::Arena, 0, 512);
    for (int i = 0; i < 150; ++i) kernel({{value, kWrite}});
    for (int i = 0; i < 150; ++i) kernel({{value, kRead}});
    for (int i = 0; i < 150; ++i) kernel({{value, kWrite}});
    const Order got = order_of(found()), wanted = order_by_definition(plan_);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE((wanted[i] & ~got[i]).none()) << "seed " << seed << ", kernel " << i;
  }
}

class LongTape : public DependenciesTest {
 protected:
  // Many small values; one in their place that as many kernels store parts of; as many readers.
  size_t edges(int64_t n) {
    plan_ = {};
    const uint32_t in = slot(SlotKind::Input);
    for (int64_t i = 0; i < n; ++i) kernel({{in, kRead}, {slot(SlotKind::Arena, 64 * i), kWrite}});
    const uint32_t whole = slot(SlotKind::Arena, 0, 64 * n);
    for (int64_t i = 0; i < n; ++i) kernel({{in, kRead}, {whole, kWrite}});
    for (int64_t i = 0; i < n; ++i) kernel({{whole, kRead}, {slot(SlotKind::Output), kWrite}});
    size_t count = 0;
    for (const auto& list : found()) count += list.size();
    return count;
  }
};

TEST_F(LongTape, OfFourTimesTheKernelsHasFourTimesTheDependencies) {
  // How long a bounded list is depends on the number of kernels like a saw: the most of each size.
  size_t few = 0, many = 0;
  for (int64_t n = 400; n < 500; n += 12) {
    few = std::max(few, edges(n));
    many = std::max(many, edges(4 * n));
  }
  EXPECT_LE(many, 5 * few);
}

}  // namespace
}  // namespace tiny

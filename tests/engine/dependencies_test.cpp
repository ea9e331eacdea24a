// What kernels of a tape wait for.
#include "engine/dependencies.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tiny

// The launches of a tape with loops, and what they wait for.
#include "engine/launches.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "engine/program.h"

namespace tiny {
namespace {

constexpr KernelParam kRead{kFloat32, true, false}, kWrite{kFloat32, false, true};
constexpr int64_t kBytes = 64;

// Loops beside each other or one after the other, between other kernels.  A step of a loop reads
// what the step before has left, makes a value of its own, and stores what it leaves.
class RandomTape {
 public:
  RandomTape(unsigned seed, int64_t count) : random_(seed), count_(count) {
    std::vector<uint32_t> known{slot(SlotKind::Input)};
    for (auto parts = 1 + random_() % 4; parts > 0; --parts) {
      if (random_() % 2 == 0) {
        const uint32_t made = arena(kBytes);
        kernel({{any(known), kRead}, {made, kWrite}});
        known.push_back(made);
        continue;
      }
      const std::vector<uint32_t> before = known;
      for (auto loops = 1 + random_() % 2, i = 0UL; i < loops; ++i) {
        add_loop(before, i > 0, known);
      }
    }
    kernel({{any(known), kRead}, {known.back(), kRead}, {slot(SlotKind::Output), kWrite}});
    plan_.arena_bytes = arena_;
  }
  const Plan& plan() const { return plan_; }

 private:
  struct Use {
    uint32_t slot;
    KernelParam param;
  };
  uint32_t any(const std::vector<uint32_t>& of) { return of[random_() % of.size()]; }
  uint32_t slot(SlotKind kind, int64_t bytes = kBytes) {
    Slot s;
    s.kind = kind;
    s.bytes = bytes;
    s.arena_offset = arena_;
    plan_.slots.push_back(s);
    return static_cast<uint32_t>(plan_.slots.size() - 1);
  }
  uint32_t arena(int64_t bytes) {
    const uint32_t made = slot(SlotKind::Arena, bytes);
    arena_ += bytes;
    return made;
  }
  uint32_t moving(const Motion& motion) {
    const uint32_t made = slot(SlotKind::Moving);
    plan_.slots[made].motion = motion;
    plan_.slots[made].motion.stride = kBytes;
    plan_.slots[made].motion.loop = static_cast<uint32_t>(plan_.loops.size());
    return made;
  }
  void kernel(const std::vector<Use>& uses) {
    TapeEntry entry;
    for (const Use& use : uses) {
      entry.slots.push_back(use.slot);
      entry.info.params.push_back(use.param);
    }
    plan_.tape.push_back(std::move(entry));
  }
  void add_loop(const std::vector<uint32_t>& before, bool beside, std::vector<uint32_t>& known) {
    const bool alternates = random_() % 2 == 0;
    const bool reverse = !alternates && random_() % 2 == 0;
    const uint32_t base = arena(alternates ? 2 * kBytes : count_ * kBytes);
    Motion motion;
    motion.base = base;
    motion.alternates = alternates;
    motion.reverse = reverse;
    const uint32_t store = moving(motion);
    motion.before = true;
    motion.first = any(before);
    const uint32_t state = moving(motion);
    const uint32_t own = arena(kBytes);
    TapeLoop loop;
    loop.first = static_cast<uint32_t>(plan_.tape.size());
    loop.count = count_;
    loop.beside = beside;
    kernel({{any(before), kRead}, {state, kRead}, {own, kWrite}});
    if (random_() % 2 == 0) kernel({{own, kRead}, {arena(kBytes), kWrite}});
    kernel({{own, kRead}, {store, kWrite}});
    loop.end = static_cast<uint32_t>(plan_.tape.size());
    if (alternates) {
      motion.before = false;
      motion.first = Motion::kNone;
      motion.after_last = true;
      known.push_back(moving(motion));
    } else {
      known.push_back(base);
    }
    plan_.loops.push_back(loop);
  }

  std::mt19937 random_;
  int64_t count_;
  int64_t arena_ = 0;
  Plan plan_;
};

// Where a slot lies in a step: the slot of memory, and the bytes in it.
struct Place {
  uint32_t slot = 0;
  int64_t begin = 0, end = 0;
};
Place place_of(const Plan& plan, uint32_t slot, int64_t step) {
  const Slot& s = plan.slots[slot];
  if (s.kind != SlotKind::Moving) return {slot, 0, s.bytes};
  const Motion& m = s.motion;
  const int64_t count = plan.loops[m.loop].count.value({});
  int64_t part = m.after_last ? count - 1 : step - (m.before ? 1 : 0);
  if (part < 0) return {m.first, 0, kBytes};
  part = m.alternates ? part % 2 : m.reverse ? count - 1 - part : part;
  return {m.base, part * kBytes, (part + 1) * kBytes};
}

bool conflict(const Plan& plan, const LaunchPlace& a, const LaunchPlace& b) {
  const TapeEntry& of_a = plan.tape[a.entry];
  const TapeEntry& of_b = plan.tape[b.entry];
  for (size_t i = 0; i < of_a.slots.size(); ++i)
    for (size_t k = 0; k < of_b.slots.size(); ++k) {
      if (!of_a.info.params[i].written && !of_b.info.params[k].written) continue;
      Place x = place_of(plan, of_a.slots[i], a.step), y = place_of(plan, of_b.slots[k], b.step);
      if (x.slot == y.slot && x.begin < y.end && y.begin < x.end) return true;
    }
  return false;
}

TEST(Launches, WaitForAllWhoseMemoryTheyTouch) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    const int64_t count = 1 + seed % 9;
    SCOPED_TRACE(cat("seed ", seed));
    const RandomTape tape(seed, count);
    const LaunchList list = list_launches(tape.plan(), {});
    std::vector<std::vector<uint8_t>> reaches(list.order.size());  // which come before
    for (size_t j = 0; j < list.order.size(); ++j) {
      reaches[j].resize(list.order.size());
      for (const uint32_t i : list.after[j]) {
        ASSERT_LT(i, j);
        reaches[j][i] = 1;
        for (size_t k = 0; k < i; ++k) reaches[j][k] |= reaches[i][k];
      }
      for (size_t i = 0; i < j; ++i)
        ASSERT_TRUE(!conflict(tape.plan(), list.order[i], list.order[j]) || reaches[j][i])
            << j << " does not wait for " << i;
    }
  }
}

TEST(Launches, OfLoopsBesideEachOtherDoNotWaitForEachOther) {
  bool any = false;
  for (unsigned seed = 0; seed < 100 && !any; ++seed) {
    const RandomTape tape(seed, 5);
    if (tape.plan().loops.size() < 2 || !tape.plan().loops[1].beside) continue;
    any = true;
    const LaunchList list = list_launches(tape.plan(), {});
    const TapeLoop& one = tape.plan().loops[0];
    const TapeLoop& other = tape.plan().loops[1];
    const auto is_in = [](const TapeLoop& loop, uint32_t entry) {
      return entry >= loop.first && entry < loop.end;
    };
    for (size_t j = 0; j < list.order.size(); ++j)
      for (const uint32_t i : list.after[j])
        EXPECT_FALSE(is_in(other, list.order[j].entry) && is_in(one, list.order[i].entry));
    EXPECT_EQ(list.steps[one.first], 5);
  }
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace tiny

#include "engine/launches.h"

#include <algorithm>

#include "base/sort.h"
#include "engine/dependencies.h"
#include "engine/program.h"

namespace tiny {

namespace {

// What one step waits for of the steps before it is seen in the third: from then on it is the same.
constexpr int64_t kStepsSeen = 3;

// Segments that are executed step by step together.
struct Group {
  size_t first = 0;  // loops [first, end)
  size_t end = 0;
  uint32_t entry = 0;    // where its entries begin
  uint32_t entries = 0;  // of one step
  int64_t steps = 0;
  size_t seen_at = 0;  // where its launches begin among those with at most kStepsSeen steps
  size_t at = 0;       // and among all
};

std::vector<Group> groups_of(const Plan& plan, std::span<const int64_t> variables) {
  std::vector<Group> groups;
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    const TapeLoop& loop = plan.loops[i];
    if (loop.is_counted()) continue;
    if (!loop.beside) groups.push_back({i, i, loop.first, 0, loop.count.value(variables), 0, 0});
    groups.back().end = i + 1;
    groups.back().entries = loop.end - groups.back().entry;
  }
  return groups;
}

// The order, with at most `steps_max` steps of a group; tells where each group begins.
std::vector<LaunchPlace> order_of(const Plan& plan, std::vector<Group>& groups, int64_t steps_max,
                                  size_t Group::* begin) {
  std::vector<LaunchPlace> order;
  uint32_t entry = 0;
  const auto add_until = [&](uint32_t end) {
    for (; entry < end; ++entry) order.push_back({entry, 0});
  };
  for (Group& group : groups) {
    add_until(group.entry);
    group.*begin = order.size();
    for (int64_t step = 0; step < std::min(group.steps, steps_max); ++step)
      for (uint32_t i = 0; i < group.entries; ++i)
        order.push_back({group.entry + i, static_cast<uint32_t>(step)});
    entry = group.entry + group.entries;
  }
  add_until(static_cast<uint32_t>(plan.tape.size()));
  return order;
}

// The plan as if the launches were its tape.  What moves counts as the whole that it moves in, and
// each step as one that reads what the one before it has written there.
Plan unrolled(const Plan& plan, std::span<const LaunchPlace> order) {
  Plan out;
  out.slots = plan.slots;
  out.variables = plan.variables;
  out.arena_bytes = plan.arena_bytes;
  out.has_writes = plan.has_writes;
  for (const LaunchPlace& place : order) {
    const TapeEntry& entry = plan.tape[place.entry];
    TapeEntry& launch = out.tape.emplace_back();
    for (size_t p = 0; p < entry.slots.size(); ++p) {
      KernelParam param = entry.info.params[p];
      uint32_t slot = entry.slots[p];
      if (plan.slots[slot].kind == SlotKind::Moving) {
        const Motion& motion = plan.slots[slot].motion;
        slot = motion.base;
        param.read = true;
        if (motion.first != Motion::kNone) {
          launch.slots.push_back(motion.first);
          launch.info.params.push_back({param.element, true, false});
        }
      }
      launch.slots.push_back(slot);
      launch.info.params.push_back(param);
    }
  }
  return out;
}

class Waits {
 public:
  Waits(const Plan& plan, std::vector<Group>& groups, std::span<const LaunchPlace> all)
      : groups_(groups), all_(all) {
    seen_ = order_of(plan, groups, kStepsSeen, &Group::seen_at);
    after_seen_ = find_dependencies(unrolled(plan, seen_));
    group_of_.resize(plan.tape.size(), nullptr);
    for (const Group& group : groups)
      for (uint32_t i = 0; i < group.entries; ++i) group_of_[group.entry + i] = &group;
  }

  std::vector<std::vector<uint32_t>> run() {
    std::vector<std::vector<uint32_t>> after(all_.size());
    for (size_t i = 0; i < all_.size(); ++i) {
      const Group* group = group_of_[all_[i].entry];
      const int64_t step = all_[i].step;
      const int64_t like = std::min(step, kStepsSeen - 1);
      for (const uint32_t other : after_seen_[seen_place(all_[i].entry, like)]) {
        const LaunchPlace& earlier = seen_[other];
        const Group* of = group_of_[earlier.entry];
        if (group && of == group)
          after[i].push_back(place(earlier.entry, earlier.step + (step - like)));
        else if (step == like)
          after[i].push_back(place(earlier.entry, of ? of->steps - 1 : 0));
      }
      sort_stable(after[i]);
      const auto [end, last] = std::ranges::unique(after[i]);
      after[i].erase(end, last);
    }
    return after;
  }

 private:
  // Entries before a place that are in no group stand where the groups before them end.
  uint32_t place_in(uint32_t entry, int64_t step, size_t Group::* begin, int64_t most) const {
    if (const Group* group = group_of_[entry])
      return static_cast<uint32_t>(group->*begin) + entry - group->entry +
             static_cast<uint32_t>(step) * group->entries;
    uint32_t at = entry;
    for (const Group& group : groups_) {
      if (group.entry > entry) break;
      at += static_cast<uint32_t>(std::min(group.steps, most) - 1) * group.entries;
    }
    return at;
  }
  uint32_t place(uint32_t entry, int64_t step) const {
    return place_in(entry, step, &Group::at, INT64_MAX);
  }
  uint32_t seen_place(uint32_t entry, int64_t step) const {
    return place_in(entry, step, &Group::seen_at, kStepsSeen);
  }

  const std::vector<Group>& groups_;
  std::span<const LaunchPlace> all_;
  std::vector<LaunchPlace> seen_;
  std::vector<std::vector<uint32_t>> after_seen_;
  std::vector<const Group*> group_of_;  // by entry
};

// The parts in which the run counts steps, and what is before, between and behind them.
std::vector<LaunchPart> parts_of(const Plan& plan, std::span<const LaunchPlace> order) {
  std::vector<LaunchPart> parts;
  size_t at = 0;
  const auto add_until = [&](uint32_t entry, uint32_t loop) {
    const size_t first = at;
    while (at < order.size() && order[at].entry < entry) ++at;
    if (at > first) parts.push_back({first, at, loop});
  };
  size_t size = 0;
  // Sizes that the run computes are read between parts.
  const auto add_parts_until = [&](uint32_t entry) {
    for (; size < plan.sizes.size() && plan.sizes[size].entry < entry; ++size)
      add_until(plan.sizes[size].entry, LaunchPart::kOnce);
    add_until(entry, LaunchPart::kOnce);
  };
  for (uint32_t i = 0; i < plan.loops.size(); ++i) {
    if (!plan.loops[i].is_counted()) continue;
    add_parts_until(plan.loops[i].first);
    add_until(plan.loops[i].end, i);
  }
  add_parts_until(static_cast<uint32_t>(plan.tape.size()));
  return parts;
}

// Leaves what each launch waits for in its own part.
void number_in_parts(LaunchList& list) {
  for (const LaunchPart& part : list.parts)
    for (size_t i = part.first; i < part.end && part.first > 0; ++i) {
      std::vector<uint32_t>& after = list.after[i];
      std::erase_if(after, [&](uint32_t other) { return other < part.first; });
      for (uint32_t& other : after) other -= static_cast<uint32_t>(part.first);
    }
}

}  // namespace

LaunchList list_launches(const Plan& plan, std::span<const int64_t> variables) {
  LaunchList list;
  std::vector<Group> groups = groups_of(plan, variables);
  list.order = order_of(plan, groups, INT64_MAX, &Group::at);
  list.after = plan.loops.empty() ? find_dependencies(plan) : Waits(plan, groups, list.order).run();
  list.parts = parts_of(plan, list.order);
  number_in_parts(list);
  list.uses.resize(plan.slots.size());
  list.steps.resize(plan.tape.size());
  for (const LaunchPlace& place : list.order) {
    const TapeEntry& entry = plan.tape[place.entry];
    ++list.steps[place.entry];
    list.interpreted += entry.info.interpreted ? 1 : 0;
    for (const uint32_t slot : entry.slots)
      list.uses[slot].push_back({static_cast<uint32_t>(list.arguments++), place.step});
  }
  return list;
}

bool has_one_list(const Plan& plan) {
  return std::ranges::all_of(
      plan.loops, [](const TapeLoop& l) { return l.is_counted() || l.count.is_const(); });
}

}  // namespace tiny

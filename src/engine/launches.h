// The launches of one execution: the tape's entries in order, those of a scan's segment once for
// each step; once, where the run counts the steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tiny {

struct Plan;

struct LaunchPlace {
  uint32_t entry = 0;  // of the tape
  uint32_t step = 0;   // of its segment
};
// An argument of a launch.
struct SlotUse {
  uint32_t argument = 0;  // among those of all launches, one after the other
  uint32_t step = 0;
};

// Launches that are given to the device at once: what comes after them waits for all.
struct LaunchPart {
  size_t first = 0;  // launches [first, end)
  size_t end = 0;
  uint32_t loop = kOnce;  // of the plan's, whose steps the run counts: so often
  static constexpr uint32_t kOnce = UINT32_MAX;
};

struct LaunchList {
  std::vector<LaunchPlace> order;
  // By launch: others that it comes after, numbered from the beginning of its part.
  std::vector<std::vector<uint32_t>> after;
  std::vector<LaunchPart> parts;
  std::vector<std::vector<SlotUse>> uses;  // by slot
  std::vector<int64_t> steps;              // by entry of the tape: how often it is launched
  int64_t arguments = 0;
  int64_t interpreted = 0;  // launches of bytecode
};

// For these values of the plan's variables; any, where no segment's count depends on them.
LaunchList list_launches(const Plan& plan, std::span<const int64_t> variables);
// Whether that list is the same for all values.
bool has_one_list(const Plan& plan);

}  // namespace tiny

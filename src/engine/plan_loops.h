// The scans of a schedule as segments of a tape.
#pragma once

#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/program.h"
#include "schedule/schedule.h"

namespace tiny {

class PlanLoops {
 public:
  // `variables`: of the program.
  PlanLoops(const Schedule& schedule, std::span<const UOp> variables);

  const std::vector<TapeLoop>& tape() const { return tape_; }
  // The number of a scan's segment; it must have one.
  uint32_t number(const ScanLoop* scan) const { return numbers_.at(scan); }
  // A scan of values without elements has no kernels, and no segment.
  bool has(const ScanLoop* scan) const { return numbers_.contains(scan); }

  // Whether what a kernel of the scan reads or stores is made and read within one step alone.
  bool is_of_step(const UOp& value, const ScanLoop* scan) const;
  // The first and the last kernel of the segments that are executed step by step together.
  std::pair<int64_t, int64_t> kernels_beside(const ScanLoop* scan) const;
  // Whether there is no other among these.
  bool is_alone(const ScanLoop* scan) const;

 private:
  struct Maker {
    const ScanLoop* scan = nullptr;
    const ScanLoop* segment = nullptr;
  };

  void add(const ScanLoop* scan, uint32_t kernel, const ScanLoop* segment,
           std::span<const UOp> variables);
  bool can_be_beside(size_t group, size_t loop) const;

  const Schedule& schedule_;
  std::vector<TapeLoop> tape_;
  std::vector<const ScanLoop*> scans_;     // by segment
  std::vector<const ScanLoop*> segments_;  // by segment: the one it is in, or is
  std::vector<size_t> groups_;             // by segment: the first that it is executed with
  std::unordered_map<const ScanLoop*, uint32_t> numbers_;
  std::unordered_map<const Node*, Maker> made_in_;
};

}  // namespace tiny

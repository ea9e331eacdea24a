#include "engine/plan_loops.h"

#include <algorithm>

#include "base/error.h"

namespace tiny {

PlanLoops::PlanLoops(const Schedule& schedule, std::span<const UOp> variables)
    : schedule_(schedule) {
  for (uint32_t i = 0; i < schedule.kernels.size(); ++i) {
    const ScheduledKernel& kernel = schedule.kernels[i];
    if (kernel.segment) add(kernel.segment, i, kernel.segment, variables);
    if (kernel.scan && kernel.scan != kernel.segment)
      add(kernel.scan, i, kernel.segment, variables);
    for (const ScheduledStore& store : kernel.stores)
      made_in_[store.destination.node()] = {kernel.scan, kernel.segment};
  }
  for (size_t i = 0; i < tape_.size(); ++i) {
    tape_[i].beside = i > 0 && can_be_beside(groups_.back(), i);
    groups_.push_back(tape_[i].beside ? groups_.back() : i);
  }
}

void PlanLoops::add(const ScanLoop* scan, uint32_t kernel, const ScanLoop* segment,
                    std::span<const UOp> variables) {
  if (numbers_.try_emplace(scan, tape_.size()).second) {
    tape_.push_back({kernel, kernel, SizeExpression(scan->count, variables)});
    if (scan->induction_variable) {
      const auto at = std::ranges::find(variables, scan->induction_variable);
      invariant(at != variables.end(), "a program knows the induction variables of its loops");
      tape_.back().induction_variable = static_cast<uint32_t>(at - variables.begin());
      tape_.back().from = SizeExpression(scan->first, variables);
    }
    require(!segment || segment == scan || !segment->induction_variable ||
                !depend_on({&scan->count, 1}, segment->induction_variable),
            Status::Unsupported,
            "a loop has as many steps as the number of a round around it says");
    scans_.push_back(scan);
    segments_.push_back(segment);
  }
  TapeLoop& loop = tape_[numbers_.at(scan)];
  invariant(loop.end == kernel, "the kernels of a scan follow each other");
  ++loop.end;
}

// Whether segment `loop` may be executed step by step with those from `group` on.
bool PlanLoops::can_be_beside(size_t group, size_t loop) const {
  if (scans_[loop]->is_counted || scans_[loop - 1]->is_counted) return false;
  if (segments_[loop] != segments_[group] || !(scans_[loop]->count == scans_[group]->count))
    return false;
  if (tape_[loop].first != tape_[loop - 1].end) return false;
  for (size_t k = tape_[loop].first; k < tape_[loop].end; ++k)
    for (const UOp& value : schedule_.kernels[k].values) {
      const UOp& read = value.op() == Op::ScanStep ? value.src(0) : value;
      if (read.op() != Op::Scan || has_memory(read)) continue;
      const auto of = numbers_.find(scan_part(read).loop.get());
      if (of != numbers_.end() && of->second >= group && of->second < loop) return false;
    }
  return true;
}

bool PlanLoops::is_of_step(const UOp& value, const ScanLoop* scan) const {
  const auto made = made_in_.find(value.node());
  return made != made_in_.end() && value.op() != Op::ScanStore &&
         (made->second.scan == scan || made->second.segment == scan);
}

std::pair<int64_t, int64_t> PlanLoops::kernels_beside(const ScanLoop* scan) const {
  const size_t group = groups_[number(scan)];
  const auto next = std::ranges::upper_bound(groups_, group);
  const TapeLoop& last = tape_[static_cast<size_t>(next - groups_.begin()) - 1];
  return {tape_[group].first, static_cast<int64_t>(last.end) - 1};
}

bool PlanLoops::is_alone(const ScanLoop* scan) const {
  const TapeLoop& loop = tape_[number(scan)];
  const auto [first, last] = kernels_beside(scan);
  return loop.first == first && loop.end == last + 1;
}

}  // namespace tiny

#include "schedule/scans.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "schedule/schedule.h"

namespace tiny {

bool is_of_scan(const UOp& node) {
  return node.op() == Op::ScanStep || node.op() == Op::ScanStore || node.op() == Op::Scan;
}

ScanBodies::ScanBodies(std::span<const UOp> order) {
  if (std::ranges::none_of(order, [](const UOp& u) { return u.op() == Op::ScanStore; })) return;
  loops_.resize(order.front().graph().id_limit());
  for (const UOp& u : order) {
    if (has_memory(u) || u.op() == Op::Scan) continue;
    const ScanLoop*& loop = loops_[u.id()];
    if (is_of_scan(u)) {
      loop = scan_part(u).loop.get();
      continue;
    }
    for (const UOp& s : u.src())
      if (!loop) loop = loops_[s.id()];
  }
}

namespace {

// What is computed between the same scans: nodes outside of bodies, then scans that these allow.
struct Level {
  std::vector<UOp> outside;
  std::vector<const ScanLoop*> loops;
};

// By how many scans must have come before.
class Levels {
 public:
  Levels(const std::vector<UOp>& order, const ScanBodies& bodies)
      : rank_(order.front().graph().id_limit()) {
    for (const UOp& u : order) {
      if (const ScanLoop* loop = bodies.of(u)) {
        Scan& scan = scans_[loop];
        for (const UOp& s : u.src())
          if (bodies.of(s) != loop) scan.rank = std::max(scan.rank, rank_[s.id()]);
        scan.nodes.push_back(u);
      } else if (u.op() == Op::Scan && !has_memory(u)) {
        Scan& scan = scans_[scan_part(u).loop.get()];
        rank_[u.id()] = scan.rank + 1;
        if (!std::exchange(scan.has_results, true))
          at(scan.rank).loops.push_back(scan_part(u).loop.get());
        scan.nodes.push_back(u);
      } else {
        if (!has_memory(u))
          for (const UOp& s : u.src()) rank_[u.id()] = std::max(rank_[u.id()], rank_[s.id()]);
        at(rank_[u.id()]).outside.push_back(u);
      }
    }
  }

  std::vector<UOp> run() {
    std::vector<UOp> out;
    const auto add = [&](const std::vector<UOp>& nodes) {
      out.insert(out.end(), nodes.begin(), nodes.end());
    };
    for (Level& level : levels_) {
      add(level.outside);
      for (size_t i = 0; i < level.loops.size(); ++i) {
        // Those of as many steps follow.
        std::stable_partition(level.loops.begin() + static_cast<int64_t>(i) + 1, level.loops.end(),
                              [&](const ScanLoop* l) { return l->count == level.loops[i]->count; });
        add(scans_.at(level.loops[i]).nodes);
      }
    }
    return out;
  }

 private:
  struct Scan {
    uint32_t rank = 0;
    std::vector<UOp> nodes;  // the body, then the Scans
    bool has_results = false;
  };

  Level& at(uint32_t rank) {
    if (rank >= levels_.size()) levels_.resize(rank + 1);
    return levels_[rank];
  }

  std::vector<uint32_t> rank_;  // by id
  std::unordered_map<const ScanLoop*, Scan> scans_;
  std::vector<Level> levels_;
};

}  // namespace

std::vector<UOp> bodies_together(std::vector<UOp> order) {
  const ScanBodies bodies(order);
  return bodies.empty() ? order : Levels(order, bodies).run();
}

}  // namespace tiny

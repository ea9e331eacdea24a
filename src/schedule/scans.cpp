#include "schedule/scans.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "schedule/schedule.h"

namespace tiny {

bool is_of_scan(const UOp& node) {
  return node.op() == Op::ScanStep || node.op() == Op::ScanStore || node.op() == Op::Scan;
}

ScanBodies::ScanBodies(std::span<const UOp> order, std::span<const UOp> roots) {
  bool has_scans = false, has_branches = false;
  for (const UOp& u : order) {
    if (u.op() != Op::ScanStore || has_memory(u)) continue;
    has_scans = true;
    has_branches |= scan_part(u).loop->is_branch;
  }
  if (!has_scans) return;
  steps_.resize(order.front().graph().id_limit());
  segments_.resize(steps_.size());
  find_rounds(order);
  find_steps(order);
  if (has_branches) find_branches(order, roots);
  keep_together(order);
}

void ScanBodies::find_rounds(std::span<const UOp> order) {
  for (const UOp& u : order) {
    if (!is_of_scan(u) || has_memory(u)) continue;
    const ScanLoop* loop = scan_part(u).loop.get();
    if (loop->induction_variable && loop->induction_variable.id() < segments_.size())
      segments_[loop->induction_variable.id()] = loop;
  }
}

// What ScanSteps and induction variables reach.
void ScanBodies::find_steps(std::span<const UOp> order) {
  for (const UOp& u : order) {
    if (has_memory(u)) continue;
    const ScanLoop* own = is_of_scan(u) ? scan_part(u).loop.get() : nullptr;
    const ScanLoop*& steps = steps_[u.id()];
    const ScanLoop*& segment = segments_[u.id()];
    // What a scan leaves is in no step of its own, nor is what it began with.
    const bool is_inside = own && u.op() != Op::Scan;
    if (is_inside) (own->is_counted ? segment : steps) = own;
    for (const UOp& s : u.src()) {
      if (!segment && segments_[s.id()] != own) segment = segments_[s.id()];
      if (!own && !steps) steps = steps_[s.id()];
    }
  }
}

// What only the stores of one branch need.  What another scan needs that the run counts is outside,
// since these are not in each other.
void ScanBodies::find_branches(std::span<const UOp> order, std::span<const UOp> roots) {
  enum class Need : uint8_t { None, Branch, Outside };
  std::vector<Need> needs(steps_.size());
  std::vector<const ScanLoop*> branches(steps_.size());
  for (const UOp& root : roots) needs[root.id()] = Need::Outside;
  const auto need = [&](const UOp& node, const ScanLoop* branch) {
    Need& now = needs[node.id()];
    if (now == Need::None && branch) {
      now = Need::Branch;
      branches[node.id()] = branch;
    } else if (!branch || branches[node.id()] != branch) {
      now = Need::Outside;
    }
  };
  for (const UOp& u : order | std::views::reverse) {
    if (has_memory(u)) continue;
    const ScanLoop* own = is_of_scan(u) ? scan_part(u).loop.get() : nullptr;
    const ScanLoop* branch = needs[u.id()] == Need::Branch ? branches[u.id()] : nullptr;
    if (own && own->is_counted) branch = nullptr;
    if (own && own->is_branch && u.op() == Op::ScanStore) branch = own;
    if (!own && segments_[u.id()] && !segments_[u.id()]->is_branch) branch = nullptr;
    if (branch) segments_[u.id()] = branch;
    for (const UOp& s : u.src())
      if (s.op() != Op::ScanStore || !own || !own->is_branch) need(s, branch);
  }
}

// A scan is in a segment as a whole.
void ScanBodies::keep_together(std::span<const UOp> order) {
  std::unordered_map<const ScanLoop*, const ScanLoop*> segment_of;
  for (const UOp& u : order)
    if (u.op() == Op::ScanStore && steps(u) && segment(u)) segment_of[steps(u)] = segment(u);
  if (segment_of.empty()) return;
  for (const UOp& u : order)
    if (const auto at = segment_of.find(steps(u)); at != segment_of.end())
      segments_[u.id()] = at->second;
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
  // `within`: the scan that the run counts whose body the order is, if it is one.
  Levels(const std::vector<UOp>& order, const ScanBodies& bodies, const ScanLoop* within)
      : bodies_(bodies), within_(within) {
    for (const UOp& u : order) {
      if (const ScanLoop* loop = body_of(u)) {
        Scan& scan = scans_[loop];
        for (const UOp& s : u.src())
          if (body_of(s) != loop) scan.rank = std::max(scan.rank, rank_of(s));
        scan.nodes.push_back(u);
      } else if (is_result(u)) {
        const ScanLoop* own = scan_part(u).loop.get();
        Scan& scan = scans_[own];
        for (const UOp& s : u.src().subspan(own->stores()))
          scan.rank = std::max(scan.rank, rank_of(s));
        ranks_[u.node()] = scan.rank + 1;
        if (!std::exchange(scan.has_results, true)) at(scan.rank).loops.push_back(own);
        scan.nodes.push_back(u);
      } else {
        uint32_t rank = 0;
        if (!has_memory(u))
          for (const UOp& s : u.src()) rank = std::max(rank, rank_of(s));
        if (rank > 0) ranks_[u.node()] = rank;
        at(rank).outside.push_back(u);
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
        const ScanLoop* loop = level.loops[i];
        const std::vector<UOp>& nodes = scans_.at(loop).nodes;
        add(loop->is_counted ? Levels(nodes, bodies_, loop).run() : nodes);
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

  // The outermost scan inside of `within_`.
  const ScanLoop* body_of(const UOp& u) const {
    if (within_) return bodies_.steps(u);
    const ScanLoop* segment = bodies_.segment(u);
    return segment ? segment : bodies_.steps(u);
  }
  bool is_result(const UOp& u) const {
    return u.op() == Op::Scan && !has_memory(u) && scan_part(u).loop.get() != within_;
  }
  uint32_t rank_of(const UOp& u) const {
    const auto known = ranks_.find(u.node());
    return known == ranks_.end() ? 0 : known->second;
  }
  Level& at(uint32_t rank) {
    if (rank >= levels_.size()) levels_.resize(rank + 1);
    return levels_[rank];
  }

  const ScanBodies& bodies_;
  const ScanLoop* within_;
  std::unordered_map<const Node*, uint32_t> ranks_;  // but 0
  std::unordered_map<const ScanLoop*, Scan> scans_;
  std::vector<Level> levels_;
};

}  // namespace

std::vector<UOp> bodies_together(std::vector<UOp> order, std::span<const UOp> roots) {
  const ScanBodies bodies(order, roots);
  return bodies.empty() ? order : Levels(order, bodies, nullptr).run();
}

}  // namespace tiny

#include "cost/nests.h"

#include <algorithm>
#include <array>
#include <bit>

#include "cost/prices.h"

namespace tiny {

Nests::Nests(const WalkedKernel& walk) : walk_(walk) {
  find_data();
  find_owners();
}

Nest Nests::open(size_t closure) {
  Closure& c = closures_[closure];
  Nest nest = nest_of(c, walk_.closed_by(walk_.table.order[c.place]));
  c.loops = nest.loops;
  return nest;
}

// Of each node, whether it is computed from data, and how long lookups in its closure's loops wait
// for each other until it is there.
void Nests::find_data() {
  const size_t count = walk_.table.order.size();
  found_.resize(count);
  for (size_t k = 0; k < count; ++k) {
    const UOp& u = walk_.table.order[k];
    const auto below = walk_.sources(static_cast<uint32_t>(k));
    bool is = u.op() == Op::Load || u.op() == Op::Index || u.op() == Op::Reduce;
    if (u.op() != Op::Range)
      for (const uint32_t s : below) is = is || found_[s].is_data;
    found_[k].is_data = is;
    if (!closes_ranges(u)) found_[k].wait = longest_wait(below);
    const bool is_read = u.op() == Op::Load || u.op() == Op::Index;
    const auto indices = below.subspan(is_read ? 1 : 0);
    if (is_read && std::ranges::any_of(indices, [&](uint32_t s) { return found_[s].is_data; })) {
      const double bytes = walk_.accesses[k]->span * walk_.bytes_of(u.dtype());
      found_[k].wait +=
          bytes <= static_cast<double>(walk_.machine.l2_bytes) ? kLookedUp : kLookedUpFar;
    }
  }
}

double Nests::longest_wait(std::span<const uint32_t> places) const {
  double longest = 0;
  for (const uint32_t s : places) longest = std::max(longest, found_[s].wait);
  return longest;
}

// In one walk from users to sources: a value is computed in the loops of each closure that it is
// reached from without another between.
void Nests::find_owners() {
  computed_.resize(walk_.table.order.size());
  closures_.reserve(walk_.table.closures.size());
  std::vector<uint64_t> owners(walk_.table.order.size());
  for (size_t k = walk_.table.order.size(); k-- > 0;) {
    const auto place = static_cast<uint32_t>(k);
    const UOp& u = walk_.table.order[k];
    const bool closes = closes_ranges(u) || u.op() == Op::Store || u.op() == Op::Check;
    uint64_t mine = owners[k];
    if (closes) {
      mine = uint64_t{1} << std::min(closures_.size(), kClosuresMax - 1);
      if (closures_.size() < kClosuresMax) closures_.push_back({place, owners[k], {}});
    } else {
      computed_[k] = computed_in(mine);
    }
    // Where a stage is read is a sum of ranges, however its dimensions were split.
    const auto looked = walk_.sources(place).first(u.op() == Op::Index ? 1 : u.src().size());
    for (const uint32_t s : looked) owners[s] |= mine;
  }
}

// Stores over the same ranges are one block, in which a value that several need is made once.
uint64_t Nests::computed_in(uint64_t owners) const {
  if (std::popcount(owners) < 2) return owners;
  uint64_t once = 0;
  std::array<RangeSet, kClosuresMax> blocks;  // so many of them are set
  size_t count = 0;
  for (uint64_t left = owners; left; left &= left - 1) {
    const auto k = static_cast<size_t>(std::countr_zero(left));
    const WalkedKernel::Value closure = walk_.value(closures_[k].place);
    if (closure.node.op() == Op::Store) {
      const RangeSet block = closure.free;
      const auto end = blocks.begin() + count;
      if (std::find(blocks.begin(), end, block) != end) continue;
      blocks[count++] = block;
    }
    once |= uint64_t{1} << k;
  }
  return once;
}

// The loops that are open where a closure begins: those that its element depends on, and what
// stands around these where it is wanted.
std::vector<size_t> Nests::loops_around(const Closure& closure) const {
  const RangeSet free = walk_.table.free[closure.place] & walk_.loops;
  std::vector<size_t> around;
  for (size_t i = 0; i < walk_.kernel.ranges.size(); ++i)
    if (free & bit(i)) around.push_back(i);
  if (!free) return around;
  double most = 0;
  for (uint64_t left = closure.users; left; left &= left - 1) {
    const std::vector<size_t>& loops = closures_[static_cast<size_t>(std::countr_zero(left))].loops;
    size_t depth = loops.size();
    while (depth > 0 && !(free & bit(loops[depth - 1]))) --depth;
    double turns = 1;
    for (size_t d = 0; d < depth; ++d) turns *= walk_.extent(loops[d]);
    if (turns <= most) continue;
    most = turns;
    around.assign(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(depth));
  }
  return around;
}

Nest Nests::nest_of(const Closure& closure, RangeSet own) const {
  const UOp& u = walk_.table.order[closure.place];
  Nest nest;
  nest.loops = loops_around(closure);
  // A reduction's loops are inside of its element's, but for those that stand outside of all.
  std::vector<size_t> inner;
  for (size_t i = 0; i < walk_.kernel.ranges.size(); ++i)
    if (own & walk_.loops & bit(i)) inner.push_back(i);
  const size_t innermost = nest.loops.empty() ? 0 : nest.loops.back();
  const bool is_split = u.op() == Op::Reduce && !nest.loops.empty() && !inner.empty() &&
                        inner.front() < innermost && inner.size() > 1;
  nest.loops.insert(nest.loops.end(), inner.begin(), inner.end());
  if (is_split) std::ranges::sort(nest.loops);
  nest.is_split = is_split;
  nest.lanes = (walk_.table.free[closure.place] | own) & walk_.lanes;
  return nest;
}

}  // namespace tiny

#include "codegen/linearize/loop_nest.h"

#include <bit>

#include "base/error.h"
#include "cost/borders.h"

namespace tiny {

LoopNest::LoopNest(const Kernel& kernel) : kernel_(kernel), states_(kernel.ranges.size()) {
  invariant(kernel.ranges.size() <= 64, "a kernel has at most 64 ranges");
  is_grouped_ = tiny::is_grouped(kernel);
  // An instance's coordinates are numbers with a digit a range: 0 while it is not fixed.  No loop
  // of a group is peeled.
  const int64_t peeled = is_grouped_ ? 0 : 2 * kPeeledMax;
  Digit next;
  for (size_t i = 0; i < size(); ++i) {
    switch (at(i).kind) {
      case RangeKind::Local:
        kinds_.local |= bit(i);
        [[fallthrough]];
      case RangeKind::Loop:
      case RangeKind::Thread:
        kinds_.loops |= bit(i);
        break;
      case RangeKind::Upcast:
        kinds_.upcast |= bit(i);
        [[fallthrough]];
      case RangeKind::Unroll:
        kinds_.unrolled |= bit(i);
        break;
      case RangeKind::Dot:
        kinds_.words |= bit(i);
        break;
      case RangeKind::Vec:
        kinds_.lanes |= bit(i);
        states_[i].kind = RangeState::Lane;
        break;
    }
    int64_t digits = 2 * kPeeledMax;
    if ((kinds_.unrolled | kinds_.words) & bit(i)) digits = extent(i);
    if (kinds_.loops & bit(i)) digits = peeled;
    uint64_t above = 0;
    if (__builtin_mul_overflow(next.radix, static_cast<uint64_t>(digits) + 1, &above)) {
      next = {next.word + 1, 1};
      above = static_cast<uint64_t>(digits) + 1;
    }
    require(next.word < 2, Status::Limit, "a kernel has too many instances of its values");
    digits_.push_back(next);
    next.radix = above;
  }
  for (const UOp& u : topological(kernel.roots)) {
    if (!is_stage(u)) continue;
    for (const UOp& r : u.src().subspan(1))
      kinds_.filling |= bit(kernel.position(r)) & kinds_.loops;
  }
}

void LoopNest::open_loop(size_t position, LinearId variable, size_t depth) {
  states_[position].kind = RangeState::Open;
  states_[position].loop = variable;
  states_[position].depth = depth;
  open_ |= bit(position);
  ++version_;
}

void LoopNest::open_iteration(size_t position, int64_t value) {
  fix(position, value);
  open_ |= bit(position);
}

void LoopNest::close(size_t position) {
  open_ &= ~bit(position);
  release(position);
}

void LoopNest::set_limit(RangeSet positions, int64_t steps) {
  for (RangeSet set = positions; set; set &= set - 1)
    states_[static_cast<size_t>(std::countr_zero(set))].limit = steps;
}

uint64_t LoopNest::digit_of(size_t position, int64_t value) const {
  int64_t digit = value + 1;
  // A loop is fixed at its first and last iterations only.
  if ((kinds_.loops & bit(position)) && digit > kPeeledMax)
    digit = kPeeledMax + extent(position) - value;
  return digits_[position].radix * static_cast<uint64_t>(digit);
}

void LoopNest::fix(size_t position, int64_t value) {
  RangeState& state = states_[position];
  if (kinds_.loops & bit(position)) ++version_;
  state.kind = RangeState::Fixed;
  state.value = value;
  state.digit = digit_of(position, value);
  fixed_ |= bit(position);
}

void LoopNest::release(size_t position) {
  if (kinds_.loops & bit(position)) ++version_;
  states_[position].kind = kinds_.lanes & bit(position) ? RangeState::Lane : RangeState::Closed;
  fixed_ &= ~bit(position);
}

RangeSet LoopNest::free_of(const UOp& node) {
  if (const RangeSet* found = free_.find(node.node())) return *found;
  kept_.push_back(node);
  add_free_ranges(kernel_, {&node, 1}, free_);
  return free_.at(node.node());
}

int64_t LoopNest::lanes_in(RangeSet set) const {
  const RangeSet lanes = set & kinds_.lanes;
  if (!lanes) return 1;
  invariant(std::has_single_bit(lanes), "a value has the lanes of one range");
  return extent(static_cast<size_t>(std::countr_zero(lanes)));
}

InstanceKey LoopNest::key_at(const Node* node, RangeSet coordinates, uint64_t use) const {
  InstanceKey key{node, {}, use};
  for (RangeSet set = coordinates; set; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    key.coordinates[digits_[i].word] += states_[i].digit;
  }
  return key;
}

InstanceKey LoopNest::key_of(const UOp& node) {
  return key_at(node.node(), free_of(node) & fixed_, 0);
}

RangeSet LoopNest::instances_of(const UOp& node, RangeSet own) {
  RangeSet set = own;
  for (const UOp& s : node.src()) set |= free_of(s);
  return set & kinds_.unrolled & ~fixed_;
}

void LoopNest::for_each_instance(RangeSet ranges, const std::function<void(size_t)>& body) {
  std::vector<size_t> positions;
  size_t count = 1;
  for (RangeSet set = ranges; set; set &= set - 1) {
    positions.push_back(static_cast<size_t>(std::countr_zero(set)));
    count *= static_cast<size_t>(extent(positions.back()));
  }
  for (size_t instance = 0; instance < count; ++instance) {
    size_t rest = instance;
    bool is_beyond = false;
    for (size_t i = positions.size(); i-- > 0;) {
      const RangeState& state = states_[positions[i]];
      const auto n = static_cast<size_t>(extent(positions[i]));
      fix(positions[i], static_cast<int64_t>(rest % n));
      is_beyond = is_beyond || (state.limit && state.value >= state.limit);
      rest /= n;
    }
    if (!is_beyond) body(instance);
  }
  for (size_t p : positions) release(p);
}

}  // namespace tiny

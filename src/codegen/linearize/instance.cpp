// Values: every node once for each coordinate of the unrolled ranges that it depends on, in the
// block of its deepest loop.
#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "codegen/linearize/lineariser.h"
#include "ir/build.h"
#include "ir/fold.h"

namespace tiny {

RangeSet Lineariser::free_of(const UOp& node) {
  if (const RangeSet* found = free_.find(node.node())) return *found;
  kept_.push_back(node);
  add_free_ranges(kernel_, {&node, 1}, free_);
  return free_.at(node.node());
}

uint64_t Lineariser::digit_of(size_t position, int64_t value) const {
  int64_t digit = value + 1;
  // A loop is fixed at its first and last iterations only.
  if ((loops_ & bit(position)) && digit > kPeeledMax)
    digit = kPeeledMax + kernel_.ranges[position].range.src(0).const_int() - value;
  return digits_[position].radix * static_cast<uint64_t>(digit);
}

// Gives a range a coordinate.
void Lineariser::fix(size_t position, int64_t value) {
  RangeState& state = states_[position];
  if (loops_ & bit(position)) ++nest_;
  state.kind = RangeState::Fixed;
  state.value = value;
  state.digit = digit_of(position, value);
  fixed_ |= bit(position);
}

// Takes it back.
void Lineariser::release(size_t position) {
  if (loops_ & bit(position)) ++nest_;
  states_[position].kind = vec_ & bit(position) ? RangeState::Lane : RangeState::Closed;
  fixed_ &= ~bit(position);
}

InstanceKey Lineariser::key_of(const UOp& node) {
  InstanceKey key{node.node(), {}, 0};
  for (RangeSet set = free_of(node) & fixed_; set; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    key.coordinates[digits_[i].word] += states_[i].digit;
  }
  return key;
}

int64_t Lineariser::lanes_in(RangeSet set) const {
  const RangeSet lanes = set & vec_;
  if (!lanes) return 1;
  invariant(std::has_single_bit(lanes), "a value has the lanes of one range");
  return kernel_.ranges[static_cast<size_t>(std::countr_zero(lanes))].range.src(0).const_int();
}

bool Lineariser::is_index(const UOp& node) {
  if (node.dtype() != kInt64) return false;
  switch (node.op()) {
    case Op::Const:
    case Op::Range:
    case Op::Variable:
      return true;
    case Op::Neg:
      return is_index(node.src(0));
    case Op::Add:
    case Op::Mul:
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::Max:
    case Op::Min:
      return is_index(node.src(0)) && is_index(node.src(1));
    default:
      return false;
  }
}

LinearId Lineariser::constant(DType dtype, uint64_t bits) {
  // No node has it: its key is its bits and its dtype, which no widened value has.
  const uint64_t scalar = static_cast<uint64_t>(dtype.scalar) + 1;
  const InstanceKey key{nullptr, {bits, scalar}, static_cast<uint64_t>(dtype.lanes)};
  if (const LinearId* known = tree_.find(key)) return *known;
  const LinearId id = tree_.add(0, Op::Const, dtype, {}, static_cast<int64_t>(bits));
  tree_.remember(key, id);
  return id;
}

LinearId Lineariser::widened(LinearId id, int64_t lanes) {
  const LinearOp& op = tree_.op(id);
  if (op.dtype.lanes == lanes) return id;
  invariant(op.dtype.lanes == 1, "a value is widened from one lane");
  const DType wide = op.dtype.with_lanes(lanes);
  if (op.op == Op::Const) return constant(wide, static_cast<uint64_t>(op.imm));
  const InstanceKey key{nullptr, {id, 0}, static_cast<uint64_t>(lanes)};
  if (const LinearId* known = tree_.find(key)) return *known;
  const LinearId out = tree_.add(depth_of(id), Op::Broadcast, wide, {id});
  tree_.remember(key, out);
  return out;
}

// One op over operands that may be constants: integers fold, so that coordinates disappear.
LinearId Lineariser::elementwise_op(Op op, DType dtype, std::span<const LinearId> src) {
  int64_t lanes = 1;
  for (LinearId s : src) lanes = std::max<int64_t>(lanes, tree_.op(s).dtype.lanes);
  const auto is_const = [&](LinearId s, int64_t value) {
    const LinearOp& o = tree_.op(s);
    return o.op == Op::Const && o.dtype.is_int() &&
           int_of(o.dtype.element(), static_cast<uint64_t>(o.imm)) == value;
  };
  bool all_const = true;
  for (LinearId s : src) all_const = all_const && tree_.op(s).op == Op::Const;
  if (all_const) {
    std::array<uint64_t, 3> bits{};
    for (size_t i = 0; i < src.size(); ++i) bits[i] = static_cast<uint64_t>(tree_.op(src[i]).imm);
    const DType operand = tree_.op(src.back()).dtype.element();
    const uint64_t folded = fold_bits(op, dtype.element(), operand, bits.data());
    return constant(dtype.with_lanes(lanes), folded);
  }
  if (op == Op::Where && tree_.op(src[0]).op == Op::Const)
    return widened(src[tree_.op(src[0]).imm != 0 ? 1 : 2], lanes);
  if (op == Op::Add && is_const(src[0], 0)) return widened(src[1], lanes);
  if (op == Op::Add && is_const(src[1], 0)) return widened(src[0], lanes);
  if (op == Op::Mul && is_const(src[0], 1)) return widened(src[1], lanes);
  if (op == Op::Mul && is_const(src[1], 1)) return widened(src[0], lanes);
  size_t depth = 0;
  std::array<LinearId, 3> wide{};
  for (size_t i = 0; i < src.size(); ++i) {
    wide[i] = widened(src[i], lanes);
    depth = std::max(depth, depth_of(wide[i]));
  }
  const DType out = dtype.with_lanes(lanes);
  switch (src.size()) {
    case 1:
      return tree_.add(depth, op, out, {wide[0]});
    case 2:
      return tree_.add(depth, op, out, {wide[0], wide[1]});
    default:
      return tree_.add(depth, op, out, {wide[0], wide[1], wide[2]});
  }
}

LinearId Lineariser::scalar_index(const UOp& expression) {
  const LinearId id = value_of(expression);
  invariant(tree_.op(id).dtype.lanes == 1, "an index expression has one lane here");
  return id;
}

// A number made from an index: lanes become a ramp, of 32 bits where the values fit.
LinearId Lineariser::cast_index(const UOp& node) {
  const UOp& index = node.src(0);
  const IndexForm& form = form_of(index);
  invariant(!form.vector_atom, "an index made of ranges has no vector atom");
  const int64_t lanes = lanes_in(free_of(node));
  const Interval range = bounds_.of(index);
  const bool narrow = node.dtype() != kInt64 && node.dtype() != kUInt64 &&
                      node.dtype() != kFloat64 && range.lo >= INT32_MIN && range.hi <= INT32_MAX;
  LinearId base = scalar_of(form);
  const DType ramp = narrow ? kInt32 : kInt64;
  if (narrow) base = elementwise_op(Op::Cast, kInt32, std::span(&base, 1));
  const LinearId wide =
      tree_.add(depth_of(base), Op::Ramp, ramp.with_lanes(lanes), {base}, form.lane);
  if (node.dtype() == ramp) return wide;
  return elementwise_op(Op::Cast, node.dtype(), std::span(&wide, 1));
}

LinearId Lineariser::lanes_of_index(const UOp& expression, int64_t lanes) {
  const IndexForm& form = form_of(expression);
  if (form.vector_atom) return widened(value_of(expression), lanes);
  const int64_t step = form.lane;
  const LinearId base = scalar_of(form);
  if (step == 0) return widened(base, lanes);
  return tree_.add(tree_.depth(), Op::Ramp, kInt64.with_lanes(lanes), {base}, step);
}

// Nodes whose value is not made from the values of all their sources.
bool Lineariser::leaf(const UOp& node, LinearId* out) {
  switch (node.op()) {
    case Op::Const:
      *out = constant(node.dtype(), node.const_bits());
      return true;
    case Op::Variable:
      for (size_t i = 0; i < kernel_.variables.size(); ++i)
        if (kernel_.variables[i] == node)
          *out = tree_.add(0, Op::Variable, kInt64, {}, static_cast<int64_t>(i));
      return true;
    case Op::Range: {
      const RangeState& state = states_[kernel_.position(node)];
      invariant(state.kind != RangeState::Closed, "a range is open where it is used");
      if (state.kind == RangeState::Open) *out = state.loop;
      if (state.kind == RangeState::Fixed) *out = index_constant(state.value);
      if (state.kind == RangeState::Lane)
        *out = tree_.add(0, Op::Ramp, kInt64.with_lanes(lanes_in(free_of(node))),
                         {index_constant(0)}, 1);
      return true;
    }
    case Op::Load:
      *out = load(node);
      return true;
    case Op::Place:
      *out = value_of(node.src(0));
      return true;
    case Op::Index:
      *out = read_stage(node);
      return true;
    case Op::Before:
    case Op::Last:
      *out = read_state(node);
      return true;
    case Op::Reduce:
    case Op::Stage:
    case Op::Running:
      invariant(false, "a reduction is finished before its value is used");
      return true;
    case Op::Cast:
      if (!is_index(node.src(0)) || !(free_of(node) & vec_)) return false;
      if (form_of(node.src(0)).vector_atom) return false;  // a product of lanes is no ramp
      *out = cast_index(node);
      return true;
    case Op::Less:
    case Op::LessEqual: {
      if (!compares_indices(node)) return false;
      const UOp e = room_of(node);
      const int64_t lanes = lanes_in(free_of(node));
      // Across lanes they are ranges of lanes, not vectors of 64-bit integers.
      if (lanes == 1 && !proven(e) && !impossible(e)) return false;
      const Condition c = condition(e, lanes);
      *out = bool_of(c, lanes);
      relied_on_ = std::max(relied_on_, c.depth);
      return true;
    }
    default:
      return false;
  }
}

bool Lineariser::compares_indices(const UOp& node) {
  return (node.op() == Op::Less || node.op() == Op::LessEqual) && is_index(node.src(0)) &&
         is_index(node.src(1));
}

// What is not negative where a comparison of indices holds.
const UOp& Lineariser::room_of(const UOp& comparison) {
  UOp& room = rooms_[comparison.node()];
  if (room) return room;
  room = sub(comparison.src(1), comparison.src(0));
  if (comparison.op() == Op::Less) room = add(room, -1);
  return room;
}

LinearId Lineariser::compute(const UOp& node, std::span<const LinearId> src) {
  invariant(has(node.op(), kElementwise), "what is left in a kernel is elementwise");
  return elementwise_op(node.op(), node.dtype(), src);
}

// Whether the condition of a choice is known: then only what it chooses is computed.
bool Lineariser::is_decided(const UOp& node, std::span<const LinearId> src) const {
  return node.op() == Op::Where && !src.empty() && tree_.op(src[0]).op == Op::Const;
}

struct Lineariser::Frame {
  const UOp& node;
  size_t next = 0;
  size_t count = 0;  // operands that are made
  std::array<LinearId, 3> src{};
  size_t relied_on = 0;  // what the operands hold by
};

// Whether the value is known, or made at once.
bool Lineariser::enter(const UOp& node, LinearId* out) {
  const InstanceKey key = key_of(node);
  if (const BlockTree::Remembered* known = tree_.recall(key)) {
    *out = known->id;
    relied_on_ = known->depth;
    return true;
  }
  relied_on_ = 0;
  if (!leaf(node, out)) return false;
  tree_.remember(key, *out, relied_on_);
  return true;
}

// Depth first without recursion: operands appear just before their first use.
LinearId Lineariser::value_of(const UOp& node) {
  const size_t relied_before = relied_on_;
  LinearId result = 0;
  bool entered = enter(node, &result);
  std::vector<Frame> stack;
  if (!entered) stack.push_back({node});
  while (!stack.empty()) {
    node.graph().look();
    Frame& top = stack.back();
    if (entered) {
      top.src[top.count++] = result;
      top.relied_on = std::max(top.relied_on, relied_on_);
      ++top.next;
    }
    const std::span<const LinearId> made(top.src.data(), top.count);
    const bool chosen = is_decided(top.node, made);
    if (top.next < top.node.src().size() && !(chosen && top.count == 2)) {
      if (chosen) top.next = tree_.op(top.src[0]).imm != 0 ? 1 : 2;
      const UOp& next = top.node.src(top.next);
      entered = enter(next, &result);
      if (!entered) stack.push_back({next});
      continue;
    }
    result = chosen ? widened(top.src[1], lanes_in(free_of(top.node))) : compute(top.node, made);
    relied_on_ = top.relied_on;
    tree_.remember(key_of(top.node), result, relied_on_);
    stack.pop_back();
    entered = true;
  }
  relied_on_ = std::max(relied_before, relied_on_);
  return result;
}

}  // namespace tiny

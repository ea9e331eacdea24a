#include "codegen/linearize/values.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"

namespace tiny {

LinearId Values::scalar_index(const UOp& expression) {
  const LinearId id = value_of(expression);
  invariant(emit_.op(id).dtype.lanes == 1, "an index expression has one lane here");
  return id;
}

LinearId Values::scalar_of(const IndexForm& form) {
  const int64_t constant = form.constant;
  const LinearId sum = value_of(forms_.sum_of(form.terms));
  return emit_.elementwise(Op::Add, kInt64, {sum, emit_.index_constant(constant)});
}

LinearId Values::range_value(const UOp& range) {
  const RangeState& state = nest_.state(nest_.kernel().position(range));
  invariant(state.kind != RangeState::Closed, "a range is open where it is used");
  if (state.kind == RangeState::Open) return state.loop;
  if (state.kind == RangeState::Fixed) return emit_.index_constant(state.value);
  return emit_.add(0, Op::Ramp, kInt64.with_lanes(nest_.lanes_of(range)), {emit_.index_constant(0)},
                   1);
}

bool Values::leaf(const UOp& node, LinearId* out) {
  switch (node.op()) {
    case Op::Const:
      *out = emit_.constant(node.dtype(), node.const_bits());
      return true;
    case Op::Variable: {
      const std::vector<UOp>& variables = nest_.kernel().variables;
      for (size_t i = 0; i < variables.size(); ++i)
        if (variables[i] == node)
          *out = emit_.add(0, Op::Variable, kInt64, {}, static_cast<int64_t>(i));
      return true;
    }
    case Op::Range:
      *out = range_value(node);
      return true;
    case Op::Place:
      *out = value_of(node.src(0));
      return true;
    case Op::Reduce:
    case Op::Stage:
    case Op::Running:
      invariant(false, "a reduction is finished before its value is used");
      return true;
    default:
      return leaves_.leaf(node, out);
  }
}

// Whether the condition of a choice is known: then only what it chooses is computed.
bool Values::is_decided(const UOp& node, std::span<const LinearId> src) const {
  return node.op() == Op::Where && !src.empty() && emit_.op(src[0]).op == Op::Const;
}

struct Values::Frame {
  const UOp& node;
  size_t next = 0;
  size_t count = 0;  // operands that are made
  std::array<LinearId, 3> src{};
  size_t relied_on = 0;  // what the operands hold by
};

// Whether the value is known, or made at once.
bool Values::enter(const UOp& node, LinearId* out) {
  const InstanceKey key = nest_.key_of(node);
  if (const BlockTree::Remembered* known = emit_.recall(key)) {
    *out = known->id;
    emit_.set_relied_on(known->depth);
    return true;
  }
  emit_.set_relied_on(0);
  if (!leaf(node, out)) return false;
  emit_.remember(key, *out, emit_.relied_on());
  return true;
}

// Depth first without recursion: operands appear just before their first use.
LinearId Values::value_of(const UOp& node) {
  const size_t relied_before = emit_.relied_on();
  LinearId result = 0;
  bool entered = enter(node, &result);
  std::vector<Frame> stack;
  if (!entered) stack.push_back({node});
  while (!stack.empty()) {
    node.graph().look();
    Frame& top = stack.back();
    if (entered) {
      top.src[top.count++] = result;
      top.relied_on = std::max(top.relied_on, emit_.relied_on());
      ++top.next;
    }
    const std::span<const LinearId> made(top.src.data(), top.count);
    const bool chosen = is_decided(top.node, made);
    if (top.next < top.node.src().size() && !(chosen && top.count == 2)) {
      if (chosen) top.next = emit_.op(top.src[0]).imm != 0 ? 1 : 2;
      const UOp& next = top.node.src(top.next);
      entered = enter(next, &result);
      if (!entered) stack.push_back({next});
      continue;
    }
    const Op op = top.node.op();
    invariant(has(op, kElementwise), "what is left in a kernel is elementwise");
    result = chosen ? emit_.widened(top.src[1], nest_.lanes_of(top.node))
                    : emit_.elementwise(op, top.node.dtype(), made);
    emit_.set_relied_on(top.relied_on);
    emit_.remember(nest_.key_of(top.node), result, emit_.relied_on());
    stack.pop_back();
    entered = true;
  }
  emit_.rely_on(relied_before);
  return result;
}

}  // namespace tiny

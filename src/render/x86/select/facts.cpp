#include "render/x86/select/facts.h"

#include <algorithm>

#include "render/x86/select/emitter.h"

namespace tiny::x86 {

namespace {

bool opens_block(Op op) {
  return op == Op::Loop || op == Op::If;
}

bool ends_epoch(Op op) {
  return opens_block(op) || op == Op::EndLoop || op == Op::EndIf || op == Op::Store ||
         op == Op::Set;
}

// Ops that write their result with their last instruction, so that it may replace an operand.
bool computes_in_place(const LinearOp& o) {
  if (o.dtype.is_bool()) return false;
  switch (o.op) {
    case Op::Dot:
      return o.dtype.lanes > 1;
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Max:
    case Op::Min:
    case Op::Fma:
      return o.dtype.lanes == 1 || o.dtype.bytes() >= 4;
    default:
      return false;
  }
}

// A value whose only use is to be Set into an accumulator is computed in the accumulator's
// register, and so are the partial sums it is made of, as long as nothing reads the accumulator
// meanwhile.
void find_targets(const LinearView& ops, Facts& facts) {
  std::vector<LinearId> last_read(ops.size(), 0);
  for (LinearId i = 0, end = ops.size(); i < end; ++i) {
    const LinearOp& o = ops.op(i);
    if (o.op == Op::Set) {
      const LinearId acc = o.src[0];
      const LinearId barrier = last_read[acc];
      for (LinearId v = o.src[1]; v >= barrier && v > acc;) {
        if (facts[v].uses != 1 || facts[v].block != facts[i].block ||
            !computes_in_place(ops.op(v)) || facts[v].target != kNoTarget)
          break;
        facts[v].target = acc;
        const LinearOp& made = ops.op(v);
        v = made.op == Op::Fma || made.op == Op::Dot ? made.src[2]
                                                     : std::max(made.src[0], made.src[1]);
      }
      last_read[acc] = i;
      continue;
    }
    for (size_t s = 0; s < o.count; ++s)
      if (ops.source(o, s).op == Op::Accumulator) last_read[o.src[s]] = i;
  }
}

// AVX2 masks are made in the lanes that their users have, where they have no width of their own.
void want_lanes(const LinearView& ops, Facts& facts) {
  for (LinearId i = ops.size(); i-- > 0;) {
    const LinearOp& o = ops.op(i);
    for (size_t s = 0; s < o.count; ++s) {
      if (!is_mask(ops.source(o, s).dtype)) continue;
      int64_t lane = 0;
      if (o.op == Op::Store)
        lane = s == 3 ? ops.source(o, 2).dtype.bytes() : 1;
      else if (o.op == Op::Set || o.op == Op::Accumulator || is_mask(o.dtype))
        lane = facts[o.src[s]].lane;
      else if (o.dtype != kVoid && o.op != Op::Fold)
        lane = o.dtype.bytes();
      if (is_mask(o.dtype) && o.op != Op::Set && facts[i].lane != 0) lane = facts[i].lane;
      if (lane != 0) facts[o.src[s]].lane = static_cast<uint8_t>(lane);
    }
  }
  for (LinearId i = 0, end = ops.size(); i < end; ++i) {
    const DType d = ops.op(i).dtype;
    if (is_mask(d) && (facts[i].lane == 0 || facts[i].lane * d.lanes > 32))
      facts[i].lane =
          static_cast<uint8_t>(std::min<int64_t>(4, 32 / std::min<int64_t>(32, d.lanes)));
  }
}

}  // namespace

Facts find_facts(const LinearView& ops, bool avx512) {
  Facts facts(ops.size());
  uint32_t epoch = 0, block = 0;
  for (LinearId i = 0, end = ops.size(); i < end; ++i) {
    const LinearOp& o = ops.op(i);
    for (size_t s = 0; s < o.count; ++s) {
      ++facts[o.src[s]].uses;
      facts[o.src[s]].user = i;
    }
    if (ends_epoch(o.op)) ++epoch;
    if (opens_block(o.op) || o.op == Op::EndLoop || o.op == Op::EndIf) ++block;
    facts[i].epoch = epoch;
    facts[i].block = block;
  }
  find_targets(ops, facts);
  if (!avx512) want_lanes(ops, facts);
  return facts;
}

}  // namespace tiny::x86

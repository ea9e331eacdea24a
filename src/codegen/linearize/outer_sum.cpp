#include "codegen/linearize/outer_sum.h"

#include "base/error.h"

namespace tiny {

OuterSum::OuterSum(Emitter& emit, LoopNest& nest, Values& values, const UOp& outer,
                   const UOp& added)
    : emit_(emit), nest_(nest), values_(values), outer_(outer), added_(added) {
  if (!outer_) return;
  const auto is_sum = [](const UOp& u) { return u.op() == Op::Reduce; };
  std::vector<UOp> roots = nest.kernel().roots;
  if (added_) roots.push_back(added_);
  for (const UOp& u : topological(roots, is_sum))
    if (u.op() != Op::Store && reaches(u, outer_)) made_of_sum_.push_back(u);
}

// Trips that are peeled share a block, so each begins anew, and so does what is made of the sum.
void OuterSum::begin_part() {
  for (const UOp& u : made_of_sum_) emit_.forget(nest_.key_of(u));
  LinearId part = values_.value_of(outer_.src(0));
  const LinearOp& op = emit_.op(part);
  if (op.op != Op::Accumulator) part = emit_.add(emit_.depth(), Op::Accumulator, op.dtype, {part});
  emit_.remember(nest_.key_of(outer_), part);
}

LinearId OuterSum::part() const {
  const LinearId* part = emit_.find(nest_.key_of(outer_));
  invariant(part != nullptr, "a part of a sum is begun before it is used");
  return *part;
}

LinearId OuterSum::is_beyond_first() {
  LinearId sum = emit_.index_constant(0);
  for (const UOp& r : outer_.src().subspan(1))
    sum = emit_.elementwise(Op::Add, kInt64, {sum, values_.scalar_index(r)});
  return emit_.elementwise(Op::Less, kBool, {emit_.index_constant(0), sum});
}

LinearId OuterSum::is_last() {
  LinearId all = emit_.constant(kBool, 1);
  for (const UOp& r : outer_.src().subspan(1)) {
    const LinearId index = values_.scalar_index(r);
    const LinearId next = emit_.elementwise(Op::Add, kInt64, {index, emit_.index_constant(1)});
    const LinearId end = nest_.state(nest_.kernel().position(r)).end;
    const LinearId is_end = emit_.elementwise(Op::Equal, kBool, {next, end});
    all = emit_.elementwise(Op::And, kBool, {all, is_end});
  }
  return all;
}

}  // namespace tiny

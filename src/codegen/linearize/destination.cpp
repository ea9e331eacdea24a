// A sum whose outer loops lie outside of its store's: each trip adds its part to what the
// destination holds (split_reduce.h).
#include "base/error.h"
#include "codegen/linearize/lineariser.h"

namespace tiny {

// The register that holds an instance of the sum: this trip's part, to which is added what the
// destination holds.  Trips that are peeled share a block, so each begins anew, and so does what is
// made of the sum.
void Lineariser::begin_part() {
  for (const UOp& u : made_of_sum_) tree_.forget(key_of(u));
  LinearId part = value_of(outer_.src(0));
  const LinearOp& op = tree_.op(part);
  if (op.op != Op::Accumulator) part = tree_.add(tree_.depth(), Op::Accumulator, op.dtype, {part});
  tree_.remember(key_of(outer_), part);
}

LinearId Lineariser::part_of_sum() {
  const LinearId* part = tree_.find(key_of(outer_));
  invariant(part != nullptr, "a part of a sum is begun before it is used");
  return *part;
}

LinearId Lineariser::any_outer_beyond_first() {
  LinearId sum = index_constant(0);
  for (size_t i = 1; i < outer_.src().size(); ++i) {
    const LinearId both[] = {sum, scalar_index(outer_.src(i))};
    sum = elementwise_op(Op::Add, kInt64, both);
  }
  const LinearId both[] = {index_constant(0), sum};
  return elementwise_op(Op::Less, kBool, both);
}

LinearId Lineariser::all_outer_last() {
  LinearId all = constant(kBool, 1);
  for (size_t i = 1; i < outer_.src().size(); ++i) {
    const UOp& r = outer_.src(i);
    const LinearId next_of[] = {scalar_index(r), index_constant(1)};
    const LinearId next[] = {elementwise_op(Op::Add, kInt64, next_of),
                             states_[kernel_.position(r)].end};
    const LinearId both[] = {all, elementwise_op(Op::Equal, kBool, next)};
    all = elementwise_op(Op::And, kBool, both);
  }
  return all;
}

// A trip of the outer loops: the first stores its part, later ones add theirs to what is stored,
// and the last makes the store's value of the sum.
void Lineariser::add_into_destination(Task& store) {
  const RangeSet all = value_ranges(store);
  const auto under = [&](LinearId condition, Step step) {
    const LinearOp& op = tree_.op(condition);
    if (op.op == Op::Const && op.imm == 0) return;
    const bool always = op.op == Op::Const;
    if (!always) tree_.open(Op::If, kVoid, {condition});
    for_each_instance(all, [&](size_t instance) { close_instance(store, instance, step); });
    if (!always) tree_.close();
  };
  for_each_instance(all, [&](size_t) { begin_part(); });
  under(any_outer_beyond_first(), Step::AddDestination);
  if (store.node.src(1) == outer_) return under(constant(kBool, 1), Step::StorePart);
  const LinearId last = all_outer_last();
  const LinearId other = elementwise_op(Op::Not, kBool, std::span(&last, 1));
  under(last, Step::Close);
  under(other, Step::StorePart);
}

}  // namespace tiny

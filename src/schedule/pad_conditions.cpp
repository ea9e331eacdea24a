#include "schedule/pad_conditions.h"

#include <algorithm>

#include "ir/bounds.h"
#include "ir/build.h"
#include "schedule/accesses.h"

namespace tiny {

namespace {

bool is_zero(const UOp& u) {
  return u.is_const() && u.const_bits() == 0;
}

// What is not negative where comparisons of indices all hold; false: there is more to it.
bool add_slacks(const UOp& condition, IndexSimplifier& simplify, std::vector<UOp>& to) {
  if (condition.op() == Op::And)
    return add_slacks(condition.src(0), simplify, to) && add_slacks(condition.src(1), simplify, to);
  if ((condition.op() != Op::Less && condition.op() != Op::LessEqual) ||
      condition.src(0).dtype() != kInt64)
    return false;
  to.push_back(simplify(slack_of(condition)));
  return true;
}

}  // namespace

void leave_out_checked(const UOp& value, std::vector<UOp>& conditions, IndexSimplifier& simplify) {
  if (conditions.empty()) return;
  std::vector<UOp> inside;  // not negative where the value is not zero anyway
  UOp load = value;
  for (; load.op() == Op::Where && is_zero(load.src(2)); load = UOp(load.src(1)))
    add_slacks(load.src(0), simplify, inside);
  if (load.op() != Op::Load) return;
  Graph& graph = load.graph();
  const Ints& shape = load.view_arg().shape;
  size_t symbolic = 1 + shape.size();  // the source that is the next symbolic size
  for (size_t i = 0; i < shape.size(); ++i) {
    const UOp& index = load.src(1 + i);
    const UOp size = shape[i] == kSymbolicDim ? UOp(load.src(symbolic++)) : graph.integer(shape[i]);
    inside.push_back(index);
    inside.push_back(simplify(sub(sub(size, index), graph.integer(1))));
  }
  std::erase_if(conditions, [&](const UOp& c) {
    std::vector<UOp> asked;
    return add_slacks(c, simplify, asked) && std::ranges::all_of(asked, [&](const UOp& slack) {
             return prove_nonnegative(slack, inside);
           });
  });
}

bool is_zero_outside(const Shape& shape, const UOp& value, const std::vector<UOp>& index) {
  if (value.op() != Op::Load) return false;
  const ViewArg& view = value.view_arg();
  Graph& graph = value.graph();
  // An axis that the load has not is one whose index is in range anyway.
  size_t axis = 0;
  size_t symbolic = 1 + view.shape.size();  // the source that is the next symbolic size
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool is_of_run = axis < view.shape.size() && view.shape[axis] == kSymbolicDim;
    const bool same =
        axis < view.shape.size() && value.src(1 + axis) == index[i] &&
        (is_of_run ? shape[i].uop(graph) == value.src(symbolic) : shape[i].is(view.shape[axis]));
    if (!same && !is_in_range(index[i], shape[i])) return false;
    axis += same ? 1 : 0;
    symbolic += same && is_of_run ? 1 : 0;
  }
  return axis == view.shape.size();
}

}  // namespace tiny

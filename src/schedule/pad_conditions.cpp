#include "schedule/pad_conditions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/bounds.h"
#include "ir/build.h"
#include "schedule/accesses.h"

namespace tiny {

namespace {

bool is_zero(const UOp& u) {
  return u.is_const() && u.const_bits() == 0;
}

// What is not negative where comparisons of indices all hold; false: there is more to it.
bool add_slacks(const UOp& condition, std::vector<UOp>& to) {
  if (condition.op() == Op::And)
    return add_slacks(condition.src(0), to) && add_slacks(condition.src(1), to);
  if ((condition.op() != Op::Less && condition.op() != Op::LessEqual) ||
      condition.src(0).dtype() != kInt64)
    return false;
  to.push_back(slack_of(condition));
  return true;
}

// What is not negative where the value is not zero anyway.  Indices are simplified, so that sums of
// them with sizes are as they would be.
class Inside {
 public:
  explicit Inside(const UOp& value) {
    std::vector<UOp> facts;
    UOp load = value;
    for (; load.op() == Op::Where && is_zero(load.src(2)); load = UOp(load.src(1)))
      add_slacks(load.src(0), facts);
    if (load.op() != Op::Load) return;
    is_load_ = true;
    for (const UOp& fact : facts) add(affine(fact));
    const Ints& shape = load.view_arg().shape;
    size_t symbolic = 1 + shape.size();  // the source that is the next symbolic size
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool is_of_run = shape[i] == kSymbolicDim;
      const std::optional<Affine> size =
          is_of_run ? affine(load.src(symbolic++)) : std::optional(Affine{shape[i], {}});
      const std::optional<Affine> index = affine(load.src(1 + i));
      if (!index) continue;
      std::optional<Affine> room = size ? add_scaled(*size, *index, -1) : std::nullopt;
      if (room) room->constant -= 1;
      add(index);
      add(std::move(room));
    }
  }
  bool is_load() const { return is_load_; }

  bool proves(const UOp& slack) {
    if (bounds_.of(slack).lo >= 0) return true;
    const std::optional<Affine> sum = affine(slack);
    return sum && prove_nonnegative(*sum, facts_, bounds_);
  }

 private:
  void add(std::optional<Affine> fact) {
    if (fact) facts_.push_back(std::move(*fact));
  }

  bool is_load_ = false;
  std::vector<Affine> facts_;
  BoundsCache bounds_;
};

}  // namespace

void leave_out_checked(const UOp& value, std::vector<UOp>& conditions) {
  if (conditions.empty()) return;
  Inside inside(value);
  if (!inside.is_load()) return;
  std::erase_if(conditions, [&](const UOp& c) {
    std::vector<UOp> asked;
    return add_slacks(c, asked) &&
           std::ranges::all_of(asked, [&](const UOp& slack) { return inside.proves(slack); });
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

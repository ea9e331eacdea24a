#include <algorithm>
#include <utility>

#include "autograd/rule_functions.h"
#include "ir/build.h"
#include "shape/movement_axis.h"
#include "shape/view.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

const Shape& below(const Step& step) {
  return shape_of(step.source(0));
}

UOp zeros(const UOp& like) {
  return broadcast_to(like.graph().constant(like.dtype(), 0), shape_of(like));
}

// The row-major places of a view's elements among those that it is a view of.
UOp places_of(Graph& graph, const ViewArg& view) {
  UOp place = broadcast_to(graph.integer(view.offset), to_shape(view.shape));
  for (size_t i = 0; i < view.shape.size(); ++i) {
    Shape along(view.shape.size(), Dim(1));
    along[i] = view.shape[i];
    const UOp index = make_reshape(make_iota(graph, view.shape[i], kInt64), along);
    place = add(place, mul(make_expand(index, to_shape(view.shape)),
                           broadcast_to(graph.integer(view.strides[i]), to_shape(view.shape))));
  }
  return place;
}

// What the elements of `values`, which lie at `view` of a row of elements, add to that row.
UOp added_at(const UOp& row, const ViewArg& view, const UOp& values, Op fold) {
  const Dim count = product(shape_of(values));
  const UOp places = make_reshape(places_of(row.graph(), view), {count});
  return make_scatter(row, places, make_reshape(values, {count}), fold, 0);
}

}  // namespace

void of_reshape(Step& step) {
  step.give(0, step.reached().reshaped(below(step)));
}

void of_permute(Step& step) {
  const Ints& axes = step.node().ints();
  Ints back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  step.give(0, step.reached().permuted(back));
}

void of_expand(Step& step) {
  const Shape& from = below(step);
  const Shape& to = shape_of(step.node());
  Ints axes;
  for (size_t i = 0; i < from.size(); ++i)
    if (!(from[i] == to[i])) axes.push_back(static_cast<int64_t>(i));
  step.give(0, step.reached().summed(axes));
}

void of_pad(Step& step) {
  const Shape p = movement_dims(step.node());
  const Shape& from = below(step);
  const Shape begin(p.begin(), p.begin() + std::ssize(from));
  Shape end = begin;
  for (size_t i = 0; i < end.size(); ++i) end[i] = end[i] + from[i];
  step.give(0, step.reached().shrunk(begin, end));
}

void of_shrink(Step& step) {
  const Shape p = movement_dims(step.node());
  const Shape& from = below(step);
  const Shape before(p.begin(), p.begin() + std::ssize(from));
  Shape after;
  for (size_t i = 0; i < from.size(); ++i) after.push_back(from[i] - p[from.size() + i]);
  step.give(0, step.reached().padded(before, after));
}

void of_flip(Step& step) {
  step.give(0, step.reached().flipped(step.node().ints()));
}

void of_unfold(Step& step) {
  const Unfolding windows = unfolding(step.node());
  const auto first = below(step).begin() + windows.axis;
  const Shape sizes(first, first + std::ssize(windows.along));
  Ints padding(sizes.size());
  if (const UOp& x = step.source(0); x.op() == Op::Pad)
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t before = x.ints()[static_cast<size_t>(windows.axis) + i];
      padding[i] = before == kSymbolicDim ? 0 : before;
    }
  step.give(0, step.reached().folded(windows, sizes, padding));
}

// Elements that are there twice add up.
void of_as_strided(Step& step) {
  const UOp row = make_reshape(zeros(step.source(0)), {product(below(step))});
  const UOp sum = added_at(row, step.node().view_arg(), step.total(), Op::Add);
  step.give(0, make_reshape(sum, below(step)));
}

void of_concat(Step& step) {
  const auto axis = static_cast<size_t>(step.node().int_arg());
  Shape begin(shape_of(step.node()).size(), Dim(0));
  for (size_t i = 0; i < step.node().src().size(); ++i) {
    Shape end = shape_of(step.source(i));
    end[axis] = end[axis] + begin[axis];
    if (step.wants(i)) step.give(i, step.reached().shrunk(begin, end));
    begin[axis] = end[axis];
  }
}

// Of what is computed again the walk takes the whole segment (backward.h).
void of_alias(Step& step) {
  const AliasKind kind = alias_kind(step.node());
  if (kind == AliasKind::Later || kind == AliasKind::Apart) step.give(0, step.reached());
}

void of_same(Step& step) {
  step.give(0, step.reached());
}

// To what is written: the target says where, not what.
void of_assign(Step& step) {
  if (step.wants(1)) step.give(1, step.reached());
}

// What was there before the write counts where nothing was written; what was written, where it was.
void of_after(Step& step) {
  const UOp& write = step.source(1);
  const UOp& target = write.src(0);
  const UOp total = step.total();
  std::vector<UOp> moves;
  UOp base = target;
  for (; !(base == step.source(0)) && has(base.op(), kMovement); base = UOp(base.src(0)))
    moves.push_back(base);
  const UOp before = base;
  if (step.wants(1)) {
    UOp seen = make_reshape(total, shape_of(before));
    if (std::ranges::any_of(moves, [](const UOp& m) { return m.op() == Op::AsStrided; }))
      seen = seen.graph().make(Op::Contiguous, {seen});  // memory for it to be a view of
    step.give(1, moved(moves, seen));
  }
  if (!step.wants(0)) return;
  // Ones where it was written, brought back by the rules of movement.
  const UOp ones = broadcast_to(total.graph().constant(total.dtype(), 1), shape_of(target));
  Adjoint mask{ones};
  for (const UOp& move : moves) {
    const std::vector<bool> wanted(move.src().size(), true);
    Step down(move, mask, wanted);
    gradient_rule(move.op()).apply(down);
    mask = down.given(0);
  }
  const UOp written = make_reshape(mask.total(), shape_of(total));
  step.give(0, step.reached().where(equal(written, zeros(total))));
}

}  // namespace tiny

#include "tensor/tensor.h"

#include <algorithm>
#include <span>

#include "base/error.h"

namespace tiny {

Tensor::Tensor(Ref<Context> context, UOp node)
    : context_(std::move(context)),
      cell_(make_ref<Cell>(context_, node)),
      view_(row_major(shape_of(node))),
      node_(std::move(node)),
      seen_(node_) {
}

Tensor Tensor::of_memory(Ref<Context> context, const UOp& buffer, const View& view, bool is_own) {
  Tensor t;
  t.context_ = std::move(context);
  t.cell_ = make_ref<Cell>(t.context_, buffer, is_own);
  t.view_ = view;
  t.node_ = view_of_memory(buffer, view);
  t.seen_ = buffer;
  return t;
}

Tensor Tensor::weak_int(Ref<Context> context, const Dim& value) {
  const UOp node = value.uop(context->graph());
  Tensor t(std::move(context), node);
  t.weak_ = t.is_number_ = true;
  return t;
}

Tensor Tensor::weak_float(Ref<Context> context, double value) {
  const UOp node = context->graph().constant(kFloat32, value);
  Tensor t(std::move(context), node);
  t.weak_ = t.is_number_ = true;
  t.weak_value_ = value;
  return t;
}

Tensor Tensor::as_weak() const {
  Tensor t = *this;
  t.weak_ = true;
  return t;
}

const UOp& Tensor::node() const& {
  if (cell_ && !(seen_ == cell_->node())) {
    node_ = view_of_memory(cell_->node(), view_);
    seen_ = cell_->node();
  }
  return node_;
}

Tensor Tensor::moved(UOp node, Op op, const Shape& parameters) const {
  auto view = move_view(view_, op, parameters);
  return view ? viewed(std::move(node), std::move(*view)) : with(std::move(node));
}

Tensor Tensor::viewed(UOp node, View view) const {
  Tensor t = *this;
  t.weak_ = t.is_number_ = false;
  t.view_ = std::move(view);
  t.node_ = std::move(node);
  t.seen_ = cell_->node();
  return t;
}

namespace {

// A view whose begin variables decide: the memory as an array, by the strides, of which it is a
// part along each axis.
UOp part_of_memory(const UOp& flat, const View& view) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < view.shape.size(); ++i)
    if (!view.shape[i].is(1)) axes.push_back(i);
  const auto stride = [&](size_t axis) { return view.strides[axis].value(); };
  std::ranges::stable_sort(axes, [&](size_t a, size_t b) { return stride(a) > stride(b); });
  Shape whole, begin, end;
  Ints order(axes.size());
  int64_t outer = product(shape_of(flat)).value();
  Dim rest = view.offset;
  const auto add_axis = [&](int64_t step, const Dim& size) {
    require(step > 0 && outer % step == 0, Status::Unsupported, "a view of shape ", view.shape,
            " with strides ", view.strides, " that begins where a run decides");
    const Dim at = floor_div(rest, Dim(step));
    whole.emplace_back(outer / step);
    require(upper_bound(at + size) <= outer / step, Status::Unsupported, "a view of shape ",
            view.shape, " that may go beyond axis ", whole.size() - 1, " of ", outer / step);
    begin.push_back(at);
    end.push_back(at + size);
    rest = floor_mod(rest, Dim(step));
    outer = step;
  };
  for (size_t k = 0; k < axes.size(); ++k) {
    order[axes[k] - static_cast<size_t>(std::ranges::count_if(
                        std::span(view.shape).first(axes[k]),
                        [](const Dim& d) { return d.is(1); }))] = static_cast<int64_t>(k);
    add_axis(stride(axes[k]), view.shape[axes[k]]);
  }
  UOp part;
  if (outer > 1) add_axis(1, Dim(1));
  part = make_shrink(make_reshape(flat, whole), begin, end);
  if (whole.size() > axes.size()) {
    Shape without(end.size() - 1);
    for (size_t k = 0; k < without.size(); ++k) without[k] = view.shape[axes[k]];
    part = make_reshape(part, without);
  }
  return make_reshape(make_permute(part, order), view.shape);
}

}  // namespace

UOp view_of_memory(const UOp& flat, const View& view) {
  if (!view.offset.is_const()) return part_of_memory(flat, view);
  const Dim count = product(shape_of(flat));
  if (is_row_major(view) && product(view.shape) == count) return make_reshape(flat, view.shape);
  return flat.graph().make(
      Op::AsStrided, {flat},
      ViewArg{const_dims(view.shape), const_dims(view.strides), view.offset.value()});
}

}  // namespace tiny

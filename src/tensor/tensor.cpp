#include "tensor/tensor.h"

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

UOp view_of_memory(const UOp& flat, const View& view) {
  const Dim count = product(shape_of(flat));
  if (is_row_major(view) && product(view.shape) == count) return make_reshape(flat, view.shape);
  return flat.graph().make(
      Op::AsStrided, {flat},
      ViewArg{const_dims(view.shape), const_dims(view.strides), view.offset.value()});
}

}  // namespace tiny

// A tensor: a node of the lazy graph and the context that it lives in.  A value type; nothing here
// computes until realise or read.
//
// What the library's functions share: operands of one call come from one context; shapes broadcast as
// NumPy's do; dtypes promote as docs/semantics.md says; a wrong argument is Error{InvalidArgument,
// Shape or DType} that names the call, what it got and what it wanted.
#pragma once

#include <utility>

#include "engine/context.h"
#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

class Tensor {
 public:
  Tensor() = default;
  // `weak`: made from a bare number, takes the dtype of what it meets.
  Tensor(Ref<Context> context, UOp node, bool weak = false)
      : context_(std::move(context)), node_(std::move(node)), weak_(weak) {}

  Context& context() const { return *context_; }
  const Ref<Context>& context_ref() const { return context_; }
  const UOp& node() const { return node_; }
  Graph& graph() const { return node_.graph(); }
  const Shape& shape() const { return shape_of(node_); }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  DType dtype() const { return node_.dtype(); }
  bool weak() const { return weak_; }
  explicit operator bool() const { return static_cast<bool>(node_); }
  // The same context and weakness around another node.
  Tensor with(UOp node) const { return Tensor(context_, std::move(node), false); }

 private:
  Ref<Context> context_;  // declared first: the node dies before its graph
  UOp node_;
  bool weak_ = false;
};

}  // namespace tiny

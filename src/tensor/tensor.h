// A tensor: a node of the lazy graph and the context that it lives in.  A value type; nothing here
// computes until realise or read.
//
// What the library's functions share: operands of one call come from one context; shapes broadcast
// as NumPy's do; dtypes promote as docs/semantics.md says; a wrong argument is
// Error{InvalidArgument, Shape or DType} that says what it got and what it wanted.
#pragma once

#include <utility>

#include "engine/context.h"
#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

// Dimensions of a tensor that a caller sees; views inside the library may have more.
inline constexpr int64_t kRankMax = 16;

class Tensor {
 public:
  Tensor() = default;
  Tensor(Ref<Context> context, UOp node) : context_(std::move(context)), node_(std::move(node)) {}
  // A bare number: it takes the dtype of what it meets; alone it is int64 or float32.
  static Tensor weak_int(Ref<Context> context, int64_t value);
  static Tensor weak_float(Ref<Context> context, double value);

  Context& context() const { return *context_; }
  const Ref<Context>& context_ref() const { return context_; }
  const UOp& node() const { return node_; }
  Graph& graph() const { return node_.graph(); }
  const Shape& shape() const { return shape_of(node_); }
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  DType dtype() const { return node_.dtype(); }
  bool weak() const { return weak_; }
  double weak_value() const { return weak_value_; }  // of a weak float, unrounded
  explicit operator bool() const { return static_cast<bool>(node_); }
  // The same context around another node.
  Tensor with(UOp node) const { return Tensor(context_, std::move(node)); }

 private:
  Ref<Context> context_;  // declared first: the node dies before its graph
  UOp node_;
  bool weak_ = false;
  double weak_value_ = 0;
};

}  // namespace tiny

// A tensor: a view of a value of the lazy graph, and the context that it lives in.  A value type;
// nothing here computes until realise or read.
//
// What the library's functions share: operands of one call come from one context; shapes broadcast
// as NumPy's do; dtypes promote as docs/semantics.md says; a wrong argument is
// Error{InvalidArgument, Shape or DType} that says what it got and what it wanted.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "engine/cell.h"
#include "engine/context.h"
#include "ir/uop.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

// Dimensions of a tensor that a caller sees; views inside the library may have more.
inline constexpr int64_t kRankMax = 16;

// The shape of a tensor as it was asked for.  It keeps the node that has it, since a tensor's own
// node may go at any look at the tensor: what is read of it (elements are values) stays good
// whatever becomes of the tensor.
class TensorShape {
 public:
  explicit TensorShape(UOp node) : node_(std::move(node)), dims_(&shape_of(node_)) {}
  operator Shape() const { return *dims_; }  // NOLINT: it is a shape
  size_t size() const { return dims_->size(); }
  bool empty() const { return dims_->empty(); }
  Dim operator[](size_t i) const { return (*dims_)[i]; }
  Dim back() const { return dims_->back(); }
  // Of the axes from `first` up to, and without, `last`.
  Shape part(size_t first, size_t last) const {
    const auto at = [&](size_t i) { return begin() + static_cast<ptrdiff_t>(i); };
    return {at(first), at(last)};
  }
  Shape from(size_t first) const { return part(first, size()); }
  // Of one that is held: a temporary's would end with it.
  Shape::const_iterator begin() const& { return dims_->begin(); }
  Shape::const_iterator end() const& { return dims_->end(); }
  void begin() const&& = delete;
  void end() const&& = delete;
  bool operator==(const TensorShape& other) const { return *dims_ == *other.dims_; }
  bool operator==(const Shape& other) const { return *dims_ == other; }

 private:
  UOp node_;
  const Shape* dims_;  // kept with the node
};
inline std::string to_string(const TensorShape& shape) {
  return to_string(Shape(shape));
}

class Tensor {
 public:
  Tensor() = default;
  // A value of its own.
  Tensor(Ref<Context> context, UOp node);
  // A view of memory that no other tensor has: `buffer` is a Buffer.  If it is not `is_own`, the
  // memory is never written: a write gives the tensor other memory first.
  static Tensor of_memory(Ref<Context> context, const UOp& buffer, const View& view,
                          bool is_own = true);
  // A bare number: it takes the dtype of what it meets; alone it is what the context's settings
  // say.
  static Tensor weak_int(Ref<Context> context, const Dim& value);
  static Tensor weak_float(Ref<Context> context, double value);

  Context& context() const { return *context_; }
  const Ref<Context>& context_ref() const { return context_; }
  // The value now: of the newest version of what this is a view of.
  const UOp& node() const&;
  UOp node() const&& { return node(); }
  Graph& graph() const { return node_.graph(); }
  TensorShape shape() const { return TensorShape(node_); }
  int64_t rank() const { return static_cast<int64_t>(shape_of(node_).size()); }
  DType dtype() const { return node_.dtype(); }
  // Whether it takes the dtype of what it meets: a bare number, and where the context's settings
  // say so what follows from bare numbers alone.
  bool weak() const { return weak_; }
  bool is_number() const { return is_number_; }
  double weak_value() const { return weak_value_; }  // of a number that is a float, unrounded
  Tensor as_weak() const;
  explicit operator bool() const { return static_cast<bool>(node_); }
  // Another value of the same context.
  Tensor with(UOp node) const { return Tensor(context_, std::move(node)); }

  // What this shares with its views, and where in its elements (row-major) this is.
  const Ref<Cell>& cell() const { return cell_; }
  const View& view() const { return view_; }
  // `node` is this after a movement op: a view of the same cell, or a value of its own where that
  // is no view.
  Tensor moved(UOp node, Op op, const Shape& parameters) const;
  // `node` is this through another view of the same cell.
  Tensor viewed(UOp node, View view) const;

 private:
  Ref<Context> context_;  // declared first: the node dies before its graph
  Ref<Cell> cell_;
  View view_;
  mutable UOp node_;
  mutable UOp seen_;  // the cell's node when node_ was made
  bool weak_ = false;
  bool is_number_ = false;
  double weak_value_ = 0;
};

// A view of flat memory as a node.
UOp view_of_memory(const UOp& flat, const View& view);

}  // namespace tiny

// Elements read and written by index.  Places outside of an axis have no part in either.
#include "autograd/rule_functions.h"
#include "base/error.h"
#include "ir/build.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"

namespace tiny {

namespace {

UOp number(const UOp& like, double value) {
  return broadcast_to(like.graph().constant(like.dtype(), value), shape_of(like));
}

// A scatter, and what is needed of the places that it names.
class Places {
 public:
  explicit Places(const UOp& scatter)
      : shape_(shape_of(scatter)),
        places_(scatter.src(1)),
        axis_(scatter.reduce_arg().axes.front()),
        size_(shape_[static_cast<size_t>(axis_)]) {
    Graph& graph = places_.graph();
    const auto bound = [&](const Dim& d) {
      return cast(broadcast_to(d.uop(graph), shape_of(places_)), places_.dtype());
    };
    is_inside_ = logical_and(less_equal(bound(0), places_), less(places_, bound(size_)));
    inside_ = where(is_inside_, places_, bound(0));
  }

  // Of `all`, of the data's shape, the elements at the places; 0 for one outside.
  UOp read(const UOp& all) const {
    Graph& graph = all.graph();
    const Shape& given = shape_of(places_);
    const Shape strides = row_major_strides(shape_);
    UOp flat = broadcast_to(graph.integer(0), given);
    for (size_t i = 0; i < given.size(); ++i) {
      Shape along(given.size(), Dim(1));
      along[i] = given[i];
      const UOp index =
          static_cast<int64_t>(i) == axis_
              ? cast(inside_, kInt64)
              : make_expand(make_reshape(make_iota(graph, given[i], kInt64), along), given);
      flat = add(flat, mul(index, broadcast_to(strides[i].uop(graph), given)));
    }
    const UOp row = make_reshape(all, {product(shape_)});
    const UOp values = make_gather(row, make_reshape(flat, {product(given)}), 0);
    const UOp found = make_reshape(values, given);
    return where(is_inside_, found, number(found, 0));
  }

  UOp write(const UOp& data, const UOp& updates, Op fold) const {
    return make_scatter(data, places_, updates, fold, axis_);
  }

 private:
  Shape shape_;
  UOp places_;
  int64_t axis_;
  Dim size_;
  UOp is_inside_;
  UOp inside_;  // 0 for one outside
};

// The greatest or lowest of an element and what is written to it: those that are it share alike.
void of_extremum_by_index(Step& step, const Places& places) {
  const UOp& data = step.source(0);
  const UOp& updates = step.source(2);
  const UOp& y = step.node();
  const UOp total = step.total();
  const auto one_where = [&](const UOp& is) {
    return where(is, broadcast_to(data.graph().constant(data.dtype(), 1), shape_of(is)),
                 broadcast_to(data.graph().constant(data.dtype(), 0), shape_of(is)));
  };
  const UOp of_data = one_where(equal(data, y));
  const UOp of_updates = one_where(equal(updates, places.read(y)));
  const UOp share = div(total, places.write(of_data, of_updates, Op::Add));
  if (step.wants(0)) step.give(0, Adjoint(share).where(not_equal(of_data, number(of_data, 0))));
  if (step.wants(2))
    step.give(2, Adjoint(places.read(share)).where(not_equal(of_updates, number(of_updates, 0))));
}

// The product of all others; where one of them is 0 only that one has a slope, where two are, none.
void of_product_by_index(Step& step, const Places& places) {
  const UOp& data = step.source(0);
  const UOp& updates = step.source(2);
  const UOp total = step.total();
  const auto apart = [](const UOp& x) {
    const UOp is_zero = equal(x, number(x, 0));
    return std::pair{where(is_zero, number(x, 1), x), where(is_zero, number(x, 1), number(x, 0))};
  };
  const auto [data_others, data_zeros] = apart(data);
  const auto [others, zeros] = apart(updates);
  const UOp product = mul(total, places.write(data_others, others, Op::Mul));
  const UOp count = places.write(data_zeros, zeros, Op::Add);
  const auto slope = [](const UOp& all, const UOp& factor, const UOp& own, const UOp& found) {
    return where(equal(own, found), div(all, factor), number(all, 0));
  };
  if (step.wants(0)) step.give(0, slope(product, data_others, data_zeros, count));
  if (step.wants(2)) step.give(2, slope(places.read(product), others, zeros, places.read(count)));
}

}  // namespace

// What is read several times gets a sum, in float32 for 16-bit floats.
void of_gather(Step& step) {
  const UOp& data = step.source(0);
  const UOp& index = step.source(1);
  const int64_t axis = step.node().int_arg();
  const DType wide = accumulator_dtype(data.dtype());
  const UOp zeros = cast(number(data, 0), wide);
  Shape rows = shape_of(data);
  rows[static_cast<size_t>(axis)] = product(shape_of(index));
  Shape beside(rows.size(), Dim(1));
  beside[static_cast<size_t>(axis)] = rows[static_cast<size_t>(axis)];
  const UOp places = make_expand(make_reshape(index, beside), rows);
  const UOp updates = cast(make_reshape(step.total(), rows), wide);
  step.give(0, cast(make_scatter(zeros, places, updates, Op::Add, axis), data.dtype()));
}

// Of several that replace one element only the last is there.
void of_scatter(Step& step) {
  const Places places(step.node());
  const UOp& updates = step.source(2);
  switch (step.node().reduce_arg().op) {
    case Op::Add:
      if (step.wants(0)) step.give(0, step.reached());
      if (step.wants(2)) step.give(2, places.read(step.total()));
      return;
    case Op::Max:
    case Op::Min:
      return of_extremum_by_index(step, places);
    case Op::Mul:
      return of_product_by_index(step, places);
    default:
      break;
  }
  const UOp total = step.total();
  if (step.wants(0)) step.give(0, places.write(total, number(updates, 0), Op::Assign));
  if (!step.wants(2)) return;
  // Who wrote last: numbers of the updates, written in their order.
  Graph& graph = total.graph();
  const Dim count = product(shape_of(updates));
  const UOp own = make_reshape(make_iota(graph, count, kInt64), shape_of(updates));
  const UOp nobody = broadcast_to(graph.integer(-1), shape_of(total));
  const UOp last = places.read(places.write(nobody, own, Op::Assign));
  step.give(2, Adjoint(places.read(total)).where(equal(last, own)));
}

}  // namespace tiny

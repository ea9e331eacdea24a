#include "autograd/rule_functions.h"
#include "ir/build.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"

namespace tiny {

namespace {

UOp number(const UOp& like, double value) {
  return broadcast_to(like.graph().constant(like.dtype(), value), shape_of(like));
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

}  // namespace tiny

#include "tensor/suppression.h"

#include <limits>
#include <vector>

#include "base/error.h"
#include "tensor/control.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/scatter.h"

namespace tiny {

namespace {

// Boxes by their lower and upper edges, each of the shape that the boxes have without their last
// axis.
struct Edges {
  Tensor low_y, low_x, high_y, high_x;
  Tensor area;
};

Edges edges_of(const Tensor& boxes, bool is_centre) {
  const auto part = [&](int64_t i) {
    return squeeze(slice_axis(boxes, -1, i, i + 1), {boxes.rank() - 1});
  };
  Edges out;
  if (is_centre) {
    const Tensor half_x = mul(part(2), Tensor::weak_float(boxes.context_ref(), 0.5));
    const Tensor half_y = mul(part(3), Tensor::weak_float(boxes.context_ref(), 0.5));
    out = {
        sub(part(1), half_y), sub(part(0), half_x), add(part(1), half_y), add(part(0), half_x), {}};
  } else {
    out = {minimum(part(0), part(2)),
           minimum(part(1), part(3)),
           maximum(part(0), part(2)),
           maximum(part(1), part(3)),
           {}};
  }
  out.area = mul(sub(out.high_y, out.low_y), sub(out.high_x, out.low_x));
  return out;
}

// The share of their union that two boxes have in common; 0 where one has no area.
Tensor overlap_of(const Edges& a, const Edges& b) {
  const Tensor zero = Tensor::weak_float(a.area.context_ref(), 0);
  const Tensor height = sub(minimum(a.high_y, b.high_y), maximum(a.low_y, b.low_y));
  const Tensor width = sub(minimum(a.high_x, b.high_x), maximum(a.low_x, b.low_x));
  const Tensor common = mul(maximum(height, zero), maximum(width, zero));
  const Tensor both = sub(add(a.area, b.area), common);
  const Tensor is_there =
      bit_and(bit_and(less(zero, a.area), less(zero, b.area)), less(zero, both));
  return where(is_there, div(common, both), zero);
}

}  // namespace

Tensor suppress_overlaps(const Tensor& boxes, const Tensor& scores, const Tensor& most,
                         const Tensor& overlap, const Tensor& wanted,
                         const SuppressionOptions& options, Dependences& known) {
  require(boxes.rank() == 3 && scores.rank() == 3 && boxes.shape()[2].is(4), Status::Shape,
          "boxes [batch, n, 4] and scores [batch, classes, n] are wanted; got ", boxes.shape(),
          " and ", scores.shape());
  const Ref<Context>& context = boxes.context_ref();
  const Dim batch = scores.shape()[0], classes = scores.shape()[1], n = scores.shape()[2];
  const Edges all = edges_of(boxes, options.is_centre);
  const auto of_classes = [&](const Tensor& edge) { return unsqueeze(edge, {1}); };
  const Edges others{of_classes(all.low_y), of_classes(all.low_x), of_classes(all.high_y),
                     of_classes(all.high_x), of_classes(all.area)};
  const Tensor lowest = Tensor::weak_float(context, -std::numeric_limits<double>::infinity());
  // What a box is: open, left out, or the round that took it, from 1 on.  A round reads and writes
  // this alone: what it took is put in its place behind the last.
  const auto marks = [&](int64_t value) { return Tensor::weak_int(context, value); };
  const Tensor begin =
      wanted ? sub(cast(wanted, kInt32), marks(1)) : full(context, kInt32, scores.shape(), 0);
  const RoundFunction round = [&](const Tensor& number, const std::vector<Tensor>& state) {
    const Tensor open = equal(state[0], marks(0));
    const Tensor corner = unsqueeze(argmax(where(open, scores, lowest), 2), {2});
    const Tensor chosen = take_along_axis(boxes, expand(corner, {batch, classes, Dim(4)}), 1);
    const auto of_one = [&](const Tensor& edge) { return unsqueeze(edge, {2}); };
    const Edges one = edges_of(chosen, options.is_centre);
    const Edges taken{of_one(one.low_y), of_one(one.low_x), of_one(one.high_y), of_one(one.high_x),
                      of_one(one.area)};
    const Tensor is_itself = equal(positions(context, kInt32, n, 2, 3), cast(corner, kInt32));
    const Tensor is_covered = less(reshape(overlap, {}), overlap_of(taken, others));
    const Tensor mark = where(is_itself, cast(add(number, marks(1)), kInt32),
                              where(is_covered, full(context, kInt32, {}, -1), state[0]));
    const Tensor next = where(open, mark, state[0]);
    return Round{{next}, any(equal(next, marks(0)), {0, 1, 2})};
  };
  const Tensor last = cast(repeat(most, {begin}, known, round)[0], kInt64);
  const Tensor rounds = size_tensor(context, options.rounds);
  const Tensor place = where(less(marks(0), last), sub(last, marks(1)), rounds);
  const Tensor by_round =
      scatter_elements(full(context, kInt64, {batch, classes, options.rounds + Dim(1)}, -1), place,
                       expand(positions(context, kInt64, n, 2, 3), scores.shape()), 2);
  return permute(shrink(by_round, {0, 0, 0}, {batch, classes, options.rounds}), {2, 0, 1});
}

}  // namespace tiny

#include "tensor/linalg.h"

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// One row of a Gauss-Jordan elimination of rows [batch, n, columns], after the greatest pivot was
// brought there.
struct Elimination {
  Tensor rows;
  Tensor pivot;       // [batch, 1, 1]
  Tensor is_swapped;  // whether two rows changed their places
};

Elimination eliminate(const Tensor& rows, const Tensor& k, bool is_finite) {
  const Ref<Context>& context = rows.context_ref();
  const Tensor row = positions(context, kInt64, rows.shape()[1], 1, 3);
  const Tensor column = positions(context, kInt64, rows.shape()[2], 2, 3);
  const Tensor is_k = equal(row, k), is_column = equal(column, k);
  const Tensor zero = number(rows, 0);
  const auto pick = [&](const Tensor& which, const Tensor& of, int64_t axis) {
    return sum_in_dtype(where(which, of, zero), {axis}, true);
  };
  const Tensor size = where(less(row, k), number(rows, -1), abs(pick(is_column, rows, 2)));
  const Tensor place = argmax(size, 1, true);
  const Tensor is_place = equal(row, place);
  const Tensor first = pick(is_k, rows, 1), best = pick(is_place, rows, 1);
  const Tensor pivot = pick(is_column, best, 2);
  const Tensor swapped = where(is_k, best, where(is_place, first, rows));
  // A determinant is 0 from a pivot of 0 on; what the rows become is no matter then.
  const Tensor scaled =
      best / (is_finite ? where(equal(pivot, zero), number(rows, 1), pivot) : pivot);
  const Tensor rest = swapped - pick(is_column, swapped, 2) * scaled;
  return {where(is_k, scaled, rest), pivot, not_equal(place, k)};
}

struct Matrices {
  Tensor all;  // [batch, n, n] in the dtype that is computed in
  Dim n;
};

Matrices matrices(const Tensor& a, const char* what) {
  const int64_t rank = a.rank();
  require(rank >= 2 && decide_equal(a.shape()[static_cast<size_t>(rank - 1)],
                                    a.shape()[static_cast<size_t>(rank - 2)]),
          Status::Shape, what, ": a tensor of shape ", a.shape(), "; it takes square matrices");
  const Dim n = a.shape().back();
  const bool is_wide = a.dtype().is_float() && a.dtype().bits() >= 32;
  const Tensor wide = is_wide ? a : cast(a, kFloat32);
  const Dim batch = product(a.shape().part(0, static_cast<size_t>(rank - 2)));
  return {reshape(wide, {batch, n, n}), n};
}

DType result_dtype(const Tensor& a) {
  return a.dtype().is_float() ? a.dtype() : kFloat32;
}

}  // namespace

Tensor det(const Tensor& a) {
  const Matrices m = matrices(a, "det");
  const Shape batch = a.shape().part(0, static_cast<size_t>(a.rank() - 2));
  const Ref<Context>& context = a.context_ref();
  const Tensor one = full(context, m.all.dtype(), {m.all.shape()[0], 1, 1}, 1);
  if (m.n.is(0)) return cast(reshape(one, batch), result_dtype(a));
  const RecurrenceResult made =
      recur(context,
            {.steps = m.n,
             .sequences = {{arange(context, kInt64, m.n)}},
             .state = {m.all, one},
             .is_backwards = {}},
            [](const RecurrenceStep& s) {
              const Elimination e = eliminate(s.state[0], s.inputs[0], true);
              const Tensor next = s.state[1] * where(e.is_swapped, neg(e.pivot), e.pivot);
              return RecurrenceResult{{}, {e.rows, next}};
            });
  return cast(reshape(made.state[1], batch), result_dtype(a));
}

Tensor inverse(const Tensor& a) {
  const Matrices m = matrices(a, "inverse");
  const int64_t n = m.n.value();
  if (n == 0) return cast(a, result_dtype(a));
  const Ref<Context>& context = a.context_ref();
  const Tensor identity = expand(unsqueeze(eye(context, m.all.dtype(), n, n), {0}), m.all.shape());
  const RecurrenceResult made =
      recur(context,
            {.steps = n,
             .sequences = {{arange(context, kInt64, n)}},
             .state = {concat(std::vector<Tensor>{m.all, identity}, 2)},
             .is_backwards = {}},
            [](const RecurrenceStep& s) {
              return RecurrenceResult{{}, {eliminate(s.state[0], s.inputs[0], false).rows}};
            });
  const Tensor right = slice_axis(made.state[0], 2, n, 2 * n);
  return cast(reshape(right, a.shape()), result_dtype(a));
}

}  // namespace tiny

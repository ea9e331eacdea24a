// Rows of reductions and of what is made of them along an axis.  Sizes and dtypes of results with
// out= are PyTorch's, computed by its own functions before these run.
#include <ATen/WrapDimUtils.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "call.h"
#include "checks.h"
#include "reductions.h"

namespace tiny_torch {

namespace {

using V = Value;

// What the result's dtype is: that of the tensor which the call brought.
tiny_dtype target_dtype(const Call& c) {
  return dtype_of(c.target(0).scalar_type());
}

V extremum(tiny_reduce_op op, const V& a, const Sizes& axes, bool keepdims) {
  if (a.dtype() != TINY_BOOL) return reduce(op, a, axes, keepdims);
  return reduce(op == TINY_REDUCE_MAX ? TINY_ANY : TINY_ALL, a, axes, keepdims);
}
V truth_of(tiny_reduce_op op, const V& a, const Sizes& axes, bool keepdims) {
  return reduce(op, cast(a, TINY_BOOL), axes, keepdims);
}

void sum(Call& c) {  // self, dim, keepdim, dtype
  const V a = cast(c.value(0), target_dtype(c));
  c.give(0, reduce(TINY_SUM, a, axes_of(c.argument(1), a.rank()), c.flag(2)));
}
void mean(Call& c) {
  const V a = cast(c.value(0), target_dtype(c));
  c.give(0, reduce(TINY_MEAN, a, axes_of(c.argument(1), a.rank()), c.flag(2)));
}
void nansum(Call& c) {
  const V given = c.value(0);
  const V a = given.is_float() ? where(unary(TINY_IS_NAN, given), constant(given.dtype(), 0), given)
                               : given;
  c.give(0,
         reduce(TINY_SUM, cast(a, target_dtype(c)), axes_of(c.argument(1), a.rank()), c.flag(2)));
}
void product_along(Call& c) {  // self, dim, keepdim, dtype
  const V a = cast(c.value(0), target_dtype(c));
  c.give(0, reduce(TINY_PROD, a, axes_of(c.argument(1), a.rank()), c.flag(2)));
}
void product(Call& c) {  // self, dtype
  const at::Tensor& self = c.tensor(0);
  const bool counts = at::isIntegralType(self.scalar_type(), true);
  const at::ScalarType made = c.has(1) ? c.argument(1).toScalarType()
                              : counts ? at::kLong
                                       : self.scalar_type();
  const V a = cast(c.value(0), dtype_of(made));
  c.give(0, cast(reduce(TINY_PROD, a, axes_of({}, a.rank()), false), dtype_of(made)));
}
template <tiny_reduce_op op>
void extremum_along(Call& c) {  // self, dim[], keepdim
  TORCH_CHECK(c.target(0).scalar_type() == c.tensor(0).scalar_type(),
              "Expected the dtype for input and out to match, but got ", c.tensor(0).scalar_type(),
              " for input's dtype and ", c.target(0).scalar_type(), " for out's dtype.");
  const V a = c.value(0);
  c.give(0, extremum(op, a, axes_of(c.argument(1), a.rank()), c.flag(2)));
}
template <tiny_reduce_op op>
void extremum_of_all(Call& c) {
  const V a = c.value(0);
  TORCH_CHECK(a.numel() > 0, op == TINY_REDUCE_MAX ? "max" : "min",
              "(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
              "reduction dim with the 'dim' argument.");
  const at::Tensor& out = c.target(0);
  TORCH_CHECK(!out.defined() || c10::canCast(c.tensor(0).scalar_type(), out.scalar_type()),
              "result type ", c.tensor(0).scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  c.give(0, extremum(op, a, axes_of({}, a.rank()), false));
}
template <tiny_reduce_op op>
void truth_along(Call& c) {  // self, dim, keepdim
  const V a = c.value(0);
  c.give(0, truth_of(op, a, axes_of(c.argument(1), a.rank()), c.flag(2)));
}
template <tiny_reduce_op op>
void truth_of_all(Call& c) {
  const V a = c.value(0);
  c.give(0, truth_of(op, a, axes_of({}, a.rank()), false));
}

V position(const V& given, bool greatest, int64_t axis, bool keepdims) {
  const V a = given.dtype() == TINY_BOOL ? cast(given, TINY_UINT8) : given;
  tiny_tensor* out = nullptr;
  const tiny_flags flags = keepdims ? TINY_FLAG_KEEPDIMS : 0;
  check(greatest ? tiny_argmax(a.handle(), axis, flags, &out)
                 : tiny_argmin(a.handle(), axis, flags, &out));
  return V(out);
}
template <bool greatest>
void position_of(Call& c) {  // self, dim, keepdim
  const V a = c.value(0);
  const int64_t count = a.numel();
  if (!c.has(1)) {
    const V flat = position(reshape(a, {&count, 1}), greatest, 0, false);
    c.give(0, c.flag(2) ? reshape(flat, Sizes(static_cast<size_t>(a.rank()), 1)) : flat);
  } else if (a.rank() == 0) {
    c.give(0, constant(TINY_INT64, 0));
  } else {
    c.give(0, position(a, greatest, at::maybe_wrap_dim(c.integer(1), a.rank()), c.flag(2)));
  }
}
template <bool greatest>
void value_and_position(Call& c) {  // self, dim, keepdim
  const V a = c.value(0);
  if (a.rank() == 0) {
    c.give(0, a);
    c.give(1, constant(TINY_INT64, 0));
    return;
  }
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), a.rank());
  const bool keeps = c.flag(2);
  const V most = extremum(greatest ? TINY_REDUCE_MAX : TINY_REDUCE_MIN, a, {axis}, keeps);
  c.give(0, most);
  c.give_later(1, most.shape(), at::kLong, [=] { return position(a, greatest, axis, keeps); });
}
void both_extrema(Call& c) {  // self, dim, keepdim
  for (size_t k = 0; k < 2; ++k) check_dtype_of_out(c.target(k), c.tensor(0).scalar_type());
  const V a = c.value(0);
  const Sizes axes = axes_of(c.argument(1), a.rank());
  c.give(0, extremum(TINY_REDUCE_MIN, a, axes, c.flag(2)));
  c.give(1, extremum(TINY_REDUCE_MAX, a, axes, c.flag(2)));
}

struct Moments {
  V variance, mean;
};
// What the sum of squares is divided by.
V divisor(int64_t count, double correction, tiny_dtype dtype) {
  const V left = cast(integer(TINY_INT64, count), dtype) - constant(dtype, correction);
  return binary(TINY_MAX, left, constant(dtype, 0));
}
Moments moments(const Call& c, const V& a, const Sizes& axes, bool keepdims) {
  const V middle = reduce(TINY_MEAN, a, axes, true);
  const V apart = a - middle;
  int64_t count = 1;
  for (const int64_t axis : axes) count *= a.size(axis);
  const double correction = c.has(2) ? c.real(2) : 1;
  const V total = reduce(TINY_SUM, apart * apart, axes, keepdims);
  const V variance = total / divisor(count, correction, a.dtype());
  return {variance, reduce(TINY_MEAN, a, axes, keepdims)};
}
template <bool is_root, bool has_mean>
void variance(Call& c) {  // self, dim, correction, keepdim
  const V a = c.value(0);
  TORCH_CHECK(a.is_float(), "std and var only support floating point and complex dtypes");
  const V exact = cast(a, wide(a.dtype()));
  const Moments both = moments(c, exact, axes_of(c.argument(1), a.rank()), c.flag(3));
  c.give(0, cast(is_root ? unary(TINY_SQRT, both.variance) : both.variance, a.dtype()));
  if (has_mean) c.give(1, cast(both.mean, a.dtype()));
}

V norm(const V& given, double order, const Sizes& axes, bool keepdims) {
  const V a = unary(TINY_ABS, given);
  if (order == INFINITY) return reduce(TINY_REDUCE_MAX, a, axes, keepdims);
  if (order == -INFINITY) return reduce(TINY_REDUCE_MIN, a, axes, keepdims);
  if (order == 0) return reduce(TINY_SUM, cast(compare(TINY_NE, a, 0), a.dtype()), axes, keepdims);
  if (order == 1) return reduce(TINY_SUM, a, axes, keepdims);
  if (order == 2) return unary(TINY_SQRT, reduce(TINY_SUM, a * a, axes, keepdims));
  const V power = constant(a.dtype(), order);
  return binary(TINY_POW, reduce(TINY_SUM, binary(TINY_POW, a, power), axes, keepdims),
                constant(a.dtype(), 1 / order));
}
void vector_norm(Call& c) {  // self, ord, dim, keepdim, dtype
  const V a = cast(c.value(0), wide(target_dtype(c)));
  c.give(0, norm(a, c.real(1), axes_of(c.argument(2), a.rank()), c.flag(3)));
}
void norm_of(Call& c) {  // self, p, dim, keepdim
  const V a = cast(c.value(0), wide(target_dtype(c)));
  c.give(0, norm(a, c.has(1) ? c.real(1) : 2, axes_of(c.argument(2), a.rank()), c.flag(3)));
}

void cumsum(Call& c) {  // self, dim, dtype
  const V a = cast(c.value(0), target_dtype(c));
  if (a.rank() == 0 || a.numel() == 0) return c.give(0, a);
  tiny_tensor* out = nullptr;
  check(tiny_cumsum(a.handle(), at::maybe_wrap_dim(c.integer(1), a.rank()), 0, &out));
  c.give(0, V(out));
}

V softmax_of(const V& a, int64_t axis, bool is_log) {
  tiny_tensor* out = nullptr;
  check(is_log ? tiny_log_softmax(a.handle(), axis, &out) : tiny_softmax(a.handle(), axis, &out));
  return V(out);
}
template <bool is_log>
void softmax(Call& c) {  // self, dim, half_to_float
  const at::Tensor& self = c.tensor(0);
  const int64_t axis = at::maybe_wrap_dim(c.integer(1), self.dim());
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"", is_log ? "log_" : "",
                              axis == self.dim() - 1 ? "softmax_lastdim" : "softmax",
                              "_kernel_impl\" not implemented for '", self.scalar_type(), "'");
  const V a = cast(c.value(0), wide(c.value(0).dtype()));
  if (a.numel() == 0) return c.give(0, a);
  if (a.rank() == 0) return c.give(0, full(a.dtype(), {}, is_log ? 0 : 1));
  c.give(0, softmax_of(a, axis, is_log));
}
void safe_softmax(Call& c) {  // self, dim, dtype
  const V given = c.value(0);
  const tiny_dtype dtype = c.has(2) ? dtype_of(c.argument(2).toScalarType()) : given.dtype();
  const V a = cast(cast(given, dtype), wide(dtype));
  c.give(0, cast(tiny_torch::safe_softmax(a, at::maybe_wrap_dim(c.integer(1), a.rank())), dtype));
}
template <bool is_log>
void softmax_backward(Call& c) {  // grad, output, dim, input_dtype
  const tiny_dtype dtype = wide(c.value(0).dtype());
  const V grad = cast(c.value(0), dtype);
  const V output = cast(c.value(1), dtype);
  Sizes axes;
  if (grad.rank()) axes = {at::maybe_wrap_dim(c.integer(2), grad.rank())};
  if (is_log) return c.give(0, grad - unary(TINY_EXP, output) * reduce(TINY_SUM, grad, axes, true));
  const V weighted = grad * output;
  c.give(0, weighted - output * reduce(TINY_SUM, weighted, axes, true));
}

// How many elements each of equal parts of a range has; by default that from the least to the
// greatest of them.
void histogram(Call& c) {  // self, bins, min, max
  const V given = c.value(0);
  const V a = given.dtype() == TINY_FLOAT64 ? given : cast(given, TINY_FLOAT32);
  const int64_t bins = c.integer(1);
  TORCH_CHECK(bins > 0, "bins must be > 0, got: ", bins);
  TORCH_CHECK(c.real(2) <= c.real(3), "max must be larger than min");
  V least = number(a.dtype(), c.real(2));
  V greatest = number(a.dtype(), c.real(3));
  if (c.real(2) == c.real(3) && a.numel() > 0) {
    const Sizes axes = axes_of({}, a.rank());
    least = reduce(TINY_REDUCE_MIN, a, axes, false);
    greatest = reduce(TINY_REDUCE_MAX, a, axes, false);
  }
  const V one_value = cast(compare(TINY_EQ, least, greatest), a.dtype());
  least = least - one_value;
  greatest = greatest + one_value;
  const int64_t row[] = {1, a.numel()};
  const int64_t column[] = {bins, 1};
  const V x = reshape(a, row);
  const V part = cast(
      unary(TINY_FLOOR, (x - least) / (greatest - least) * static_cast<double>(bins)), TINY_INT64);
  const V last = integer(TINY_INT64, bins - 1);
  const V inside = logical_and(compare(TINY_GE, x, least), compare(TINY_LE, x, greatest));
  const V is_in = logical_and(
      compare(TINY_EQ, binary(TINY_MIN, part, last), reshape(arange(TINY_INT64, bins), column)),
      inside);
  c.give(0, cast(reduce(TINY_SUM, cast(is_in, given.dtype()), Sizes{1}, false), given.dtype()));
}

constexpr Row kReductions[] = {
    {"histc", histogram},
    {"histc.out", histogram},
    {"sum.IntList_out", sum},
    {"mean.out", mean},
    {"nansum.out", nansum},
    {"prod.int_out", product_along},
    {"prod", product},
    {"amax.out", extremum_along<TINY_REDUCE_MAX>},
    {"amin.out", extremum_along<TINY_REDUCE_MIN>},
    {"max", extremum_of_all<TINY_REDUCE_MAX>},
    {"max.unary_out", extremum_of_all<TINY_REDUCE_MAX>},
    {"min", extremum_of_all<TINY_REDUCE_MIN>},
    {"min.unary_out", extremum_of_all<TINY_REDUCE_MIN>},
    {"any.out", truth_along<TINY_ANY>},
    {"any.dims_out", truth_along<TINY_ANY>},
    {"any.all_out", truth_of_all<TINY_ANY>},
    {"all.out", truth_along<TINY_ALL>},
    {"all.dims_out", truth_along<TINY_ALL>},
    {"all.all_out", truth_of_all<TINY_ALL>},
    {"argmax.out", position_of<true>},
    {"argmin.out", position_of<false>},
    {"max.dim_max", value_and_position<true>},
    {"min.dim_min", value_and_position<false>},
    {"aminmax.out", both_extrema},
    {"var.correction", variance<false, false>},
    {"std.correction", variance<true, false>},
    {"var.correction_out", variance<false, false>},
    {"std.correction_out", variance<true, false>},
    {"var_mean.correction", variance<false, true>},
    {"std_mean.correction", variance<true, true>},
    {"linalg_vector_norm.out", vector_norm},
    {"norm.out", norm_of},
    {"cumsum.out", cumsum},
    {"_softmax.out", softmax<false>},
    {"_log_softmax.out", softmax<true>},
    {"_safe_softmax", safe_softmax},
    {"_softmax_backward_data.out", softmax_backward<false>},
    {"_log_softmax_backward_data.out", softmax_backward<true>},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_rows(m, kReductions);
}

}  // namespace

Value safe_softmax(const Value& a, int64_t axis) {
  if (a.numel() == 0) return a;
  const V top = a.rank() ? reduce(TINY_REDUCE_MAX, a, {&axis, 1}, true) : a;
  const V shares = a.rank() ? softmax_of(a, axis, false) : full(a.dtype(), {}, 1);
  const V is_empty =
      compare(TINY_EQ, top, number(a.dtype(), -std::numeric_limits<double>::infinity()));
  return where(is_empty, number(a.dtype(), 0), shares);
}

}  // namespace tiny_torch

// Operations: families by enumeration, movement, types and choice.
#include "api/boundary.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/promotion.h"
#include "tensor/reduce.h"

static_assert(TINY_RANK_MAX == tiny::kRankMax);

namespace tiny {

namespace {

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using Reduction = Tensor (*)(const Tensor&, const Ints&, bool);

constexpr Named<Unary> kUnary[] = {
#define UNARY(name, function) {TINY_##name, "TINY_" #name, function},
#include "api/families.def"
};
constexpr Named<Binary> kBinary[] = {
#define BINARY(name, function) {TINY_##name, "TINY_" #name, function},
#include "api/families.def"
};
constexpr Named<Binary> kCompare[] = {
#define COMPARE(name, function) {TINY_##name, "TINY_" #name, function},
#include "api/families.def"
};
constexpr Named<Reduction> kReduce[] = {
#define REDUCE(name, function) {TINY_##name, "TINY_" #name, function},
#include "api/families.def"
};

// One number for every axis of `tensor`.
Ints per_axis(const tiny_tensor* tensor, const int64_t* values, size_t count, const char* name) {
  require(static_cast<int64_t>(count) == tensor->value.rank(), Status::Shape, name, " has ", count,
          " values for shape ", to_string(tensor->value.shape()));
  return numbers(values, count, name);
}

// What was made of `a`, weak if that is and the settings have it so.
Tensor weak_as(Tensor made, const tiny_tensor* a) {
  return weak_like(std::move(made), a->value);
}

}  // namespace

}  // namespace tiny

using tiny::check_flags;
using tiny::find;
using tiny::numbers;
using tiny::per_axis;
using tiny::produce;
using tiny::weak_as;

extern "C" {

tiny_status tiny_unary(tiny_unary_op op, const tiny_tensor* a, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    return weak_as(find<tiny::Unary>(tiny::kUnary, op, "unary operation")(a->value), a);
  });
}

tiny_status tiny_binary(tiny_binary_op op, const tiny_tensor* a, const tiny_tensor* b,
                        tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}, {b, "b"}}, [=] {
    const tiny::Tensor* const both[] = {&a->value, &b->value};
    tiny::Tensor made =
        find<tiny::Binary>(tiny::kBinary, op, "binary operation")(*both[0], *both[1]);
    const bool is_quotient_of_integers =
        made.dtype().is_float() && !tiny::common_dtype(both).is_float();
    return is_quotient_of_integers ? made : tiny::weak_like(std::move(made), both);
  });
}

tiny_status tiny_compare(tiny_compare_op op, const tiny_tensor* a, const tiny_tensor* b,
                         tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}, {b, "b"}}, [=] {
    return find<tiny::Binary>(tiny::kCompare, op, "comparison")(a->value, b->value);
  });
}

tiny_status tiny_reduce(tiny_reduce_op op, const tiny_tensor* a, const int64_t* axes, size_t naxes,
                        tiny_flags flags, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    check_flags(flags, TINY_FLAG_KEEPDIMS);
    const auto reduction = find<tiny::Reduction>(tiny::kReduce, op, "reduction");
    const bool all = naxes == 0 && axes == nullptr;
    return reduction(a->value,
                     all ? tiny::every_axis(a->value.rank()) : numbers(axes, naxes, "axes"),
                     flags & TINY_FLAG_KEEPDIMS);
  });
}

tiny_status tiny_reshape(const tiny_tensor* a, const int64_t* dims, size_t ndim,
                         tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    return weak_as(
        tiny::reshape(a->value, a->context->marks.shape(numbers(dims, ndim, "dims"), "dims")), a);
  });
}

tiny_status tiny_permute(const tiny_tensor* a, const int64_t* axes, size_t naxes,
                         tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}},
                 [=] { return weak_as(tiny::permute(a->value, numbers(axes, naxes, "axes")), a); });
}

tiny_status tiny_expand(const tiny_tensor* a, const int64_t* dims, size_t ndim, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    return weak_as(
        tiny::expand(a->value, a->context->marks.shape(numbers(dims, ndim, "dims"), "dims")), a);
  });
}

tiny_status tiny_flip(const tiny_tensor* a, const int64_t* axes, size_t naxes, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}},
                 [=] { return weak_as(tiny::flip(a->value, numbers(axes, naxes, "axes")), a); });
}

tiny_status tiny_pad(const tiny_tensor* a, const int64_t* before, const int64_t* after,
                     size_t naxes, double value, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    const tiny::DimensionMarks& marks = a->context->marks;
    const tiny::Shape front = marks.shape(per_axis(a, before, naxes, "before"), "before");
    const tiny::Shape back = marks.shape(per_axis(a, after, naxes, "after"), "after");
    return weak_as(tiny::pad(a->value, front, back, marks.scalar(value, "value")), a);
  });
}

tiny_status tiny_slice(const tiny_tensor* a, const int64_t* begin, const int64_t* end,
                       const int64_t* step, size_t naxes, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    const tiny::DimensionMarks& marks = a->context->marks;
    const tiny::Shape first = marks.positions(per_axis(a, begin, naxes, "begin"), "begin");
    const tiny::Shape last = marks.positions(per_axis(a, end, naxes, "end"), "end");
    return weak_as(
        tiny::slice(a->value, first, last, step ? per_axis(a, step, naxes, "step") : tiny::Ints()),
        a);
  });
}

tiny_status tiny_cast(const tiny_tensor* a, tiny_dtype dtype, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    const tiny::Context& context = *a->context->core;
    const bool is_weak =
        context.flags().weak_results && (dtype == TINY_WEAK_INT || dtype == TINY_WEAK_FLOAT);
    if (!is_weak) return tiny::cast(a->value, tiny::dtype_argument(dtype));
    return tiny::cast(a->value,
                      dtype == TINY_WEAK_INT ? context.default_int() : context.default_float())
        .as_weak();
  });
}

tiny_status tiny_bitcast(const tiny_tensor* a, tiny_dtype dtype, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}},
                 [=] { return tiny::bitcast(a->value, tiny::dtype_argument(dtype)); });
}

tiny_status tiny_where(const tiny_tensor* condition, const tiny_tensor* a, const tiny_tensor* b,
                       tiny_tensor** out) {
  return produce(__func__, out, {{condition, "condition"}, {a, "a"}, {b, "b"}}, [=] {
    const tiny::Tensor* const both[] = {&a->value, &b->value};
    return tiny::weak_like(tiny::where(condition->value, *both[0], *both[1]), both);
  });
}

tiny_status tiny_contiguous(const tiny_tensor* a, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] { return weak_as(tiny::contiguous(a->value), a); });
}

tiny_status tiny_concat(tiny_tensor* const* tensors, size_t count, int64_t axis,
                        tiny_tensor** out) {
  return produce(__func__, out, {tensors, count, "tensors"}, [=] {
    const std::vector<tiny::Tensor> values = tiny::values_of(tensors, count);
    return tiny::weak_like(tiny::concat(values, axis), tiny::refs_to(values));
  });
}

tiny_status tiny_matmul(const tiny_tensor* a, const tiny_tensor* b, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}, {b, "b"}}, [=] {
    const tiny::Tensor* const both[] = {&a->value, &b->value};
    return tiny::weak_like(tiny::matmul(*both[0], *both[1]), both);
  });
}

}  // extern "C"

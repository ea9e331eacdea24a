// Views by their strides, taken apart and made.
#include "tensor/strides.h"

#include <algorithm>
#include <optional>

#include "api/boundary.h"

namespace tiny {

namespace {

constexpr Named<Movement> kMovements[] = {
    {TINY_MOVEMENT_RESHAPE, "TINY_MOVEMENT_RESHAPE", Movement::Reshape},
    {TINY_MOVEMENT_PERMUTE, "TINY_MOVEMENT_PERMUTE", Movement::Permute},
    {TINY_MOVEMENT_EXPAND, "TINY_MOVEMENT_EXPAND", Movement::Expand},
    {TINY_MOVEMENT_PAD, "TINY_MOVEMENT_PAD", Movement::Pad},
    {TINY_MOVEMENT_SHRINK, "TINY_MOVEMENT_SHRINK", Movement::Shrink},
    {TINY_MOVEMENT_FLIP, "TINY_MOVEMENT_FLIP", Movement::Flip},
    {TINY_MOVEMENT_STRIDE, "TINY_MOVEMENT_STRIDE", Movement::Stride},
    {TINY_MOVEMENT_AS_STRIDED, "TINY_MOVEMENT_AS_STRIDED", Movement::AsStrided},
};

// Numbers of any sign, among which there may be some that stand for dimensions.
Shape signed_numbers(const tiny_context& context, const int64_t* values, size_t count,
                     const char* name) {
  Shape out;
  for (const int64_t number : numbers(values, count, name))
    out.push_back(context.marks.scalar(number, cat(name, "[", out.size(), "]").c_str()));
  return out;
}

// A view, and where it is masked, as the calls here are told.
struct Described {
  const int64_t* dims;
  const int64_t* strides;
  const int64_t* mask_begin;
  const int64_t* mask_end;
  size_t ndim;
  int64_t offset;

  View view(const tiny_context& context) const {
    return {context.marks.shape(numbers(dims, ndim, "dims"), "dims"),
            signed_numbers(context, strides, ndim, "strides"),
            context.marks.scalar(offset, "offset")};
  }
  Mask mask(const tiny_context& context) const {
    require(!mask_begin == !mask_end, Status::InvalidArgument,
            mask_begin ? "mask_end" : "mask_begin", " is NULL and ",
            mask_begin ? "mask_begin" : "mask_end", " is not");
    if (!mask_begin) return {};
    return {context.marks.shape(numbers(mask_begin, ndim, "mask_begin"), "mask_begin"),
            context.marks.shape(numbers(mask_end, ndim, "mask_end"), "mask_end")};
  }
  View inside(const tiny_context& context) const {
    return inside_mask(view(context), mask(context));
  }
};

// A call that makes a list of numbers of a view: as many as there is room for.
tiny_status write_list(const char* call, tiny_context* context, int64_t* out, size_t capacity,
                       size_t* count, FunctionRef<Shape()> body) noexcept {
  if (!count) return fail(call, Status::InvalidArgument, "count is NULL");
  *count = 0;
  return act(call, context, [&] {
    require(out != nullptr || capacity == 0, Status::InvalidArgument,
            "the buffer is NULL but has room for ", capacity);
    const Shape made = body();
    for (size_t i = 0; i < made.size() && i < capacity; ++i) out[i] = context->marks.mark(made[i]);
    *count = made.size();
  });
}

void append(Shape& to, const Shape& numbers) {
  to.insert(to.end(), numbers.begin(), numbers.end());
}

}  // namespace

}  // namespace tiny

using tiny::Described;
using tiny::Dim;
using tiny::numbers;
using tiny::produce;
using tiny::Shape;

extern "C" {

tiny_status tiny_as_strided(const tiny_tensor* a, const int64_t* dims, const int64_t* strides,
                            size_t ndim, int64_t offset, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    const tiny_context& context = *a->context;
    return tiny::as_strided(a->value, context.marks.shape(numbers(dims, ndim, "dims"), "dims"),
                            tiny::signed_numbers(context, strides, ndim, "strides"),
                            context.marks.scalar(offset, "offset"));
  });
}

tiny_status tiny_empty_strided(tiny_context* context, tiny_dtype dtype, const int64_t* dims,
                               const int64_t* strides, size_t ndim, tiny_tensor** out) {
  return produce(__func__, out, context, [=] {
    return tiny::empty_strided(context->core, tiny::dtype_argument(dtype),
                               context->marks.plain(numbers(dims, ndim, "dims"), "dims"),
                               numbers(strides, ndim, "strides"));
  });
}

tiny_status tiny_get_buffer_size(tiny_context* context, const int64_t* dims, const int64_t* strides,
                                 const int64_t* mask_begin, const int64_t* mask_end, size_t ndim,
                                 int64_t offset, int64_t* out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = 0;
  return tiny::act(__func__, context, [=] {
    const Described described{dims, strides, mask_begin, mask_end, ndim, offset};
    *out = context->marks.mark(tiny::buffer_size(described.inside(*context)));
  });
}

tiny_status tiny_get_real_view(tiny_context* context, const int64_t* dims, const int64_t* strides,
                               const int64_t* mask_begin, const int64_t* mask_end, size_t ndim,
                               int64_t offset, int64_t* view, size_t capacity, size_t* count) {
  return tiny::write_list(__func__, context, view, capacity, count, [=] {
    const Described described{dims, strides, mask_begin, mask_end, ndim, offset};
    tiny::View real = tiny::real_view(described.inside(*context));
    tiny::append(real.shape, real.strides);
    real.shape.push_back(real.offset);
    return real.shape;
  });
}

tiny_status tiny_to_movement_ops(tiny_context* context, const int64_t* dims, const int64_t* strides,
                                 const int64_t* mask_begin, const int64_t* mask_end, size_t ndim,
                                 int64_t offset, int64_t* ops, size_t capacity, size_t* count) {
  return tiny::write_list(__func__, context, ops, capacity, count, [=] {
    const Described described{dims, strides, mask_begin, mask_end, ndim, offset};
    Shape made;
    for (const tiny::MovementStep& step :
         tiny::to_movement_steps(described.view(*context), described.mask(*context))) {
      const auto row = std::ranges::find(tiny::kMovements, step.movement,
                                         &tiny::Named<tiny::Movement>::function);
      made.emplace_back(row->value);
      made.emplace_back(static_cast<int64_t>(step.numbers.size()));
      tiny::append(made, step.numbers);
    }
    return made;
  });
}

tiny_status tiny_apply_movement_op(const tiny_tensor* a, tiny_movement op, const int64_t* values,
                                   size_t count, tiny_tensor** out) {
  return produce(__func__, out, {{a, "a"}}, [=] {
    const auto movement = tiny::find<tiny::Movement>(tiny::kMovements, op, "movement");
    return tiny::apply_movement_op(
        a->value, {movement, tiny::signed_numbers(*a->context, values, count, "numbers")});
  });
}

}  // extern "C"

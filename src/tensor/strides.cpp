#include "tensor/strides.h"

#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "engine/storage.h"
#include "tensor/create.h"
#include "tensor/movement.h"

namespace tiny {

namespace {

void require_pairs(const Shape& shape, const Shape& strides) {
  require(shape.size() == strides.size(), Status::Shape, shape.size(), " dimensions and ",
          strides.size(), " strides; wanted a stride for each");
}

// Two lists of one number per axis, one behind the other.
std::pair<Shape, Shape> halves(const Tensor& a, const MovementStep& step, const char* what) {
  const Shape& numbers = step.numbers;
  require(std::ssize(numbers) == 2 * a.rank(), Status::Shape, what, " with ", numbers.size(),
          " numbers for shape ", a.shape(), "; wanted two for each axis");
  const auto middle = numbers.begin() + a.rank();
  return {Shape(numbers.begin(), middle), Shape(middle, numbers.end())};
}

// Every steps[k]-th element of axis k, from the first, or the last, on.
Tensor step_over(const Tensor& a, const Ints& steps) {
  require(std::ssize(steps) == a.rank(), Status::Shape, "stride with ", steps.size(),
          " numbers for shape ", a.shape(), "; wanted one for each axis");
  Shape begin, end;
  for (const int64_t step : steps) {
    begin.emplace_back(step > 0 ? 0 : kSliceEnd);
    end.emplace_back(step > 0 ? kSliceEnd : -kSliceEnd);
  }
  return slice(a, begin, end, steps);
}

}  // namespace

Tensor as_strided(const Tensor& a, const Shape& shape, const Shape& strides, const Dim& offset) {
  require_pairs(shape, strides);
  check_shape(shape, a.dtype());
  const View view{shape, strides, offset + a.view().offset};
  // The memory is that of the value which this is a view of.
  const UOp& base = a.cell()->node();
  const Dim count = product(shape_of(base));
  if (all_const(shape) && all_const(strides) && view.offset.is_const() && count.is_const())
    require_inside(view, count.value());
  else
    require(decide_less_equal(buffer_size(view), count), Status::Shape, "shape ", shape,
            " with strides ", strides, " from element ", view.offset,
            " on reaches beyond memory that has ", count);
  return a.viewed(view_of_memory(base, view), view);
}

Tensor empty_strided(const Ref<Context>& context, DType dtype, const Ints& shape,
                     const Ints& strides) {
  View view{to_shape(shape), to_shape(strides), 0};
  require_pairs(view.shape, view.strides);
  check_shape(view.shape, dtype);
  const auto [first, last] = extent(view);
  if (first <= last) view.offset = checked_mul(first, -1, "a tensor's size");
  const int64_t count = first > last
                            ? 0
                            : checked_add(checked_add(last, view.offset.value(), "a tensor's size"),
                                          1, "a tensor's size");
  const Ref<Storage> storage =
      context->allocate(checked_mul(count, dtype.bytes(), "a tensor's size"));
  storage->claim();
  return Tensor::of_memory(context, make_buffer(context->graph(), storage, dtype, count), view);
}

Tensor apply_movement_op(const Tensor& a, const MovementStep& step) {
  const Shape& numbers = step.numbers;
  switch (step.movement) {
    case Movement::Reshape:
      return reshape(a, numbers);
    case Movement::Permute:
      return permute(a, const_dims(numbers));
    case Movement::Expand:
      return expand(a, numbers);
    case Movement::Pad: {
      const auto [before, after] = halves(a, step, "pad");
      return pad(a, before, after);
    }
    case Movement::Shrink: {
      const auto [begin, end] = halves(a, step, "shrink");
      return shrink(a, begin, end);
    }
    case Movement::Flip:
      return flip(a, const_dims(numbers));
    case Movement::Stride:
      return step_over(a, const_dims(numbers));
    case Movement::AsStrided: {
      require(numbers.size() % 2 == 1, Status::Shape, "as_strided with ", numbers.size(),
              " numbers; wanted the dimensions, as many strides, and the offset");
      const auto rank = static_cast<ptrdiff_t>(numbers.size() / 2);
      const auto middle = numbers.begin() + rank;
      return as_strided(a, Shape(numbers.begin(), middle), Shape(middle, middle + rank),
                        numbers.back());
    }
  }
  throw_error(Status::Internal, "an unknown movement");
}

}  // namespace tiny

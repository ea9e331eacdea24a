// Tensors: made from data, looked at, read.
#include "api/boundary.h"
#include "api/model_handle.h"
#include "base/checked.h"
#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/value.h"

using tiny::act;
using tiny::answer;
using tiny::Ints;
using tiny::numbers;
using tiny::produce;
using tiny::require;
using tiny::Status;

namespace {

int64_t signed_bytes(size_t bytes) {
  require(bytes <= static_cast<size_t>(INT64_MAX), Status::Shape, "bytes is ", bytes);
  return static_cast<int64_t>(bytes);
}

// Row-major strides of a shape that was checked.
Ints strides_argument(const int64_t* strides, const Ints& dims) {
  if (strides) return numbers(strides, dims.size(), "strides");
  return tiny::const_dims(tiny::row_major_strides(tiny::to_shape(dims)));
}

// Writes as many of `values` as there is room for.
void write_numbers(const Ints& values, int64_t* to, size_t capacity, size_t* count) {
  require(to != nullptr || capacity == 0, Status::InvalidArgument,
          "the buffer is NULL but has room for ", capacity);
  for (size_t i = 0; i < values.size() && i < capacity; ++i) to[i] = values[i];
  *count = values.size();
}

}  // namespace

extern "C" {

tiny_status tiny_tensor_from_data(tiny_context* context, tiny_dtype dtype, const int64_t* dims,
                                  size_t ndim, const void* data, size_t bytes, tiny_tensor** out) {
  return produce(__func__, out, context, [&] {
    return tiny::from_data(context->core, tiny::dtype_argument(dtype),
                           context->marks.plain(numbers(dims, ndim, "dims"), "dims"), data,
                           signed_bytes(bytes));
  });
}

tiny_status tiny_tensor_wrap(tiny_context* context, tiny_dtype dtype, const int64_t* dims,
                             const int64_t* strides, size_t ndim, void* data,
                             void (*deleter)(void* user), void* user, tiny_tensor** out) {
  return produce(__func__, out, context, [&] {
    const tiny::DType type = tiny::dtype_argument(dtype);
    const Ints shape = context->marks.plain(numbers(dims, ndim, "dims"), "dims");
    tiny::check_shape(tiny::to_shape(shape), type);
    return tiny::wrap(context->core, type, shape, strides_argument(strides, shape), data, deleter,
                      user);
  });
}

tiny_status tiny_scalar_float(tiny_context* context, double value, tiny_tensor** out) {
  return produce(__func__, out, context,
                 [&] { return tiny::Tensor::weak_float(context->core, value); });
}

tiny_status tiny_scalar_int(tiny_context* context, int64_t value, tiny_tensor** out) {
  return produce(__func__, out, context,
                 [&] { return tiny::Tensor::weak_int(context->core, value); });
}

tiny_status tiny_full(tiny_context* context, tiny_dtype dtype, const int64_t* dims, size_t ndim,
                      double value, tiny_tensor** out) {
  return produce(__func__, out, context, [&] {
    return tiny::full(context->core, tiny::dtype_argument(dtype),
                      context->marks.shape(numbers(dims, ndim, "dims"), "dims"), value);
  });
}

tiny_status tiny_arange(tiny_context* context, tiny_dtype dtype, int64_t count, tiny_tensor** out) {
  return produce(__func__, out, context, [&] {
    return tiny::arange(context->core, tiny::dtype_argument(dtype),
                        context->marks.dim(count, "count"));
  });
}

void tiny_tensor_retain(tiny_tensor* tensor) {
  tiny::retain_owned(tensor);
}

void tiny_tensor_release(tiny_tensor* tensor) {
  tiny::release_handle(tensor);
}

tiny_status tiny_tensor_context(const tiny_tensor* tensor, tiny_context** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::guarded(__func__, [&] {
    tiny_context* context = tiny::required(tensor, "tensor").context;
    context->own();
    *out = context;
  });
}

tiny_status tiny_tensor_dtype(const tiny_tensor* tensor, tiny_dtype* out) {
  return answer(__func__, out, {{tensor, "tensor"}},
                [&] { return tensor->value.dtype().info().number; });
}

tiny_status tiny_tensor_set_name(tiny_tensor* tensor, const char* name) {
  return act(__func__, {{tensor, "tensor"}}, [&] {
    const std::string text = &tiny::required(name, "name");
    const tiny::UOp& node = tensor->value.node();
    node.node()->origin = text.empty() ? tiny::kNobody : node.graph().origins().named(text);
    tensor->name = text;
  });
}

tiny_status tiny_tensor_name(const tiny_tensor* tensor, const char** out) {
  return answer(__func__, out, {{tensor, "tensor"}}, [&] { return tensor->name.c_str(); });
}

tiny_status tiny_tensor_rank(const tiny_tensor* tensor, size_t* out) {
  return answer(__func__, out, {{tensor, "tensor"}}, [&] { return tensor->value.shape().size(); });
}

tiny_status tiny_tensor_shape(const tiny_tensor* tensor, int64_t* dims, size_t capacity,
                              size_t* rank) {
  return answer(__func__, rank, {{tensor, "tensor"}}, [&] {
    size_t n = 0;
    Ints shape;
    for (const tiny::Dim& d : tensor->value.shape())
      shape.push_back(tensor->context->marks.mark(d));
    write_numbers(shape, dims, capacity, &n);
    return n;
  });
}

tiny_status tiny_tensor_strides(const tiny_tensor* tensor, int64_t* strides, size_t capacity,
                                size_t* rank) {
  return answer(__func__, rank, {{tensor, "tensor"}}, [&] {
    size_t n = 0;
    write_numbers(tiny::strides_of(tensor->value), strides, capacity, &n);
    return n;
  });
}

tiny_status tiny_tensor_offset(const tiny_tensor* tensor, int64_t* out) {
  return answer(__func__, out, {{tensor, "tensor"}},
                [&] { return tiny::offset_of(tensor->value); });
}

tiny_status tiny_tensor_device(const tiny_tensor* tensor, const char** out) {
  return answer(__func__, out, {{tensor, "tensor"}},
                [&] { return tensor->value.context().device().name().c_str(); });
}

tiny_status tiny_tensor_data(const tiny_tensor* tensor, const void** out) {
  return answer(__func__, out, {{tensor, "tensor"}},
                [&] { return tiny::elements_of(tensor->value).data; });
}

tiny_status tiny_tensor_numel(const tiny_tensor* tensor, int64_t* out) {
  return answer(__func__, out, {{tensor, "tensor"}},
                [&] { return tiny::element_count(tensor->value); });
}

tiny_status tiny_tensor_read(const tiny_tensor* tensor, void* data, size_t bytes) {
  return tiny::act(__func__, {{tensor, "tensor"}},
                   [&] { tiny::read(tensor->value, data, signed_bytes(bytes)); });
}

tiny_status tiny_assign(tiny_tensor* target, const tiny_tensor* value) {
  return tiny::act(__func__, {{target, "target"}, {value, "value"}},
                   [&] { tiny::assign(target->value, value->value); });
}

tiny_status tiny_realize(tiny_tensor* const* tensors, size_t count) {
  if (count == 0) return TINY_OK;
  return tiny::act(__func__, {tensors, count, "tensors"}, [&] {
    std::vector<tiny::Tensor*> values;
    for (size_t i = 0; i < count; ++i) values.push_back(&tensors[i]->value);
    tiny::realize(values);
  });
}

tiny_status tiny_schedule(tiny_tensor* const* tensors, size_t count, tiny_report** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, {tensors, count, "tensors"}, [&] {
    std::vector<tiny::Tensor*> values;
    for (size_t i = 0; i < count; ++i) values.push_back(&tensors[i]->value);
    *out = new tiny_report(tiny::schedule_json(values));
  });
}

}  // extern "C"

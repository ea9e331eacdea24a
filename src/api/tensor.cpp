// Tensors: made from data, looked at, read.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>

#include "api/boundary.h"
#include "api/computed.h"
#include "api/model_handle.h"
#include "base/checked.h"
#include "base/text.h"
#include "runtime/device.h"
#include "shape/copy_elements.h"
#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/value.h"

using tiny::act;
using tiny::answer;
using tiny::guarded;
using tiny::Ints;
using tiny::numbers;
using tiny::produce;
using tiny::require;
using tiny::signed_bytes;
using tiny::Status;

namespace {

// Row-major strides of a shape that was checked.
Ints strides_argument(const int64_t* strides, const Ints& dims) {
  if (strides) return numbers(strides, dims.size(), "strides");
  return tiny::const_dims(tiny::row_major_strides(tiny::to_shape(dims)));
}

// Writes as many of `values` as there is room for.
void write_numbers(std::span<const int64_t> values, int64_t* to, size_t capacity) {
  require(to != nullptr || capacity == 0, Status::InvalidArgument,
          "the buffer is NULL but has room for ", capacity);
  for (size_t i = 0; i < values.size() && i < capacity; ++i) to[i] = values[i];
}

void require_fixed(const tiny_tensor& tensor) {
  require(tensor.is_fixed, Status::InvalidArgument, "a tensor of shape ", tensor.shape,
          " has a value in runs of a program alone, which bind its variables");
}

// More bytes than this, if they are not row-major, are put in order by a kernel where the context
// is free: copying one by one takes longer than that kernel's launch from about here on.
constexpr size_t kCopiedMax = 64 << 10;
// What is copied in less than a millisecond asks nobody whether to go on.
constexpr size_t kUnaskedMax = 1 << 20;

// False if the context is needed.
bool read_computed(const tiny_tensor& tensor, void* data, size_t bytes) {
  if (!tensor.is_fixed) return false;
  const auto size = static_cast<size_t>(tensor.dtype.bytes());
  const auto dims = tiny::dims_of(tensor);
  const auto strides = tiny::strides_of(tensor);
  const size_t wanted = static_cast<size_t>(tensor.numel) * size;
  if (bytes != wanted)
    tiny::throw_error(Status::Shape, "shape ", tiny::list_text({dims.begin(), dims.end()}), " of ",
                      tensor.dtype, " has ", wanted, " bytes; got ", bytes);
  if (bytes == 0) return true;
  require(data != nullptr, Status::InvalidArgument, "data is NULL");
  if (tensor.is_number) {
    std::memcpy(data, &tensor.number_bits, bytes);
    return true;
  }
  if (bytes > kCopiedMax && !tiny::is_row_major(dims, strides) && tensor.context->try_enter()) {
    const tiny::Building building(*tensor.context, {}, std::adopt_lock);
    tiny::read(tensor.value, data, signed_bytes(bytes));
    return true;
  }
  const tiny::Computed computed(tensor);
  if (!computed.data()) return false;
  std::optional<tiny::Beside> beside;
  if (bytes > kUnaskedMax) beside.emplace(*tensor.context);
  tiny::copy_elements(static_cast<std::byte*>(data), computed.data(), size, dims, strides,
                      beside ? &beside->stop() : nullptr);
  return true;
}

}  // namespace

extern "C" {

tiny_status tiny_tensor_from_data(tiny_context* context, tiny_dtype dtype, const int64_t* dims,
                                  size_t ndim, const void* data, size_t bytes, tiny_tensor** out) {
  return produce(__func__, out, context, [=] {
    return tiny::from_data(context->core, tiny::dtype_argument(dtype),
                           context->marks.plain(numbers(dims, ndim, "dims"), "dims"), data,
                           signed_bytes(bytes));
  });
}

tiny_status tiny_tensor_wrap(tiny_context* context, tiny_dtype dtype, const int64_t* dims,
                             const int64_t* strides, size_t ndim, void* data, size_t bytes,
                             int64_t offset, tiny_flags flags, void (*deleter)(void* user),
                             void* user, tiny_tensor** out) {
  return produce(__func__, out, context, [=] {
    tiny::check_flags(flags, TINY_FLAG_READ_ONLY);
    const tiny::DType type = tiny::dtype_argument(dtype);
    const Ints shape = context->marks.plain(numbers(dims, ndim, "dims"), "dims");
    tiny::check_shape(tiny::to_shape(shape), type);
    const Ints steps = strides_argument(strides, shape);
    const tiny::View view{tiny::to_shape(shape), tiny::to_shape(steps), offset};
    tiny::require_inside(view, signed_bytes(bytes) / type.bytes());
    const bool is_empty = std::ranges::count(shape, 0) > 0;
    void* first = is_empty ? nullptr : static_cast<std::byte*>(data) + offset * type.bytes();
    return tiny::wrap(context->core, type, shape, steps, data ? first : nullptr, deleter, user,
                      (flags & TINY_FLAG_READ_ONLY) == 0);
  });
}

tiny_status tiny_scalar_float(tiny_context* context, double value, tiny_tensor** out) {
  return produce(__func__, out, context, [=] {
    return tiny::Tensor::weak_float(context->core, context->marks.scalar(value, "value"));
  });
}

tiny_status tiny_scalar_int(tiny_context* context, int64_t value, tiny_tensor** out) {
  return produce(__func__, out, context, [=] {
    return tiny::Tensor::weak_int(context->core, context->marks.scalar(value, "value"));
  });
}

tiny_status tiny_full(tiny_context* context, tiny_dtype dtype, const int64_t* dims, size_t ndim,
                      double value, tiny_tensor** out) {
  return produce(__func__, out, context, [=] {
    return tiny::full(context->core, tiny::dtype_argument(dtype),
                      context->marks.shape(numbers(dims, ndim, "dims"), "dims"),
                      context->marks.scalar(value, "value"));
  });
}

tiny_status tiny_arange(tiny_context* context, tiny_dtype dtype, int64_t count, tiny_tensor** out) {
  return produce(__func__, out, context, [=] {
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
  return tiny::guarded(__func__, [=] {
    tiny_context* context = tiny::required(tensor, "tensor").context;
    context->own();
    *out = context;
  });
}

tiny_status tiny_tensor_dtype(const tiny_tensor* tensor, tiny_dtype* out) {
  return answer(__func__, out, tensor, "tensor", [](const tiny_tensor& t) {
    if (t.is_weak) return t.dtype.is_float() ? TINY_WEAK_FLOAT : TINY_WEAK_INT;
    return t.dtype.info().number;
  });
}

tiny_status tiny_tensor_set_name(tiny_tensor* tensor, const char* name) {
  return act(__func__, {{tensor, "tensor"}}, [=] {
    const std::string text = &tiny::required(name, "name");
    const tiny::UOp& node = tensor->value.node();
    node.node()->origin = text.empty() ? tiny::kNobody : node.graph().origins().named(text);
    tensor->name = tensor->context->names.insert(text).first->c_str();
  });
}

tiny_status tiny_tensor_name(const tiny_tensor* tensor, const char** out) {
  return answer(__func__, out, tensor, "tensor",
                [](const tiny_tensor& t) { return t.name.load(std::memory_order_acquire); });
}

tiny_status tiny_tensor_rank(const tiny_tensor* tensor, size_t* out) {
  return answer(__func__, out, tensor, "tensor", [](const tiny_tensor& t) { return t.rank; });
}

tiny_status tiny_tensor_shape(const tiny_tensor* tensor, int64_t* dims, size_t capacity,
                              size_t* rank) {
  return answer(__func__, rank, tensor, "tensor", [=](const tiny_tensor& t) {
    write_numbers({t.dims, t.rank}, dims, capacity);
    return t.rank;
  });
}

tiny_status tiny_tensor_strides(const tiny_tensor* tensor, int64_t* strides, size_t capacity,
                                size_t* rank) {
  return answer(__func__, rank, tensor, "tensor", [=](const tiny_tensor& t) {
    require_fixed(t);
    write_numbers({t.strides, t.rank}, strides, capacity);
    return t.rank;
  });
}

tiny_status tiny_tensor_offset(const tiny_tensor* tensor, int64_t* out) {
  return answer(__func__, out, tensor, "tensor", [](const tiny_tensor& t) {
    require_fixed(t);
    return t.offset;
  });
}

tiny_status tiny_tensor_device(const tiny_tensor* tensor, const char** out) {
  return answer(__func__, out, tensor, "tensor",
                [](const tiny_tensor& t) { return t.context->core->device().name().c_str(); });
}

tiny_status tiny_tensor_numel(const tiny_tensor* tensor, int64_t* out) {
  return answer(__func__, out, tensor, "tensor", [](const tiny_tensor& t) {
    require(t.is_fixed, Status::Unsupported, "the number of elements of the shape ", t.shape,
            " depends on variables");
    return t.numel;
  });
}

tiny_status tiny_tensor_data(const tiny_tensor* tensor, const void** out) {
  return answer(__func__, out, tensor, "tensor", [](const tiny_tensor& t) -> const void* {
    if (const tiny::Computed computed(t); computed.data()) return computed.data();
    const tiny::Building building(*t.context);
    return tiny::elements_of(t.value).data;
  });
}

tiny_status tiny_tensor_read(const tiny_tensor* tensor, void* data, size_t bytes) {
  return guarded(__func__, [=] {
    const tiny_tensor& t = tiny::required(tensor, "tensor");
    if (read_computed(t, data, bytes)) return;
    const tiny::Building building(*t.context);
    tiny::read(t.value, data, signed_bytes(bytes));
  });
}

tiny_status tiny_assign(tiny_tensor* target, const tiny_tensor* value) {
  return tiny::act(__func__, {{target, "target"}, {value, "value"}},
                   [=] { tiny::assign(target->value, value->value); });
}

tiny_status tiny_realize(tiny_tensor* const* tensors, size_t count) {
  if (count == 0) return TINY_OK;
  return tiny::act(__func__, {tensors, count, "tensors"},
                   [=] { tiny::realize(tiny::values_in(tensors, count)); });
}

tiny_status tiny_schedule(tiny_tensor* const* tensors, size_t count, tiny_report** out) {
  if (!out) return tiny::fail(__func__, tiny::Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, {tensors, count, "tensors"}, [=] {
    *out = new tiny_report(tiny::schedule_json(tiny::values_in(tensors, count)));
  });
}

}  // extern "C"

// Tensors of other libraries as ours, and ours as theirs, through DLPack.
#include "api/dlpack.h"

#include "api/boundary.h"
#include "engine/storage.h"
#include "tensor/create.h"
#include "tensor/movement.h"
#include "tensor/value.h"

using tiny::Ints;
using tiny::require;
using tiny::Status;

namespace {

namespace dl = tiny::dlpack;

constexpr std::pair<uint8_t, tiny::DType> kFloat8Codes[] = {
    {dl::kFloat8E4M3FN, tiny::kFloat8E4M3FN},
    {dl::kFloat8E4M3FNUZ, tiny::kFloat8E4M3FNUZ},
    {dl::kFloat8E5M2, tiny::kFloat8E5M2},
    {dl::kFloat8E5M2FNUZ, tiny::kFloat8E5M2FNUZ}};

dl::DataType type_of(tiny::DType dtype) {
  const auto bits = static_cast<uint8_t>(dtype.bits());
  if (dtype.is_bool()) return {dl::kBool, bits, 1};
  if (dtype == tiny::kBFloat16) return {dl::kBfloat, bits, 1};
  for (const auto& [code, float8] : kFloat8Codes)
    if (dtype == float8) return {code, bits, 1};
  if (dtype.is_float()) return {dl::kFloat, bits, 1};
  return {dtype.is_signed() ? dl::kInt : dl::kUnsigned, bits, 1};
}

tiny::DType dtype_of(const dl::DataType& type) {
  for (tiny_dtype number = TINY_BOOL; tiny_dtype_supported(number); ++number) {
    const tiny::DType dtype = *tiny::dtype_numbered(number);
    const dl::DataType known = type_of(dtype);
    if (type.lanes == 1 && known.code == type.code && known.bits == type.bits) return dtype;
  }
  tiny::throw_error(Status::DType, "elements of DLPack's type code ", int{type.code}, " with ",
                    int{type.bits}, " bits and ", type.lanes,
                    " lanes; known are the types of tiny_dtype");
}

void release_managed(void* managed) {
  auto* m = static_cast<DLManagedTensorVersioned*>(managed);
  if (m->deleter) m->deleter(m);
}

tiny::Tensor take(tiny_context& context, DLManagedTensorVersioned* managed) {
  const DLManagedTensorVersioned& m = tiny::required(managed, "managed");
  require(m.version.major == dl::kMajor, Status::Unsupported, "a DLPack tensor of version ",
          m.version.major, ".", m.version.minor, "; version ", dl::kMajor, " is known");
  const dl::Tensor& t = m.dl_tensor;
  require(t.device.type == dl::kCpu, Status::Device, "a DLPack tensor on device type ",
          t.device.type, "; memory of the CPU (", int32_t{dl::kCpu}, ") is wanted");
  require(t.ndim >= 0, Status::Shape, "a DLPack tensor of ", t.ndim, " dimensions");
  const tiny::DType dtype = dtype_of(t.dtype);
  const Ints shape = tiny::numbers(t.shape, static_cast<size_t>(t.ndim), "shape");
  tiny::check_shape(tiny::to_shape(shape), dtype);
  const Ints strides = t.strides ? tiny::numbers(t.strides, shape.size(), "strides")
                                 : tiny::const_dims(tiny::row_major_strides(tiny::to_shape(shape)));
  void* data = t.data ? static_cast<std::byte*>(t.data) + t.byte_offset : nullptr;
  return tiny::wrap(context.core, dtype, shape, strides, data, release_managed, managed,
                    (m.flags & dl::kReadOnly) == 0);
}

// A tensor of ours in others' hands; the context outlives its memory.
struct Lent {
  DLManagedTensorVersioned managed = {};
  tiny_context* context = nullptr;
  tiny::Ref<tiny::Storage> memory;
  Ints shape;
  Ints strides;
};

void release_lent(DLManagedTensorVersioned* managed) {
  auto* lent = static_cast<Lent*>(managed->manager_ctx);
  tiny_context* context = lent->context;
  delete lent;
  context->release();
}

}  // namespace

extern "C" {

tiny_status tiny_tensor_to_dlpack(const tiny_tensor* tensor, DLManagedTensorVersioned** out) {
  if (!out) return tiny::fail(__func__, Status::InvalidArgument, "out is NULL");
  *out = nullptr;
  return tiny::act(__func__, {{tensor, "tensor"}}, [=] {
    const tiny::Elements elements = tiny::elements_of(tensor->value);
    auto lent = std::make_unique<Lent>();
    lent->memory = elements.memory;
    lent->shape = tiny::const_dims(tensor->value.shape());
    lent->strides = tiny::strides_of(tensor->value);
    DLManagedTensorVersioned& m = lent->managed;
    m.version = {dl::kMajor, dl::kMinor};
    m.manager_ctx = lent.get();
    m.deleter = release_lent;
    m.flags = elements.is_own ? 0 : dl::kReadOnly;
    m.dl_tensor = {elements.data,
                   {dl::kCpu, 0},
                   static_cast<int32_t>(lent->shape.size()),
                   type_of(tensor->value.dtype()),
                   lent->shape.data(),
                   lent->strides.data(),
                   0};
    lent->context = tensor->context;
    tensor->context->retain();
    *out = &lent.release()->managed;
  });
}

tiny_status tiny_tensor_from_dlpack(tiny_context* context, DLManagedTensorVersioned* managed,
                                    tiny_tensor** out) {
  return tiny::produce(__func__, out, context, [=] { return take(*context, managed); });
}

void tiny_dlpack_release(DLManagedTensorVersioned* managed) {
  if (managed) release_managed(managed);
}

}  // extern "C"

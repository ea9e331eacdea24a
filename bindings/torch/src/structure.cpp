// Operators that make, view, resize and copy tensors: all that PyTorch has no other kernel for.
// Sizes, strides and offsets are PyTorch's own; only copies reach the engine.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <string>

#include "checks.h"
#include "computed.h"
#include "storage.h"

namespace tiny_torch {

namespace {

using at::Tensor;
constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::ScalarType made_type(std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                         const char* what) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(at::kStrided) == at::kStrided, what,
                              ": tensors of device \"tiny\" are strided, got layout ", *layout);
  const at::ScalarType made = type.value_or(at::get_default_dtype_as_scalartype());
  if (!at::isComplexType(made)) dtype_of(made, what);
  return made;
}

void check_memory(std::optional<at::Device> device, std::optional<bool> pin) {
  if (device) check_index(device->index());
  TORCH_CHECK(!pin.value_or(false), "Only dense CPU tensors can be pinned");
}

// Complex numbers as they lie in memory, pairs of floats on one more axis, conjugated or not: all
// that the engine sees of them.
Tensor pairs_of(const Tensor& complex) {
  return at::native::view_as_real(complex.is_conj() ? complex._conj() : complex);
}

// With torch.use_deterministic_algorithms memory that nobody wrote has one value.
bool fills_memory() {
  const at::Context& context = at::globalContext();
  return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}
Tensor filled(Tensor made) {
  if (fills_memory()) at::native::fill_empty_deterministic_(made);
  return made;
}

Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
             std::optional<at::Layout> layout, std::optional<at::Device> device,
             std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  check_memory(device, pin);
  return filled(at::detail::empty_generic(sizes, allocator(), kKeys,
                                          made_type(type, layout, "empty"), format));
}

Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                     std::optional<at::ScalarType> type, std::optional<at::Layout> layout,
                     std::optional<at::Device> device, std::optional<bool> pin) {
  check_memory(device, pin);
  return filled(at::detail::empty_strided_generic(sizes, strides, allocator(), kKeys,
                                                  made_type(type, layout, "empty_strided")));
}

Tensor zeros(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
             std::optional<at::Layout> layout, std::optional<at::Device> device,
             std::optional<bool> pin) {
  const Tensor made = empty(sizes, type, layout, device, pin, std::nullopt);
  const Tensor floats = made.is_complex() ? pairs_of(made) : made;
  write(floats, constant(dtype_of(floats.scalar_type()), 0));
  return made;
}

void grow(c10::TensorImpl& tensor) {
  const auto needed =
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(),
                                       static_cast<size_t>(tensor.storage_offset()));
  const c10::Storage& storage = tensor.unsafe_storage();
  if (tensor.numel() && needed > storage.nbytes()) resize_bytes(storage, needed);
}

const Tensor& resize_(const Tensor& self, at::IntArrayRef sizes,
                      std::optional<at::MemoryFormat> format) {
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  const size_t held = impl.unsafe_storage() ? impl.unsafe_storage().nbytes() : 0;
  if (impl.sizes() != sizes) {
    impl.set_sizes_contiguous(sizes);
    grow(impl);
  }
  if (format) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
    impl.empty_tensor_restride(*format);
  }
  if (fills_memory()) at::native::fill_resize_deterministic_(self, static_cast<int64_t>(held));
  return self;  // NOLINT: what PyTorch's operator gives
}

Tensor& set_storage_at(Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef sizes,
                       at::IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  impl.set_storage_offset(offset);
  if (strides.data() == nullptr) {
    impl.set_sizes_contiguous(sizes);
  } else {
    impl.set_sizes_and_strides(sizes, strides);
  }
  grow(impl);
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage_at(self, std::move(source), 0, {count}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage_at(self, source.storage(), source.storage_offset(), source.sizes(),
                        source.strides());
}

Tensor& set_nothing(Tensor& self) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, allocator(), true);
  return set_storage_at(self, std::move(storage), 0, {0}, {});
}

Tensor as_strided(const Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                  std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}
Tensor view(const Tensor& self, at::IntArrayRef sizes) {
  return at::native::view(self, sizes);
}
Tensor reshape_alias(const Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return at::native::_reshape_alias(self, sizes, strides);
}
Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}
Tensor view_as_real(const Tensor& self) {
  return at::native::view_as_real(self);
}
Tensor view_as_complex(const Tensor& self) {
  return at::native::view_as_complex(self);
}
bool is_set_to(const Tensor& self, const Tensor& source) {
  return at::native::is_set_to(self, source);
}

// ---- Copies -------------------------------------------------------------------------------------

void copy_from_host(const Tensor& source, const Tensor& target) {
  // A number is part of kernels, as a number of a program is.
  const Tensor rows = source.contiguous();
  const at::IntArrayRef sizes = rows.sizes();
  write_elements(target,
                 from_data(dtype_of(rows.scalar_type(), "copy_"), {sizes.data(), sizes.size()},
                           rows.const_data_ptr(), rows.nbytes()));
}

void copy_to_host(const Tensor& source, const Tensor& target) {
  const Value value = read_operand(source);
  flush();
  if (target.is_contiguous() && target.scalar_type() == source.scalar_type() &&
      target.sizes() == source.sizes() && !target.is_conj() && !target.is_neg()) {
    if (source.numel()) read(value, target.mutable_data_ptr(), target.nbytes());
    return;
  }
  const Tensor rows = at::empty(source.sizes(), source.options().device(at::kCPU));
  if (source.numel()) read(value, rows.mutable_data_ptr(), rows.nbytes());
  target.copy_(rows);
}

Tensor copy_from(const Tensor& self, const Tensor& target, bool is_async);

// Of which one at least is complex.
void copy_complex(const Tensor& self, const Tensor& target) {
  if (!target.is_privateuseone()) {
    const Tensor host = at::empty(self.sizes(), self.options().device(at::kCPU));
    if (self.is_complex()) {
      copy_from(pairs_of(self), at::view_as_real(host), false);
      target.copy_(self.is_conj() ? host.conj() : host);
    } else {
      copy_from(self, host, false);
      target.copy_(host);
    }
  } else if (!target.is_complex()) {
    target.copy_(self.is_cpu() ? at::real(self) : pairs_of(self).select(-1, 0));
  } else if (self.is_complex()) {
    const Tensor given = self.is_cpu() ? self.resolve_conj().resolve_neg() : self;
    const Tensor pairs = pairs_of(target);
    copy_from(pairs_of(given), pairs, false);
    if (given.is_conj() != target.is_conj()) pairs.select(-1, 1).neg_();
  } else {
    const Tensor pairs = pairs_of(target);
    pairs.select(-1, 0).copy_(self);
    pairs.select(-1, 1).zero_();
  }
}

Tensor copy_from(const Tensor& self, const Tensor& target, bool) {
  if (self.is_same(target)) return target;
  if (self.is_complex() || target.is_complex()) {
    copy_complex(self, target);
    return target;
  }
  if (!target.is_privateuseone()) {
    copy_to_host(self, target);
    return target;
  }
  at::assert_no_internal_overlap(target);
  TORCH_CHECK(at::is_expandable_to(self.sizes(), target.sizes()), "The size of tensor a ",
              target.sizes(), " must match the size of tensor b ", self.sizes());
  if (!self.is_privateuseone()) {
    copy_from_host(self, target);
    return target;
  }
  if (self.sizes() == target.sizes()) at::assert_no_partial_overlap(target, self);
  if (!copy_whole(self, target)) write(target, tiny_torch::read(self));
  return target;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& target) {
  if (self.sizes() != target.sizes()) at::native::resize_output(target, self.sizes());
  return copy_from(self, target, false);
}

Tensor& conjugate(Tensor& self) {
  if (self.is_complex()) pairs_of(self).select(-1, 1).neg_();
  return self;
}
Tensor& conjugate_into(const Tensor& self, Tensor& out) {
  if (self.sizes() != out.sizes()) at::native::resize_output(out, self.sizes());
  return conjugate(out.copy_(self));
}

at::Scalar local_scalar_dense(const Tensor& self) {
  TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
  const Tensor host = at::empty(self.sizes(), self.options().device(at::kCPU));
  copy_from(self, host, false);
  return host.item();
}

// The same object with the memory, the sizes and the device of another: what assigning `data` does
// between devices whose tensors PyTorch takes for one kind, of which this is none.
void become(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.is_leaf() && self.layout() == other.layout(),
              "tiny: a parameter that moves is a leaf, and of one layout");
  if (auto* const meta = torch::autograd::impl::get_autograd_meta(self)) {
    // What adds up gradients has the device where it did.
    const std::lock_guard guard(meta->mutex_);
    meta->grad_accumulator_.reset();
  }
  self.unsafeGetTensorImpl()->shallow_copy_from(other.getIntrusivePtr());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_efficientzerotensor", TORCH_FN(zeros));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_.source_Storage", TORCH_FN(set_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_at));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_", TORCH_FN(set_nothing));
  m.impl("as_strided", TORCH_FN(as_strided));
  m.impl("view", TORCH_FN(view));
  m.impl("_reshape_alias", TORCH_FN(reshape_alias));
  m.impl("unfold", TORCH_FN(unfold));
  m.impl("view_as_real", TORCH_FN(view_as_real));
  m.impl("view_as_complex", TORCH_FN(view_as_complex));
  m.impl("is_set_to", TORCH_FN(is_set_to));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("conj_physical_", TORCH_FN(conjugate));
  m.impl("conj_physical.out", TORCH_FN(conjugate_into));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
}

// A view that is negated copies like any other: without these a copy of one would ask for a copy.
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

// What Python asks of the library itself.
TORCH_LIBRARY(tiny, m) {
  m.def("flush() -> ()", [] { flush(); });
  m.def("flush_count() -> int", [] { return flush_count(); });
  m.def("become(Tensor self, Tensor other) -> ()", become);
  m.def("memory_used() -> int", [] {
    int64_t launches = 0;
    int64_t used = 0;
    double operations = 0;
    double bytes = 0;
    double seconds = 0;
    check(tiny_context_totals(context(), &launches, &operations, &bytes, &seconds, &used));
    return used;
  });
  m.def("counters() -> str", [] {
    tiny_report* report = nullptr;
    check(tiny_context_counters(context(), &report));
    std::string text = tiny_report_text(report);
    tiny_report_release(report);
    return text;
  });
}

}  // namespace

}  // namespace tiny_torch

// Sparse tensors (COO): indices and values are tensors of the device, what holds the two together
// is PyTorch's own.  Arithmetic is made of operators of dense tensors (tiny/_sparse.py).
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_to_dense_native.h>
#include <ATen/ops/_to_sparse_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/norm_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/sum_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/zero_native.h>
#include <torch/library.h>

namespace tiny_torch {

namespace {

namespace native = at::native;

using ToSparseByRank = at::Tensor (*)(const at::Tensor&, int64_t);
using ToSparse = at::Tensor (*)(const at::Tensor&, std::optional<at::Layout>,
                                at::OptionalIntArrayRef, std::optional<int64_t>);
using Norm = at::Tensor (*)(const at::Tensor&, const std::optional<at::Scalar>&, at::IntArrayRef,
                            bool);

// What is in no list says so: PyTorch's words of a missing kernel list all of its backends.
void refuse(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "tiny: ", op.operator_name(),
                              " has no kernel for sparse tensors on device \"tiny\" "
                              "(docs/TORCH.md); to_dense() makes a dense one");
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse>());
}

TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse>());
}

// Rows and blocks (CSR, BSR) have no operators: they are refused where they are made.
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  for (const char* const maker :
       {"sparse_compressed_tensor.comp_plain_value",
        "sparse_compressed_tensor.comp_plain_value_size", "_sparse_compressed_tensor_unsafe"})
    m.impl(maker, torch::CppFunction::makeFromBoxedFunction<&refuse>());
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_sparse_coo_tensor_with_dims", native::new_with_dims_sparse);
  m.impl("_sparse_coo_tensor_with_dims_and_tensors",
         native::new_with_dims_and_tensor_sparse_symint);
  m.impl("empty.memory_format", native::empty_sparse_symint);
  m.impl("sparse_dim", native::sparse_dim_sparse);
  m.impl("_dimI", native::sparse_dim_sparse);
  m.impl("dense_dim", native::dense_dim_sparse);
  m.impl("_dimV", native::dense_dim_sparse);
  m.impl("_nnz", native::_nnz_sparse);
  m.impl("is_coalesced", native::is_coalesced_sparse);
  m.impl("_coalesced_", native::_coalesced_sparse_);
  m.impl("_indices", native::_indices_sparse);
  m.impl("_values", native::_values_sparse);
  m.impl("indices", native::indices_sparse);
  m.impl("values", native::values_sparse);
  m.impl("clone", native::clone_sparse);
  m.impl("copy_", native::copy_sparse_wrapper_);
  m.impl("copy_sparse_to_sparse_", native::copy_sparse_);
  m.impl("sparse_resize_", native::sparse_resize_);
  m.impl("sparse_resize_and_clear_", native::sparse_resize_and_clear_);
  m.impl("zero_", native::zero_sparse_);
  m.impl("_to_dense", native::sparse_to_dense);
  m.impl("sum", native::sum_coo);
  m.impl("norm.ScalarOpt_dim", static_cast<Norm>(native::sparse_norm));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_to_sparse", static_cast<ToSparse>(native::dense_to_sparse));
  m.impl("_to_sparse.sparse_dim", static_cast<ToSparseByRank>(native::dense_to_sparse));
}

}  // namespace

}  // namespace tiny_torch

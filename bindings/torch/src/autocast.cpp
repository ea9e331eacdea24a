// torch.autocast("tiny"): PyTorch's own lists of what runs in the lower precision and what in
// float32.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {  // whose names PyTorch's lists use

namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define TINY_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TINY_FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TINY_TYPED(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TINY_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(TINY_LOWER)
  AT_FORALL_FP32(TINY_FLOAT)
  AT_FORALL_FP32_SET_OPT_DTYPE(TINY_TYPED)
  AT_FORALL_PROMOTE(TINY_PROMOTE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
}

}  // namespace

}  // namespace at::autocast

// Operators that the CPU computes: those that are listed, and no other.  Each is counted, and told
// with TINY_DEBUG=2; one that is neither here nor has a kernel is an error that names it.
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "fallback.h"
#include "storage.h"

namespace tiny_torch {

namespace {

// By the beginning of the name.
constexpr const char* kListed[] = {
    // Factorisations and what is made of them: no kernels of the engine.
    "_linalg_",
    "linalg_",
    "cholesky",
    "_cholesky",
    "lu_unpack",
    "triangular_solve",
    "geqrf",
    "ormqr",
    "orgqr",
    "histogram",
    "_histogramdd",
    // Special functions without a row in specials.cpp.
    "special_",
    "_special",
    "igamma",
    "igammac",
    "mvlgamma",
    "ldexp",
    "gcd",
    "lcm",
    "_standard_gamma",
    "_dirichlet",
    "poisson",
    "binomial",
    "_sample_dirichlet",
    // Rows are put in the order of all their elements.
    "unique_dim",
    "segment_reduce",
    "_segment_reduce",
    // Windows that are no product of axes, and the backward passes of those.
    "max_unpool",
    "fractional_max_pool",
    "multilabel_margin_loss",
    // Rows of other lengths, padded and not.
    "_jagged_to_padded_dense",
    "_padded_dense_to_jagged",
    // Numbers of quantized networks, while they are trained.
    "_fake_quantize_learnable_",
    "_fused_moving_avg_obs_fq_helper",
    // Real numbers in, complex ones out; what complex ones go into needs no name here.
    "_fft_",
    "complex",
    "polar",
    "linalg",
    "_foreach",
    "_batch_norm_with_update",
    "batch_norm_backward",
    "round.decimals",
    "addbmm",
    "hash_tensor",
    "nonzero_static",
};

bool is_listed(const std::string& name) {
  return std::any_of(std::begin(kListed), std::end(kListed),
                     [&](const char* begin) { return name.starts_with(begin); });
}

std::mutex& lock() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
std::map<std::string, int64_t>& counts() {
  static auto& made = *new std::map<std::string, int64_t>;
  return made;
}

bool is_told() {
  const char* const level = std::getenv("TINY_DEBUG");
  return level && std::atoi(level) >= 2;
}

bool is_complex(const c10::IValue& given) {
  if (given.isTensor()) return given.toTensor().defined() && given.toTensor().is_complex();
  if (given.isList()) {
    const auto items = given.toListRef();
    return std::any_of(items.begin(), items.end(), is_complex);
  }
  return given.isComplexDouble();
}

}  // namespace

bool meets_complex(const torch::jit::Stack& stack, size_t count) {
  return std::any_of(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end(), is_complex);
}

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const bool told = is_told();
  const std::string name =
      c10::toString(op.operator_name()).substr(std::string_view("aten::").size());
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.operator_name().name.starts_with("aten::") &&
          (is_listed(name) || meets_complex(*stack, op.schema().arguments().size())),
      "tiny: ", op.operator_name(),
      " has no kernel on device \"tiny\", and is none of those that the CPU computes "
      "instead (docs/TORCH.md)");
  {
    const std::lock_guard guard(lock());
    ++counts()[name];
  }
  if (told) std::fprintf(stderr, "tiny: %s is computed on the CPU\n", name.c_str());
  flush();
  at::native::cpu_fallback(op, stack);
}

namespace {

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}

TORCH_LIBRARY_FRAGMENT(tiny, m) {
  m.def("fallbacks() -> (str[], int[])", [] {
    const std::lock_guard guard(lock());
    std::vector<std::string> names;
    std::vector<int64_t> numbers;
    for (const auto& [name, count] : counts()) {
      names.push_back(name);
      numbers.push_back(count);
    }
    return std::tuple(names, numbers);
  });
  m.def("clear_fallbacks() -> ()", [] {
    const std::lock_guard guard(lock());
    counts().clear();
  });
}

}  // namespace

}  // namespace tiny_torch

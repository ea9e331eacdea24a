// Compiled kernels and plans as bytes, for the disk cache.  Decoders give nothing for bytes that do
// not hold together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan_cache.h"
#include "engine/program.h"
#include "runtime/device.h"

namespace tiny {

struct StoredKernel {
  Code code;
  SizeExpression threads_extent;  // by the kernel's variables
  KernelInfo info;
};
std::string encode_kernel(const StoredKernel& kernel);
std::optional<StoredKernel> decode_kernel(std::string_view bytes);

// A plan without executables, and for each entry of its tape the name of its kernel's file.
struct StoredPlan {
  CachedPlan cached;
  std::vector<std::string> kernels;
};
std::string encode_plan(const CachedPlan& cached);
// For a graph of so many nodes and leaves.
std::optional<StoredPlan> decode_plan(std::string_view bytes, size_t nodes, size_t leaves);

}  // namespace tiny

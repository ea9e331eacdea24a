// What the PREFETCH option fetches for: its loop, and the access to its parameter.
//
// reads: the kernel and the option.
#pragma once

#include <span>

#include "codegen/options/options.h"
#include "ir/affine.h"
#include "ir/kernel.h"

namespace tiny {

inline constexpr int64_t kPrefetchedBytes = 64;  // that one prefetch fetches: a line

// The option and the kernel that it is for, both of which must outlive it.
struct PrefetchRequest {
  PrefetchRequest(const Kernel& for_kernel, const Option& wanted);
  // Error{InvalidArgument}: the option does not fit the kernel.
  [[noreturn]] void refuse(const char* why) const;
  RangeSet free_of(const UOp& u) const { return free.at(u.node()); }

  const Kernel& kernel;
  const Option& option;
  Graph& graph;
  FreeRanges free;
};

// The option's loop.
struct PrefetchLoop {
  size_t place = 0;  // among the kernel's ranges
  UOp range;
  bool is_closed = false;  // by a reduction or a stage
};
PrefetchLoop find_prefetch_loop(const PrefetchRequest& request);

// The parameter's load or store.
struct PrefetchAccess {
  UOp op;
  bool is_store = false;
  bool is_staged = false;
  DType element;
  UOp longest_reduce;
  RangeSet surrounding = 0;  // ranges around it that no stage above it closes
  Affine place;              // which element it is, by ranges
  int64_t elements = 1;      // of the parameter, where they are known
};
PrefetchAccess find_prefetch_access(const PrefetchRequest& request, const PrefetchLoop& loop);

bool depends_on_any(const UOp& value, std::span<const UOp> ranges);

}  // namespace tiny

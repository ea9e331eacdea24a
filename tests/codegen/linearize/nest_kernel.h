// A kernel of ranges alone, for the parts of the lineariser that know nothing else.
#pragma once

#include "ir/kernel.h"

namespace tiny::testing {

struct NestKernel {
  Graph graph;
  Kernel kernel;

  NestKernel() { kernel.roots = {graph.integer(0)}; }
  UOp range(const UOp& size, RangeKind kind) {
    const auto number = static_cast<int64_t>(kernel.ranges.size());
    kernel.ranges.push_back({graph.make(Op::Range, {size}, number), kind});
    return kernel.ranges.back().range;
  }
  UOp range(int64_t size, RangeKind kind) { return range(graph.integer(size), kind); }
};

}  // namespace tiny::testing

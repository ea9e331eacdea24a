// What kernels need of their loops and what they cost, where they are stored side by side.
//
// reads: the kernels and the machine.
#pragma once

#include <optional>
#include <vector>

#include "cost/machine.h"
#include "schedule/kernel_loops.h"
#include "schedule/schedule.h"

namespace tiny {

// What a kernel needs of its loops.
struct KernelFigures {
  bool can_share = false;  // with other stores; the others are not known where it is not
  int64_t reductions = 0;
  bool has_product = false;
};

// What is priced of a kernel.
struct KernelSeconds {
  double work = 0;     // and how much longer it takes where cores cannot share it
  double streams = 0;  // what register tiles read and store in pieces of rows: half as fast
};

// Of reading or storing a buffer of this size.
double access_seconds(double bytes, const Machine& machine);

KernelFigures figures_of(const KernelLoops& loops, size_t inputs, const Machine& machine);
KernelSeconds seconds_of(const KernelLoops& loops, const Machine& machine);

// The same by kernel, found when they are asked for first.
class KnownFigures {
 public:
  KnownFigures(const std::vector<ScheduledKernel>& kernels, const Machine& machine)
      : kernels_(kernels), machine_(machine), figures_(kernels.size()), seconds_(kernels.size()) {}

  const KernelFigures& figures(size_t k);
  const KernelSeconds& seconds(size_t k);
  // The loops of the two may be the same.  A product has register tiles of its own; what it ends in
  // may be stored beside it.
  bool may_share_loops(size_t first, size_t second);
  void set(size_t k, const KernelFigures& figures, const KernelSeconds& seconds);

 private:
  const std::vector<ScheduledKernel>& kernels_;
  const Machine& machine_;
  std::vector<std::optional<KernelFigures>> figures_;
  std::vector<std::optional<KernelSeconds>> seconds_;
};

}  // namespace tiny

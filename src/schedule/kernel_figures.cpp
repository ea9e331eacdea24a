#include "schedule/kernel_figures.h"

#include "schedule/decide.h"
#include "schedule/row_costs.h"
#include "schedule/row_test.h"

namespace tiny {

double access_seconds(double bytes, const Machine& machine) {
  return (saved_seconds(bytes, machine) - machine.launch_seconds) / 2;
}

KernelFigures figures_of(const KernelLoops& loops, size_t inputs, const Machine& machine) {
  const RowTest test(loops, machine);
  KernelFigures figures;
  // A step of what runs along a loop waits for the one before it: nothing else waits with it.
  figures.can_share =
      ordered_ranges(loops.kernel()) == 0 && test.stores_share_loops() && test.passes(inputs);
  if (!figures.can_share) return figures;
  figures.reductions = loops.reductions();
  figures.has_product = loops.has_product();
  return figures;
}

KernelSeconds seconds_of(const KernelLoops& loops, const Machine& machine) {
  const RowCosts costs(loops, machine);
  KernelSeconds seconds;
  seconds.work = costs.work() / machine.fma_rate + costs.alone_seconds() - costs.staging_saves();
  for (const double bytes : costs.tile_streams()) seconds.streams += access_seconds(bytes, machine);
  return seconds;
}

const KernelFigures& KnownFigures::figures(size_t k) {
  if (!figures_[k])
    figures_[k] = figures_of(KernelLoops(kernels_[k].kernel), kernels_[k].values.size(), machine_);
  return *figures_[k];
}

const KernelSeconds& KnownFigures::seconds(size_t k) {
  if (!seconds_[k]) seconds_[k] = seconds_of(KernelLoops(kernels_[k].kernel), machine_);
  return *seconds_[k];
}

bool KnownFigures::may_share_loops(size_t first, size_t second) {
  const KernelFigures& a = figures(first);
  if (!a.can_share) return false;
  const KernelFigures& b = figures(second);
  const bool product = a.has_product || b.has_product;
  return b.can_share && !(product && a.reductions + b.reductions > 1);
}

void KnownFigures::set(size_t k, const KernelFigures& figures, const KernelSeconds& seconds) {
  figures_[k] = figures;
  seconds_[k] = seconds;
}

}  // namespace tiny

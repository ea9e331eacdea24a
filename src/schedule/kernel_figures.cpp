#include "schedule/kernel_figures.h"

#include "schedule/decide.h"

namespace tiny {

double access_seconds(double bytes, const Machine& machine) {
  return (saved_seconds(bytes, machine) - machine.launch_seconds) / 2;
}

KernelFigures figures_of(const RowTest& test, size_t inputs) {
  KernelFigures figures;
  figures.can_share = test.stores_share_loops() && test.passes(inputs);
  if (!figures.can_share) return figures;
  figures.reductions = test.reductions();
  figures.has_product = test.has_product();
  return figures;
}

KernelSeconds seconds_of(const RowTest& test, const Machine& machine) {
  KernelSeconds seconds;
  seconds.work = test.work() / machine.fma_rate + test.alone_seconds() - test.staging_saves();
  for (const double bytes : test.tile_streams()) seconds.streams += access_seconds(bytes, machine);
  return seconds;
}

const KernelFigures& KnownFigures::figures(size_t k) {
  if (!figures_[k])
    figures_[k] = figures_of(RowTest(kernels_[k].kernel, machine_), kernels_[k].values.size());
  return *figures_[k];
}

const KernelSeconds& KnownFigures::seconds(size_t k) {
  if (!seconds_[k]) seconds_[k] = seconds_of(RowTest(kernels_[k].kernel, machine_), machine_);
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

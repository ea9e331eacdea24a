#include "cost/walked_kernel.h"

#include <cmath>
#include <cstdlib>

#include "cost/footprint.h"

namespace tiny {

WalkedKernel::WalkedKernel(const Kernel& of, const Machine& on)
    : kernel(of), machine(on), table(access_table(of)) {
  for (size_t i = 0; i < kernel.ranges.size(); ++i) {
    const RangeKind kind = kernel.ranges[i].kind;
    if (kind == RangeKind::Loop || kind == RangeKind::Thread) loops |= bit(i);
    if (kind == RangeKind::Upcast || kind == RangeKind::Unroll) unrolled |= bit(i);
    if (kind == RangeKind::Vec) lanes |= bit(i);
    if (kind == RangeKind::Dot) words |= bit(i);
  }
  accesses.resize(table.order.size());
  for (const AccessInfo& a : table.accesses) accesses[a.place] = &a;
  first.reserve(table.order.size());
  uint32_t next = 0;
  for (const UOp& u : table.order) {
    first.push_back(next);
    next += static_cast<uint32_t>(u.src().size());
  }
}

RangeSet WalkedKernel::closed_by(const UOp& u) const {
  RangeSet own = 0;
  if (closes_ranges(u))
    for (const UOp& r : u.src().subspan(1)) own |= bit(kernel.position(r));
  return own;
}

int64_t WalkedKernel::lane_stride(const AccessInfo& a) const {
  if (!lanes) return 0;
  int64_t stride = 0;
  for (RangeSet set = lanes; set; set &= set - 1) {
    const int64_t s = a.strides[static_cast<size_t>(std::countr_zero(set))];
    if (s != 0) stride = s;
  }
  return stride;
}

double WalkedKernel::copies(const AccessInfo& a) const {
  Axes axes;
  double copies = 1;
  for (RangeSet set = unrolled; set; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    if (a.strides[i] == kOpaqueStride)
      copies *= extent(i);
    else if (a.strides[i] != 0)
      axes.add(std::abs(static_cast<double>(a.strides[i])), extent(i));
  }
  Places places;
  for (const Axis& axis : axes.sorted()) places.add(axis);
  return copies * places.count();
}

}  // namespace tiny

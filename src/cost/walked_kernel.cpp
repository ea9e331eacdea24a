#include "cost/walked_kernel.h"

#include <cmath>
#include <cstdlib>
#include <numeric>

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

double WalkedKernel::share_across(const AccessInfo& a, double bytes, DType dtype) const {
  constexpr auto kLineBytes = static_cast<int64_t>(kLine);
  // Of more bytes than a register's there are several accesses.
  const int64_t length = std::min(static_cast<int64_t>(bytes), int64_t{machine.vector_bytes});
  int64_t apart = bytes > static_cast<double>(length) ? length : kLineBytes;  // divides all steps
  for (size_t i = 0; i < a.strides.size(); ++i) {
    const int64_t stride = a.strides[i] == kOpaqueStride ? 1 : a.strides[i] % kLineBytes;
    if (!(lanes & bit(i)) && extent(i) > 1) apart = std::gcd(apart, stride * dtype.bytes());
  }
  auto begin = static_cast<int64_t>(std::fmod(a.offset, kLine)) * dtype.bytes();
  if (lane_stride(a) < 0) begin -= length - dtype.bytes();
  // Steps of `apart` lead to all such places in a line equally often.
  begin = (begin % apart + apart) % apart;
  int64_t across = 0;
  for (int64_t place = begin; place < kLineBytes; place += apart)
    across += place + length > kLineBytes ? 1 : 0;
  return static_cast<double>(across * apart) / kLine;
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

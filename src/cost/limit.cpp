#include "cost/limit.h"

#include <algorithm>
#include <bit>

namespace tiny {

namespace {

// What the first level of cache gives for each byte that the second one does: measured on Zen 5
// (530 for 257 GB/s), and about as much on Skylake.
constexpr double kFirstLevelFaster = 2;

double extent_of(const AccessTable& table, RangeSet set) {
  double n = 1;
  for (; set; set &= set - 1) n *= table.extents[static_cast<size_t>(std::countr_zero(set))];
  return n;
}

}  // namespace

double limit_seconds(const AccessTable& table, const Machine& target) {
  double work = 0;  // in multiply-adds of one element
  for (size_t k = 0; k < table.order.size(); ++k) {
    const UOp& u = table.order[k];
    if (u.dtype() == kInt64 || u.dtype() == kVoid) continue;
    const double width = static_cast<double>(u.dtype().bytes()) / 4;
    if (u.op() == Op::Reduce) {
      RangeSet all = 0;
      for (const UOp& s : u.src()) all |= table.free_of(s);
      const UOp& value = u.src(0);
      // The product is part of the multiply-add.
      const bool is_product = value.op() == Op::Mul && u.reduce_arg().op == Op::Add;
      work += extent_of(table, all) * width - (is_product ? extent_of(table, all) * width : 0);
    } else if (has(u.op(), kElementwise) && u.op() != Op::Cast) {
      work += extent_of(table, table.free[k]) * width;
    }
  }
  double bytes = 0;
  for (const AccessInfo& a : table.accesses) {
    double elements = 1;
    for (size_t i = 0; i < a.strides.size(); ++i)
      if (a.strides[i] != 0) elements *= table.extents[i];
    const DType dtype = a.store ? a.node.src(1).dtype() : a.node.dtype();
    bytes += std::min(elements, a.elements) * static_cast<double>(dtype.bytes());
  }
  const double bandwidth = bytes <= static_cast<double>(target.l1_bytes)
                               ? kFirstLevelFaster * target.l2_bandwidth
                               : bandwidth_of(bytes, target, 1);
  return std::max(work / target.fma_rate, bytes / bandwidth);
}

}  // namespace tiny

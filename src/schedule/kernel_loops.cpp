#include "schedule/kernel_loops.h"

#include <algorithm>
#include <bit>

#include "ir/bounds.h"

namespace tiny {

namespace {

// Steps of a reduction for each element that it reads, from which it is a contraction: windows that
// overlap a little are none.
constexpr double kReadAgainMin = 1.5;

// Whether a value is one of a few, by its position: such values share what they are made of as long
// as nothing but elementwise work stands around them.
bool is_chosen_by_position(const UOp& u) {
  if (u.op() != Op::Where || u.src(0).op() != Op::Less || u.src(1).is_const()) return false;
  const UOp& position = u.src(0).src(0);
  if (position.dtype() != kInt64 || !u.src(0).src(1).is_const()) return false;
  const Interval range = bounds(position);
  return range.lo == 0 && range.hi < kChoicesMax && !u.src(2).is_const();
}

}  // namespace

KernelLoops::KernelLoops(const Kernel& kernel)
    : kernel_(kernel), nodes_(topological(kernel.roots)) {
  free_.reserve(nodes_.size());
  for (const UOp& u : nodes_) {
    RangeSet free = u.op() == Op::Range ? RangeSet{1} << kernel.position(u) : 0;
    for (const UOp& s : u.src()) free |= free_.at(s.node());
    if (u.op() == Op::Reduce)
      for (size_t i = 1; i < u.src().size(); ++i) free &= ~free_.at(u.src(i).node());
    free_.emplace(u.node(), free);
    if (u.op() == Op::Load ||
        std::ranges::any_of(u.src(), [&](const UOp& s) { return is_data(s); }))
      data_.insert(u.node());
  }
}

RangeSet KernelLoops::reduced() const {
  RangeSet set = 0;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i)
    if (kernel_.ranges[i].reduced) set |= RangeSet{1} << i;
  return set;
}

RangeSet KernelLoops::closed(const UOp& reduce) const {
  RangeSet own = 0;
  for (size_t i = 1; i < reduce.src().size(); ++i) own |= free(reduce.src(i));
  return own;
}

RangeSet KernelLoops::last_range() const {
  for (size_t i = kernel_.ranges.size(); i-- > 0;)
    if (!kernel_.ranges[i].reduced) return RangeSet{1} << i;
  return 0;
}

double KernelLoops::extent(RangeSet set) const {
  double n = 1;
  for (; set; set &= set - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(set));
    n *= static_cast<double>(std::max<int64_t>(bounds(kernel_.ranges[i].range.src(0)).hi, 1));
  }
  return n;
}

RangeSet KernelLoops::walked(const UOp& load) const {
  const ViewArg& view = load.view_arg();
  RangeSet set = 0;
  for (size_t i = 0; i < view.strides.size(); ++i)
    if (view.strides[i] != 0) set |= free(load.src(1 + i));
  return set;
}

bool KernelLoops::has_neighbours(const UOp& load, RangeSet along) const {
  const ViewArg& view = load.view_arg();
  for (size_t i = 0; i < view.strides.size(); ++i) {
    const int64_t stride = view.strides[i];
    if ((stride == 1 || stride == -1) && (free(load.src(1 + i)) & along)) return true;
  }
  return false;
}

double KernelLoops::walked_bytes(const UOp& load) const {
  return extent(walked(load)) * static_cast<double>(load.dtype().bytes());
}

double KernelLoops::stored_bytes(const UOp& store) const {
  return extent(free(store)) * static_cast<double>(store.src(1).dtype().bytes());
}

// What is computed in lanes, which lie along the last range or a reduction, has as many of them as
// the widest value leaves.  Indices have none.
double KernelLoops::widest_bytes() const {
  double widest = kRatedBytes;
  const RangeSet lanes = last_range() | reduced();
  std::vector<UOp> values;
  for (const UOp& root : kernel_.roots)
    if (root.op() == Op::Store) values.push_back(root.src(1));
  for (const UOp& u : topological(values, [](const UOp& v) { return v.op() == Op::Load; }))
    if ((free(u) & lanes) && (u.dtype() != kInt64 || is_data(u)))
      widest = std::max(widest, static_cast<double>(u.dtype().bytes()));
  return widest;
}

int64_t KernelLoops::reductions() const {
  return std::ranges::count_if(nodes_, is_reduce);
}

bool KernelLoops::has_product() const {
  return std::ranges::any_of(nodes_,
                             [&](const UOp& u) { return is_reduce(u) && is_contraction(u); });
}

// The elements that a load walks through as these ranges run.  A range that is split into several
// indices counts with the values that each of them takes; windows that overlap count as apart.
double KernelLoops::walked_elements(const UOp& load, RangeSet ranges) const {
  const ViewArg& view = load.view_arg();
  double elements = 1;
  for (size_t i = 0; i < view.strides.size(); ++i) {
    const UOp& index = load.src(1 + i);
    const RangeSet set = free(index) & ranges;
    if (view.strides[i] == 0 || set == 0) continue;
    const Interval values = bounds(index);
    const bool one = std::popcount(set) == 1;
    elements *= one ? std::min(extent(set),
                               static_cast<double>(values.hi) - static_cast<double>(values.lo) + 1)
                    : extent(set);
  }
  return std::min(elements, extent(walked(load) & ranges));
}

bool KernelLoops::is_contraction(const UOp& reduce, bool splits) const {
  const RangeSet all = free(reduce) | closed(reduce);
  double largest = 1;
  const UOp value = reduce.src(0);
  for (const UOp& u : topological({&value, 1}))
    if (u.op() == Op::Load)
      largest = std::max(largest, splits ? walked_elements(u, all) : extent(walked(u) & all));
  return extent(all) > kReadAgainMin * largest;
}

bool KernelLoops::chooses_by_position() const {
  return std::ranges::any_of(nodes_, is_chosen_by_position);
}

}  // namespace tiny

#include "engine/reuse.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

// Where an access is in its buffer: what it depends on, axes of one element left out.
struct Place {
  std::vector<std::tuple<int64_t, int64_t, const Node*>> axes;  // size, stride, index
  int64_t offset = 0;
  bool symbolic = false;
  bool operator==(const Place&) const = default;
};

Place place_of(const UOp& access, size_t first_index) {
  const ViewArg& view = access.view_arg();
  Place place;
  place.offset = view.offset;
  place.symbolic = view.offset == kSymbolicDim;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    place.symbolic |= view.shape[i] == kSymbolicDim || view.strides[i] == kSymbolicDim;
    if (view.shape[i] != 1)
      place.axes.emplace_back(view.shape[i], view.strides[i], access.src(first_index + i).node());
  }
  return place;
}

// The nodes below reductions.
std::unordered_set<const Node*> reduced_nodes(const std::vector<UOp>& order) {
  std::unordered_set<const Node*> inside;
  for (size_t i = order.size(); i-- > 0;) {
    const UOp& u = order[i];
    if (u.op() == Op::Reduce || inside.contains(u.node()))
      for (const UOp& s : u.src()) inside.insert(s.node());
  }
  return inside;
}

}  // namespace

std::vector<size_t> params_to_take_over(const ScheduledKernel& kernel, size_t number) {
  const Kernel& k = kernel.kernel;
  // All of its destination, not a slice or a write.
  const bool checks = k.roots.size() != kernel.stores.size();
  if (checks || !(kernel.stores[number].destination == kernel.stores[number].value)) return {};
  const bool reduces = std::ranges::any_of(k.ranges, &KernelRange::reduced);
  if (kernel.stores.size() > 1 && reduces) return {};
  const UOp& store = k.roots[number];
  const Place own = place_of(store, 2);
  if (own.symbolic) return {};
  const auto written = static_cast<size_t>(store.src(0).int_arg());
  std::vector<uint8_t> fits(k.params.size());
  for (size_t i = 0; i < fits.size(); ++i)
    fits[i] = i != written && !k.params[i].written &&
              k.params[i].element.bytes() == k.params[written].element.bytes();
  const std::vector<UOp> order = topological(k.roots);
  const std::unordered_set<const Node*> reduced = reduced_nodes(order);
  for (const UOp& u : order) {
    if (u.op() != Op::Load) continue;
    const auto param = static_cast<size_t>(u.src(0).int_arg());
    if (reduced.contains(u.node()) || !(place_of(u, 1) == own)) fits[param] = 0;
  }
  std::vector<size_t> params;
  for (size_t i = 0; i < fits.size(); ++i)
    if (fits[i]) params.push_back(i);
  return params;
}

}  // namespace tiny

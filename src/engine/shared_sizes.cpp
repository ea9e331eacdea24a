#include "engine/shared_sizes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/checked.h"
#include "codegen/ranges.h"
#include "ir/build.h"

namespace tiny {

namespace {

// From so many elements on a launch takes longer than the loop around it, whose bounds it reads.
constexpr int64_t kElementsMost = 16 << 10;
// Fewer sizes compile about as fast.
constexpr size_t kSizesLeast = 4;

struct Sized {
  Kernel kernel;
  int64_t size = 0;
};

// Whether it is loops of known sizes, with few steps, around stores.
bool is_small(const Kernel& kernel) {
  if (!kernel.variables.empty() || !kernel.facts.empty() || !kernel.prefetches.empty())
    return false;
  int64_t steps = 1;
  for (const KernelRange& r : kernel.ranges) {
    if (r.reduced || r.kind != RangeKind::Loop || !r.range.src(0).is_const()) return false;
    steps = checked_mul(steps, r.range.src(0).const_int(), "a kernel's steps");
    if (steps > kElementsMost) return false;
  }
  return steps > 0 &&
         std::ranges::all_of(kernel.roots, [](const UOp& root) { return root.op() == Op::Store; });
}

// An access over `src`, in whose view the axis that `range` walks has a size that `variable` gives,
// and axes of one element are left out.
UOp with_free_axis(const UOp& access, const std::vector<UOp>& src, const UOp& range,
                   const UOp& variable) {
  const ViewArg& given = access.view_arg();
  const size_t first = access.op() == Op::Load ? 1 : 2;
  ViewArg view;
  view.offset = given.offset;
  std::vector<UOp> now(src.begin(), src.begin() + static_cast<std::ptrdiff_t>(first));
  std::vector<UOp> sizes;
  for (size_t i = 0; i < given.shape.size(); ++i) {
    const UOp& index = access.src(first + i);
    if (given.shape[i] == 1 && index.is_const_int(0)) continue;
    const bool is_free = index == range && range.src(0).is_const_int(given.shape[i]);
    if (is_free) sizes.push_back(variable);
    view.shape.push_back(is_free ? kSymbolicDim : given.shape[i]);
    view.strides.push_back(given.strides[i]);
    now.push_back(src[first + i]);
  }
  now.insert(now.end(), sizes.begin(), sizes.end());
  return access.graph().make(access.op(), now, std::move(view), access.dtype());
}

// The kernel with a variable in the place of its only loop's size.
std::optional<Sized> with_free_size(const Kernel& given) {
  if (!is_small(given)) return std::nullopt;
  Sized made{merge_ranges(given)};
  Kernel& kernel = made.kernel;
  if (kernel.ranges.size() != 1) return std::nullopt;
  const UOp range = kernel.ranges[0].range;
  Graph& graph = range.graph();
  made.size = range.src(0).const_int();
  const UOp variable = graph.variable("n", 1, kElementsMost);
  const UOp free_range = graph.make(Op::Range, {variable}, range.int_arg());
  map_kernel(kernel, [&](const UOp& u, std::vector<UOp>& src) {
    if (u == range) return free_range;
    const bool is_access = u.op() == Op::Load || u.op() == Op::Store;
    return is_access ? with_free_axis(u, src, range, variable) : u.with_src(src);
  });
  kernel.ranges[0].range = free_range;
  kernel.variables.push_back(variable);
  return made;
}

}  // namespace

std::vector<int64_t> share_sizes(std::vector<Kernel>& kernels) {
  std::vector<int64_t> sizes(kernels.size());
  if (kernels.size() < kSizesLeast) return sizes;
  struct Alike {
    std::set<int64_t> sizes;
    std::vector<std::pair<size_t, Sized>> kernels;
  };
  std::map<std::vector<const Node*>, Alike> groups;  // by the roots
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::optional<Sized> sized = with_free_size(kernels[i]);
    if (!sized) continue;
    std::vector<const Node*> roots;
    for (const UOp& root : sized->kernel.roots) roots.push_back(root.node());
    Alike& alike = groups[std::move(roots)];
    alike.sizes.insert(sized->size);
    alike.kernels.emplace_back(i, std::move(*sized));
  }
  for (auto& [roots, alike] : groups) {
    if (alike.sizes.size() < kSizesLeast) continue;
    for (auto& [i, sized] : alike.kernels) {
      kernels[i] = std::move(sized.kernel);
      sizes[i] = sized.size;
    }
  }
  return sizes;
}

}  // namespace tiny

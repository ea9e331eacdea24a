#include "engine/shared_sizes.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <utility>

#include "base/checked.h"
#include "codegen/ranges.h"
#include "engine/kernel_cache.h"
#include "ir/build.h"
#include "ir/node_map.h"

namespace tiny {

namespace {

// Elements.  To read the size of its loop takes a launch some 0.03 us, of 0.33 to 0.5 us for 1 to
// 4,096 sums; a kernel of more may want other options than small ones, threads among them.
constexpr int64_t kElementsMost = 16 << 10;
// Compiling so many kernels takes some 0.2 ms; fewer are not worth looking for.
constexpr size_t kSizesLeast = 4;

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
  view.shape.reserve(given.shape.size());
  view.strides.reserve(given.shape.size());
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

// The kernel with a variable in the place of the size of its only loop, which this returns; 0 where
// there is no such kernel.
int64_t free_size(const Kernel& given, Kernel& kernel) {
  if (!is_small(given)) return 0;
  kernel = merge_ranges(given);
  if (kernel.ranges.size() != 1) return 0;
  const UOp range = kernel.ranges[0].range;
  Graph& graph = range.graph();
  const UOp variable = graph.variable("n", 1, kElementsMost);
  const UOp free_range = graph.make(Op::Range, {variable}, range.int_arg());
  map_kernel(kernel, [&](const UOp& u, std::vector<UOp>& src) {
    if (u == range) return free_range;
    const bool is_access = u.op() == Op::Load || u.op() == Op::Store;
    return is_access ? with_free_axis(u, src, range, variable) : u.with_src(src);
  });
  kernel.ranges[0].range = free_range;
  kernel.variables.push_back(variable);
  return range.src(0).const_int();
}

// What a kernel computes but for its sizes, in words.
using Words = std::vector<uint64_t>;

// A source: the place of what depends on sizes, which is odd, or else the node, which is even and
// of all kernels the same.
uint64_t word_of(const UOp& u, const NodeTable<uint64_t>& places) {
  const uint64_t* place = places.find(u.node());
  return place ? 2 * *place + 1 : std::bit_cast<uintptr_t>(u.node());
}

// Adds from which element and by which step an access walks along the loops, if that is in their
// order, or that it is of one element; else false.
bool add_walk(const Kernel& kernel, const UOp& access, Words& words) {
  const ViewArg& view = access.view_arg();
  const size_t first = access.op() == Op::Load ? 1 : 2;
  if (access.src().size() != first + view.shape.size()) return false;
  size_t axis = 0;
  int64_t step = 0;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const UOp& index = access.src(first + i);
    if (view.shape[i] == 1 && index.is_const_int(0)) continue;
    if (axis == kernel.ranges.size() || !(index == kernel.ranges[axis].range)) return false;
    if (!index.src(0).is_const_int(view.shape[i])) return false;
    if (axis > 0 && step != view.strides[i] * view.shape[i]) return false;
    step = view.strides[i];
    ++axis;
  }
  for (const int64_t number : {static_cast<int64_t>(axis), step, view.offset})
    words.push_back(static_cast<uint64_t>(number));
  return axis == 0 || axis == kernel.ranges.size();
}

// Describes arithmetic on elements that every access walks in the order of the loops: free_size
// makes one kernel of all that have the same words.  False for other kernels.
bool describe(const Kernel& kernel, Words& words) {
  words.clear();
  if (!is_small(kernel)) return false;
  for (const KernelRange& r : kernel.ranges) {
    if (r.range.src(0).is_const_int(1)) return false;  // which merges with any other
    words.push_back(static_cast<uint64_t>(r.range.int_arg()));
  }
  NodeTable<uint64_t> places;
  for (const UOp& u : topological(kernel.roots)) {
    if (u.src().empty() || u.op() == Op::Range) continue;
    const bool is_access = u.op() == Op::Load || u.op() == Op::Store;
    if (!is_access && (!has(u.op(), kElementwise) || u.arg().index() != 0)) return false;
    const size_t sources = !is_access ? u.src().size() : u.op() == Op::Load ? 1 : 2;
    words.push_back(static_cast<uint64_t>(u.op()) << 48 | static_cast<uint64_t>(sources) << 24 |
                    static_cast<uint64_t>(u.dtype().scalar) << 16 | u.dtype().lanes);
    for (const UOp& source : u.src().first(sources)) {
      if (source.op() == Op::Range) return false;
      words.push_back(word_of(source, places));
    }
    if (is_access && !add_walk(kernel, u, words)) return false;
    places.emplace(u.node(), places.size());
  }
  return true;
}

// Kernels with a variable for their size, as free_size makes them, looked up by what they compute.
class FreeKernels {
 public:
  // As free_size; null where there is none.
  const Kernel* of(const Kernel& given, int64_t& size) {
    const bool is_known_kind = describe(given, words_);
    if (is_known_kind)
      if (const auto found = known_.find(words_); found != known_.end()) {
        size = steps(given);
        return found->second;
      }
    Kernel made;
    size = free_size(given, made);
    if (size == 0) return nullptr;
    const Kernel* kept = &kernels_.emplace_back(std::move(made));
    if (is_known_kind) known_.emplace(words_, kept);
    return kept;
  }

 private:
  static int64_t steps(const Kernel& kernel) {
    int64_t steps = 1;
    for (const KernelRange& r : kernel.ranges) steps *= r.range.src(0).const_int();
    return steps;
  }

  std::deque<Kernel> kernels_;
  std::map<Words, const Kernel*> known_;
  Words words_;
};

}  // namespace

std::vector<int64_t> share_sizes(std::vector<Kernel>& kernels) {
  std::vector<int64_t> sizes(kernels.size());
  if (kernels.size() < kSizesLeast) return sizes;
  FreeKernels free_kernels;
  std::vector<const Kernel*> made(kernels.size());
  std::map<KernelCache::Key, Ints> known;  // by structure: sizes, no more than are asked for
  std::vector<const Ints*> of_kernel(kernels.size());
  for (size_t i = 0; i < made.size(); ++i) {
    made[i] = free_kernels.of(kernels[i], sizes[i]);
    if (!made[i]) continue;
    Ints& of_structure = known[KernelCache::key_of(*made[i])];
    of_kernel[i] = &of_structure;
    if (of_structure.size() < kSizesLeast && std::ranges::count(of_structure, sizes[i]) == 0)
      of_structure.push_back(sizes[i]);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (of_kernel[i] && of_kernel[i]->size() == kSizesLeast)
      kernels[i] = *made[i];
    else
      sizes[i] = 0;
  }
  return sizes;
}

}  // namespace tiny

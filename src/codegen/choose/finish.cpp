#include "codegen/choose/finish.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "cost/access_table.h"
#include "ir/bounds.h"

namespace tiny {

namespace {

// Of rows that are stored in the order of steps, parts that cores share: a page, since what lies
// behind a shorter one in its page is fetched ahead for nothing (measured on Zen 5: halves of rows
// of 256 bytes to 4 KB took as long as the whole).
constexpr int64_t kPartBytesMin = 4096;
constexpr int64_t kPartsOfCore = 2;  // so that none waits long for another
constexpr double kValuesOfStep = 2;  // one read, one stored: of the steps that are shared

class Finisher {
 public:
  Finisher(OptimisedKernel made, const Machine& target) : made_(std::move(made)), target_(target) {}

  OptimisedKernel run() {
    bypass();
    share();
    return std::move(made_);
  }

 private:
  Kernel& kernel() { return made_.kernel; }
  void apply(Option option) {
    made_.kernel = apply_option(made_.kernel, option);
    made_.options.push_back(std::move(option));
  }

  // What does not fit the last cache is not there when it is read: it is stored past the caches, so
  // that its lines are not fetched first.
  void bypass() {
    if (target_.bypass_bytes == 0) return;
    const auto is_large = [&](const UOp& u) {
      if (u.op() != Op::Store) return false;
      double bytes = static_cast<double>(u.src(1).dtype().bytes());
      for (const int64_t n : u.view_arg().shape)
        if (n != kSymbolicDim) bytes *= static_cast<double>(n);
      return bytes > static_cast<double>(target_.bypass_bytes);
    };
    if (std::ranges::none_of(kernel().roots, is_large)) return;
    for (const AccessInfo& a : access_table(kernel()).accesses) {
      if (!is_large(a.node)) continue;
      const int64_t param = a.node.src(0).int_arg();
      const KernelParam& p = kernel().params[static_cast<size_t>(param)];
      if (p.read || p.bypass) continue;
      const int64_t bytes = p.element.bytes();
      // Whole lines: lanes side by side in memory.
      for (size_t i = 0; i < kernel().ranges.size(); ++i) {
        const KernelRange& r = kernel().ranges[i];
        if (r.kind != RangeKind::Vec || a.strides[i] != 1) continue;
        if (r.range.src(0).const_int() * bytes >= target_.vector_bytes)
          apply({OptionKind::Bypass, -1, param, {}, 0, false});
      }
    }
  }

  // The position of the outermost loop that belongs to every store.  What stands outside of it is
  // unrolled, or reduced to what is the same for all of its steps.
  std::optional<size_t> shared_loop() {
    FreeRanges free;
    add_free_ranges(kernel(), kernel().roots, free);
    const RangeSet ordered = ordered_ranges(kernel());
    const std::vector<KernelRange>& ranges = kernel().ranges;
    size_t at = 0;
    while (at < ranges.size() &&
           (ranges[at].kind != RangeKind::Loop || ranges[at].reduced || (ordered & bit(at))))
      ++at;
    if (at == ranges.size() || bounds(ranges[at].range.src(0)).hi < 2) return std::nullopt;
    const auto has_range = [&](const UOp& u) { return (free.at(u.node()) & bit(at)) != 0; };
    // What is checked beside a store is checked by each core.
    const auto is_shared = [&](const UOp& root) {
      return has_range(root) || (root.op() == Op::Check && ordered);
    };
    if (!std::ranges::all_of(kernel().roots, is_shared)) return std::nullopt;
    RangeSet outer = 0;  // reduced
    for (size_t i = 0; i < at; ++i)
      if (kernel().ranges[i].kind == RangeKind::Loop) outer |= bit(i);
    for (const UOp& u : topological(kernel().roots))
      if (u.op() == Op::Reduce && has_range(u) && (free.at(u.src(0).node()) & outer) != 0)
        return std::nullopt;
    return at;
  }

  // Makes parts of the loop, for each of which all steps are walked, if it is long enough.
  bool cut_into_parts(size_t at) {
    const KernelRange range = kernel().ranges[at];
    if (!range.range.src(0).is_const()) return false;
    int64_t bytes = kPartBytesMin;  // from one of its elements to the next
    for (const AccessInfo& a : access_table(kernel()).accesses) {
      if (!a.store) continue;
      const int64_t stride = a.strides[at];
      if (stride <= 0 || stride == kOpaqueStride) return false;
      bytes = std::min(bytes, std::min(stride, kPartBytesMin) * a.node.src(1).dtype().bytes());
    }
    const int64_t size = range.range.src(0).const_int();
    const int64_t part =
        std::max(ceil_div(kPartBytesMin, bytes), ceil_div(size, target_.cores * kPartsOfCore));
    if (part >= size) return false;
    if (part > 1) apply({OptionKind::Tile, range.range.int_arg(), part, {}, 0, false});
    return true;
  }

  // Values that are read and stored in so many steps: more than a few in each are work too (an
  // optimiser's update).
  double moved_in(double steps) {
    double moved = 0;
    if (steps * static_cast<double>(kernel().params.size()) < kSharedWorkMin) return moved;
    for (const AccessInfo& a : access_table(kernel()).accesses) moved += a.elements;
    return moved;
  }

  void share() {
    if (target_.cores < 2) return;
    double work = 1;
    for (const KernelRange& r : kernel().ranges)
      work *= static_cast<double>(bounds(r.range.src(0)).hi);
    if (work < kSharedWorkMin && moved_in(work) < kValuesOfStep * kSharedWorkMin) return;
    const std::optional<size_t> shared = shared_loop();
    if (!shared) return;
    const bool is_beside_steps = (ordered_ranges(kernel()) & (bit(*shared) - 1)) != 0;
    if (is_beside_steps && !cut_into_parts(*shared)) return;
    const int64_t range = kernel().ranges[*shared].range.int_arg();
    if (*shared > 0) {
      std::vector<int64_t> order{range};
      for (size_t i = 0; i < *shared; ++i) order.push_back(kernel().ranges[i].range.int_arg());
      apply({OptionKind::Order, -1, 0, order, 0, false});
    }
    apply({OptionKind::Thread, range, 0, {}, 0, false});
  }

  OptimisedKernel made_;
  const Machine& target_;
};

}  // namespace

OptimisedKernel finish(OptimisedKernel made, const Machine& target) {
  return Finisher(std::move(made), target).run();
}

}  // namespace tiny

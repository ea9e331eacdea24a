#include "cost/border_questions.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "cost/borders.h"
#include "cost/estimate.h"
#include "cost/footprint.h"
#include "ir/affine.h"

namespace tiny {

double share_asked(const WalkedKernel& walk, const AccessInfo& a) {
  if (a.node.op() != Op::Load) return 0;
  const ViewArg& view = a.node.view_arg();
  double asked = 0;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == kSymbolicDim) continue;
    const UOp& index = a.node.src(i + 1);
    const Reach reach = reach_beyond(index, view.shape[i], {});
    const double beyond = reach.before + reach.behind;
    if (beyond == 0 || beyond > kCounted) continue;  // data says where
    const std::optional<Affine> sum = affine(index);
    double rows = 1, taps = 1;
    double across = 0, along = 0;  // from the first copy to the last, and of the walked taps
    bool has_copies = false, are_apart = true;
    for (size_t r = 0; r < walk.kernel.ranges.size(); ++r) {
      const KernelRange& range = walk.kernel.ranges[r];
      if (!reaches(index, range.range)) continue;
      has_copies |= !range.reduced && (walk.unrolled & bit(r)) != 0;
      if (!range.reduced) rows *= walk.extent(r);
      const bool is_walked = range.reduced && (walk.loops & bit(r)) != 0;
      if (is_walked) taps *= walk.extent(r);
      if (is_walked && turns_beyond(reach, sum, range.range) > kPeeledMax) are_apart = false;
      const double length = std::abs(static_cast<double>(a.strides[r])) * (walk.extent(r) - 1);
      if (walk.unrolled & bit(r)) across += length;
      if (is_walked) along += length;
    }
    if (!has_copies || are_apart || taps < double{kTapsMany}) continue;
    const bool is_split = taps >= double{kTapsSplit} && along > 0;
    const double straddled = is_split ? std::min(1.0, across / along) : 1;
    asked = std::max(asked, std::min(1.0, beyond / rows) * straddled);
  }
  return asked;
}

double masks_made(const WalkedKernel& walk, const AccessInfo& a) {
  if (a.node.op() != Op::Load) return 0;
  const ViewArg& view = a.node.view_arg();
  double most = 0;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const UOp& index = a.node.src(i + 1);
    const RangeSet free = walk.table.free[walk.sources(a.place)[i + 1]];
    if (!(free & walk.lanes) || !(free & walk.loops) || view.shape[i] == kSymbolicDim) continue;
    const Reach reach = reach_beyond(index, view.shape[i], walk.kernel.facts);
    if (reach.most() == 0) continue;
    const std::optional<Affine> sum = affine(index);
    double tiles = 1;
    bool has_tiles = false, has_taps = false;  // that make masks
    for (RangeSet set = free & walk.loops; set; set &= set - 1) {
      const auto r = static_cast<size_t>(std::countr_zero(set));
      const KernelRange& range = walk.kernel.ranges[r];
      if (!range.reduced) tiles *= walk.extent(r);
      if (turns_beyond(reach, sum, range.range) <= kPeeledMax) continue;
      (range.reduced ? has_taps : has_tiles) = true;
    }
    const double borders = (reach.before > 0 ? 1 : 0) + (reach.behind > 0 ? 1 : 0);
    const double share = has_tiles ? 1 : has_taps ? std::min(1.0, borders / tiles) : 0;
    most = std::max(most, share * walk.product(free & walk.unrolled));
  }
  return most;
}

}  // namespace tiny

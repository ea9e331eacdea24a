#include "codegen/choose/choose.h"

#include <algorithm>
#include <cstdint>

#include "ir/bounds.h"

namespace tiny {

namespace {

// Lanes of an index that becomes a narrower number are made in 32 bits where these hold them.
bool is_narrow_index(const UOp& cast) {
  const UOp& index = cast.src(0);
  if (cast.op() != Op::Cast || index.dtype() != kInt64 || cast.dtype().bytes() > 4) return false;
  const Interval range = bounds(index);
  return range.lo >= INT32_MIN && range.hi <= INT32_MAX &&
         std::ranges::none_of(topological({&index, 1}), [](const UOp& u) {
           return u.op() == Op::Load || u.op() == Op::Index || u.op() == Op::Reduce;
         });
}

}  // namespace

bool vectorises(const Kernel& kernel, const Target& target) {
  for (const UOp& u : topological(kernel.roots)) {
    if (!has(u.op(), kElementwise) || u.dtype() == kInt64 || u.src().empty()) continue;
    if (u.op() == Op::Less || u.op() == Op::LessEqual || u.op() == Op::Equal ||
        u.op() == Op::NotEqual) {
      if (u.src(0).dtype() == kInt64) continue;
    }
    const DType from = is_narrow_index(u) ? kInt32 : u.src(u.src().size() - 1).dtype();
    if (!target.vectorises(u.op(), from)) return false;
    if (u.op() == Op::Cast && !target.vectorises(u.op(), u.dtype())) return false;
  }
  return true;
}

}  // namespace tiny

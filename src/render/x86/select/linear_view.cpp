#include "render/x86/select/linear_view.h"

#include <algorithm>

#include "ir/dtype.h"

namespace tiny::x86 {

int64_t LinearView::const_value(LinearId id) const {
  const LinearOp& o = op(id);
  return int_of(o.dtype.element(), static_cast<uint64_t>(o.imm));
}

std::optional<uint64_t> LinearView::constant_mask(LinearId id) const {
  const LinearOp& o = op(id);
  const uint64_t all = o.dtype.lanes == 64 ? ~uint64_t{0} : (uint64_t{1} << o.dtype.lanes) - 1;
  if (o.op == Op::Const) return o.imm ? all : 0;
  if (o.op == Op::Broadcast && is_const(o.src[0])) return source(o, 0).imm ? all : 0;
  if (o.op != Op::LaneRange || !is_const(o.src[0]) || !is_const(o.src[1])) return std::nullopt;
  const int64_t lanes = o.dtype.lanes;
  const auto low = std::clamp<int64_t>(const_value(o.src[0]), 0, lanes);
  const auto high = std::clamp<int64_t>(const_value(o.src[1]), low, lanes);
  const auto below = [](int64_t n) { return n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
  return below(high) & ~below(low);
}

}  // namespace tiny::x86

#include "schedule/rewrite/store_once.h"

#include <vector>

#include "ir/build.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

ChangedGraph store_once(std::span<const UOp> roots, const IsFixed& is_fixed,
                        const Machine& target) {
  std::vector<uint8_t> is_stored(roots.front().graph().id_limit());
  for (const UOp& u : constant_frontier(roots, is_fixed, target))
    is_stored[u.id()] = has(u.op(), kElementwise) ? 1 : 0;
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (node.id() >= is_stored.size() || !is_stored[node.id()]) return now;
    const Shape& shape = shape_of(now);
    std::vector<bool> same(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) same[i] = !shape[i].is(1) && is_same_along(now, i);
    const UOp first = first_along(now, same);
    if (first == now) return now;
    return make_expand(first.graph().make(Op::Contiguous, {first}), shape);
  });
}

}  // namespace tiny

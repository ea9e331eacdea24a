#include "schedule/rewrite/drop_aliases.h"

#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

bool is_alias_for_gradients(const UOp& node) {
  return node.op() == Op::Alias && alias_kind(node) != AliasKind::Later && !has_memory(node);
}

ChangedGraph drop_aliases(std::span<const UOp> roots) {
  return rebuild_with_origins(roots, has_memory, [](const UOp&, const UOp& now) {
    return is_alias_for_gradients(now) ? UOp(now.src(0)) : now;
  });
}

}  // namespace tiny

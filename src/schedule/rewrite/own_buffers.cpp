#include "schedule/rewrite/own_buffers.h"

#include <algorithm>
#include <vector>

#include "schedule/schedule.h"
#include "shape/view.h"

namespace tiny {

namespace {

// What is stored in a buffer of its own, row-major where it is an output; of a concatenation each
// part into its place.
bool is_stored_whole(const UOp& u) {
  return u.op() == Op::Contiguous || u.op() == Op::Concat || u.op() == Op::Scatter ||
         u.op() == Op::Scan;
}

// The same elements in the same order, without the shape that they were given last.
UOp without_reshapes(const UOp& value) {
  UOp u = value;
  while (u.op() == Op::Reshape && !has_memory(u)) u = UOp(u.src(0));
  return u;
}

// A number that Variables make: shapes may be made of the very node.
bool is_size(const UOp& node) {
  return std::ranges::all_of(topological({&node, 1}, has_memory), [](const UOp& u) {
    return u.op() == Op::Variable || u.op() == Op::Const ||
           (has(u.op(), kElementwise) && !has_memory(u));
  });
}

}  // namespace

ChangedGraph in_own_buffers(std::span<const UOp> roots, size_t outputs) {
  std::vector<uint8_t> is_output(roots.front().graph().id_limit());
  for (const UOp& u : roots.first(outputs)) is_output[u.id()] = as_view(u) || is_size(u) ? 0 : 1;
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (!is_output[node.id()] || is_stored_whole(without_reshapes(now))) return now;
    return now.graph().make(Op::Contiguous, {now});
  });
}

ChangedGraph copy_what_is_stored(std::span<const UOp> roots, size_t outputs) {
  ChangedGraph out = unchanged(roots);
  NodeSet taken;
  for (UOp& root : std::span(out.roots).first(outputs)) {
    if (const UOp base = without_reshapes(root); is_stored_whole(base) && !has_memory(base))
      root = base;
    while (!is_stored_whole(root) || has_memory(root) || taken.contains(root.node()))
      root = root.graph().make(Op::Contiguous, {UOp(root)});
    taken.insert(root.node());
  }
  return out;
}

}  // namespace tiny

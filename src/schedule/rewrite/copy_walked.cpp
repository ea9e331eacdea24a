#include "schedule/rewrite/copy_walked.h"

#include <vector>

#include "schedule/schedule.h"

namespace tiny {

namespace {

constexpr int64_t kWalkedMin = 2 << 20;  // bytes of a large page

}  // namespace

ChangedGraph copy_walked(std::span<const UOp> roots, const IsFixed& is_fixed,
                         const MappedBytes& mapped_bytes) {
  const std::vector<UOp> order = topological(roots, has_memory);
  const std::vector<uint8_t> varies = varying(order, is_fixed);
  const std::vector<const UOp*> bases = bases_of(order);
  std::vector<uint8_t> walked(varies.size());
  for (const UOp& u : order) {
    if (!varies[u.id()] || has_memory(u) || u.op() == Op::Gather) continue;
    for (const UOp& s : u.src())
      if (const UOp& base = *bases[s.id()]; !varies[s.id()] && base.op() == Op::Buffer)
        walked[base.id()] = mapped_bytes(base) >= kWalkedMin ? 1 : 0;
  }
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    const bool copy = node.id() < walked.size() && walked[node.id()];
    return copy ? node.graph().make(Op::Contiguous, {now}) : now;
  });
}

}  // namespace tiny

#include "schedule/rewrite/constant_values.h"

#include <utility>

#include "schedule/rewrite/narrow_operands.h"
#include "schedule/scans.h"
#include "schedule/schedule.h"

namespace tiny {

std::vector<uint8_t> varying(std::span<const UOp> order, const IsFixed& is_fixed) {
  std::vector<uint8_t> varies(order.front().graph().id_limit());
  for (const UOp& u : order) {
    bool v = u.op() == Op::Variable || u.op() == Op::After || u.op() == Op::Call || is_of_scan(u);
    if (has_memory(u))
      v |= !is_fixed(u);
    else
      for (const UOp& s : u.src()) v |= varies[s.id()] != 0;
    varies[u.id()] = v ? 1 : 0;
  }
  return varies;
}

std::vector<const UOp*> bases_of(std::span<const UOp> order) {
  std::vector<const UOp*> bases(order.front().graph().id_limit());
  for (const UOp& u : order) {
    const bool is_view = has(u.op(), kMovement) && u.op() != Op::Pad && !has_memory(u);
    bases[u.id()] = is_view ? bases[u.src(0).id()] : &u;
  }
  return bases;
}

std::vector<UOp> constant_frontier(std::span<const UOp> roots, const IsFixed& is_fixed,
                                   const Machine& target) {
  const std::vector<UOp> order = topological(roots, has_memory);
  const std::vector<uint8_t> varies = varying(order, is_fixed);
  // What is made of constants and positions alone by a few operations: no buffer is as cheap.
  std::vector<uint8_t> light(varies.size());
  for (const UOp& u : order) {
    bool l = !has_memory(u) && !has(u.op(), kTranscendental) && u.op() != Op::ReduceAxis &&
             u.op() != Op::Scatter;
    if (!has_memory(u))
      for (const UOp& s : u.src()) l &= light[s.id()] != 0;
    light[u.id()] = l ? 1 : 0;
  }
  const std::vector<uint8_t> widens = widening_nodes(roots, target, varies);
  const std::vector<const UOp*> bases = bases_of(order);
  std::vector<uint8_t> is_found(varies.size());
  std::vector<UOp> frontier;
  for (const UOp& u : order) {
    if ((!varies[u.id()] && !widens[u.id()]) || has_memory(u)) continue;
    for (const UOp& s : u.src()) {
      // Views cost nothing, and constants are better left where kernels can see them.
      const UOp& base = *bases[s.id()];
      if (varies[s.id()] || has_memory(base) || light[base.id()] || widens[base.id()]) continue;
      if (!std::exchange(is_found[base.id()], 1)) frontier.push_back(base);
    }
  }
  return frontier;
}

std::vector<uint8_t> constant_nodes(std::span<const UOp> roots, const IsFixed& is_fixed) {
  const std::vector<UOp> order = topological(roots, has_memory);
  const std::vector<uint8_t> varies = varying(order, is_fixed);
  std::vector<uint8_t> flags(varies.size());
  for (const UOp& u : order)
    flags[u.id()] = !varies[u.id()] && (has_memory(u) || u.op() == Op::Contiguous) ? 1 : 0;
  return flags;
}

}  // namespace tiny

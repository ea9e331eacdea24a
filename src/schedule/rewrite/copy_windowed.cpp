#include "schedule/rewrite/copy_windowed.h"

#include <algorithm>

#include "schedule/schedule.h"
#include "schedule/window_rows.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// Cycles of an element that a copy turns, of 32 bits: measured on Zen 4, rows of 28 and 47 elements
// into 16 channels.
constexpr double kCopied = 0.6;

// The axis of what the windows are of that is to be innermost; none if a copy does not pay.
std::optional<size_t> worth_copying(const UOp& reduce, const WindowRows& rows,
                                    const Target& target) {
  if (!has_memory(below_movement(rows.source()))) return std::nullopt;
  const double vectors = elements_at_most(reduce) * static_cast<double>(reduce.dtype().bytes()) /
                         static_cast<double>(target.vector_bytes);
  const double copy = kCopied * elements_at_most(rows.source());
  const double saved = vectors * (apart_cost(rows, target) - turned_cost(rows, target));
  return saved > copy ? channels_of(rows) : std::nullopt;
}

// The same elements in memory of their own, in which `axis` is innermost.
UOp with_innermost(const UOp& value, size_t axis) {
  Ints order, back;
  for (size_t i = 0; i < shape_of(value).size(); ++i)
    if (i != axis) order.push_back(static_cast<int64_t>(i));
  order.push_back(static_cast<int64_t>(axis));
  back.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const UOp turned = make_permute(value, order);
  return make_permute(value.graph().make(Op::Contiguous, {turned}), back);
}

}  // namespace

ChangedGraph copy_windowed(std::span<const UOp> roots, const Target& target) {
  if (target.computes_in_groups()) return unchanged(roots);  // whose threads have an element each
  NodeTable<size_t> copied;  // by the node that takes windows: the axis to be innermost
  bool any = false;
  for (const UOp& u : topological(roots, has_memory)) {
    if (u.op() != Op::ReduceAxis) continue;
    const auto rows = window_rows(u);
    if (!rows) continue;
    if (const auto axis = worth_copying(u, *rows, target)) {
      copied[rows->unfold.node()] = *axis;
      any = true;
    }
  }
  if (!any) return unchanged(roots);
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    const size_t* axis = copied.find(node.node());
    if (!axis) return now;
    return make_unfold(with_innermost(now.src(0), *axis), unfolding(now));
  });
}

}  // namespace tiny

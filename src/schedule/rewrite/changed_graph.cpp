#include "schedule/rewrite/changed_graph.h"

#include <utility>

#include "ir/rebuild.h"
#include "schedule/schedule.h"

namespace tiny {

namespace {

// Notes what nodes that may get memory were made from.
class OriginNotes {
 public:
  OriginNotes(std::span<const UOp> roots, ChangedGraph& out)
      : wanted_(views_below(roots)), out_(out) {}

  // What takes the node's place: `made`, or a node apart where `made` stands for another already.
  UOp noted(const UOp& node, const UOp& made) {
    if (made == node || !wanted_.contains(node.node())) return made;
    UOp base = made;
    if (!has(node.op(), kMovement)) {
      while (base.op() == Op::Reshape && !has_memory(base)) base = UOp(base.src(0));
      if (has(base.op(), kMovement)) return apart(node, made);
    }
    if (is_taken(base, node)) return apart(node, made);
    out_.note(base, node);
    out_.note(made, node);
    return made;
  }

 private:
  bool is_taken(const UOp& base, const UOp& node) const {
    const UOp& origin = out_.origin_of(base);
    return origin == base ? wanted_.contains(base.node()) : !(origin == node);
  }
  UOp apart(const UOp& node, const UOp& made) {
    const UOp stored = made.graph().make(Op::Contiguous, {made});
    out_.note(stored, node);
    return stored;
  }

  const NodeSet wanted_;
  ChangedGraph& out_;
};

}  // namespace

void ChangedGraph::note(const UOp& made, const UOp& node) {
  if (origins_.emplace(made.node(), node).second) made_.push_back(made);
}

void ChangedGraph::become(ChangedGraph next) {
  for (auto& [node, origin] : next.origins_) origin = origin_of(origin);
  for (auto& [node, origin] : next.origins_) origins_.insert_or_assign(node, std::move(origin));
  made_.insert(made_.end(), next.made_.begin(), next.made_.end());
  roots = std::move(next.roots);
}

ChangedGraph unchanged(std::span<const UOp> roots) {
  ChangedGraph out;
  out.roots.assign(roots.begin(), roots.end());
  return out;
}

NodeSet views_below(std::span<const UOp> roots) {
  NodeSet found;
  for (const UOp& root : roots)
    for (const UOp* node = &root; found.insert(node->node()) && has(node->op(), kMovement);)
      node = &node->src(0);
  return found;
}

ChangedGraph rebuild_with_origins(
    std::span<const UOp> roots, bool (*stop)(const UOp&),
    const std::function<UOp(const UOp& node, const UOp& now)>& change) {
  ChangedGraph out;
  OriginNotes notes(roots, out);
  out.roots = rebuild(roots, stop, [&](const UOp& node, const UOp& now) {
    return notes.noted(node, change(node, now));
  });
  return out;
}

}  // namespace tiny

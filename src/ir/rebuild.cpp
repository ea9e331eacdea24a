#include "ir/rebuild.h"

#include <algorithm>

#include "ir/node_map.h"

namespace tiny {

std::vector<UOp> rebuild(std::span<const UOp> roots, bool (*stop)(const UOp&),
                         const std::function<UOp(const UOp& node, const UOp& now)>& change) {
  std::vector<UOp> out(roots.begin(), roots.end());
  if (out.empty()) return out;
  std::vector<UOp> rebuilt(out.front().graph().id_limit());
  for (const UOp& u : topological(roots, stop)) {
    UOp now = u;
    const auto is_changed = [&](const UOp& s) { return !(rebuilt[s.id()] == s); };
    if (!stop(u) && std::ranges::any_of(u.src(), is_changed)) {
      std::vector<UOp> src;
      src.reserve(u.src().size());
      for (const UOp& s : u.src()) src.push_back(rebuilt[s.id()]);
      now = u.with_src(src);
    }
    rebuilt[u.id()] = change(u, now);
  }
  for (UOp& root : out) root = rebuilt[root.id()];
  return out;
}

std::vector<UOp> copy_nodes(std::span<const UOp> roots, Graph& graph) {
  std::vector<UOp> out(roots.begin(), roots.end());
  if (out.empty()) return out;
  const std::vector<UOp> order = topological(roots);
  NodeTable<UOp> copied;
  copied.reserve(order.size());
  std::vector<UOp> src;
  for (const UOp& u : order) {
    src.clear();
    for (const UOp& s : u.src()) src.push_back(copied.at(s.node()));
    copied.emplace(u.node(), graph.make(u.op(), src, u.arg(), u.dtype()));
  }
  for (UOp& root : out) root = UOp(copied.at(root.node()));
  return out;
}

}  // namespace tiny

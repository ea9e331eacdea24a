#include "ir/rebuild.h"

#include <algorithm>

#include "ir/node_map.h"

namespace tiny {

std::vector<UOp> map_nodes(std::span<const UOp> roots, bool (*stop)(const UOp&),
                           const MakeNode& make) {
  const std::vector<UOp> order = topological(roots, stop);
  NodeTable<UOp> mapped;
  mapped.reserve(order.size());
  std::vector<UOp> src;
  for (const UOp& u : order) {
    src.clear();
    if (!stop || !stop(u))
      for (const UOp& s : u.src()) src.push_back(mapped.at(s.node()));
    const OriginScope scope(u);
    mapped.emplace(u.node(), make(u, src));
  }
  std::vector<UOp> out;
  out.reserve(roots.size());
  for (const UOp& root : roots) out.push_back(mapped.at(root.node()));
  return out;
}

std::vector<UOp> rebuild(std::span<const UOp> roots, bool (*stop)(const UOp&),
                         const std::function<UOp(const UOp& node, const UOp& now)>& change) {
  return map_nodes(roots, stop, [&](const UOp& u, std::vector<UOp>& src) {
    return change(u, src.empty() || std::ranges::equal(u.src(), src) ? u : u.with_src(src));
  });
}

std::vector<UOp> copy_nodes(std::span<const UOp> roots, Graph& graph) {
  return map_nodes(roots, nullptr, [&](const UOp& u, std::vector<UOp>& src) {
    return graph.make(u.op(), src, u.arg(), u.dtype());
  });
}

}  // namespace tiny

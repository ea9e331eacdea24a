#include "ir/rebuild.h"

#include <algorithm>

#include "ir/node_map.h"
#include "ir/source_places.h"

namespace tiny {

std::vector<UOp> map_nodes(std::span<const UOp> roots, bool (*stop)(const UOp&),
                           const MakeNode& make) {
  const std::vector<UOp> order = topological(roots, stop);
  const SourcePlaces places(order, stop);
  std::vector<uint32_t> at;
  at.reserve(roots.size());
  for (const UOp& root : roots) at.push_back(places.place(root));
  std::vector<UOp> mapped, src;
  mapped.reserve(order.size());
  auto next = places.all().begin();
  for (const UOp& u : order) {
    src.clear();
    if (!stop || !stop(u))
      for (size_t i = u.src().size(); i > 0; --i) src.push_back(mapped[*next++]);
    const OriginScope scope(u);
    mapped.push_back(make(u, src));
  }
  std::vector<UOp> out;
  out.reserve(roots.size());
  for (const uint32_t root : at) out.push_back(mapped[root]);
  return out;
}

std::vector<UOp> rebuild(std::span<const UOp> roots, bool (*stop)(const UOp&),
                         const std::function<UOp(const UOp& node, const UOp& now)>& change) {
  // Most nodes stay: only the others are looked up.
  const std::vector<UOp> order = topological(roots, stop);
  std::vector<uint8_t> changes(roots.empty() ? 0 : roots.front().graph().id_limit());
  NodeTable<UOp> changed;
  const auto now = [&](const UOp& u) -> const UOp& {
    return changes[u.id()] ? changed.at(u.node()) : u;
  };
  std::vector<UOp> src;
  for (const UOp& u : order) {
    const bool is_made_anew = !(stop && stop(u)) && std::ranges::any_of(u.src(), [&](const UOp& s) {
      return changes[s.id()] != 0;
    });
    const OriginScope scope(u);
    src.clear();
    if (is_made_anew)
      for (const UOp& s : u.src()) src.push_back(now(s));
    UOp made = change(u, is_made_anew ? u.with_src(src) : u);
    if (made == u) continue;
    changes[u.id()] = 1;
    changed.emplace(u.node(), std::move(made));
  }
  std::vector<UOp> out;
  out.reserve(roots.size());
  for (const UOp& root : roots) out.push_back(now(root));
  return out;
}

std::vector<UOp> copy_nodes(std::span<const UOp> roots, Graph& graph) {
  return map_nodes(roots, nullptr, [&](const UOp& u, std::vector<UOp>& src) {
    return graph.make(u.op(), src, u.arg(), u.dtype());
  });
}

}  // namespace tiny

#include "schedule/rewrite/same_loops.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/node_map.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

namespace {

using Kind = ScanPart::Kind;

// What a loop is made of.
struct Body {
  Ref<const ScanLoop> loop;
  std::vector<UOp> stores;    // sources of its results
  std::vector<UOp> nodes;     // its ScanSteps and what is made of them, sources first
  std::vector<UOp> states;    // ScanSteps, by index: what no step reads has none
  size_t needs = 0;           // behind the last node outside that it needs, in the order
  size_t results = SIZE_MAX;  // where its first result is
  const UOp& state_value(size_t i) const {
    return stores[loop->outputs + scan_part(states[i]).index].src(0);
  }
};

// What steps begin with and see of which direction, as far as the states depend on it.
using Key = std::vector<std::pair<const Node*, bool>>;

// A loop for several.
struct Merged {
  Ref<ScanLoop> loop;
  std::vector<std::pair<UOp, bool>>
      outputs;              // values in the first one's steps, and whether reverse
  std::vector<UOp> stores;  // of those values and of the states
};

class Merger {
 public:
  explicit Merger(std::span<const UOp> roots) : roots_(roots) {
    find_bodies();
    std::map<Key, std::vector<size_t>> hosts;
    for (size_t b = 0; b < bodies_.size(); ++b) {
      if (bodies_[b].stores.empty() || bodies_[b].states.empty()) continue;
      std::vector<size_t>& same = hosts[key_of(bodies_[b])];
      const auto host = std::ranges::find_if(same, [&](size_t a) { return merge(a, b); });
      if (host == same.end()) same.push_back(b);
    }
  }

  ChangedGraph run() {
    if (merged_.empty()) return unchanged(roots_);
    std::vector<UOp> roots;  // the stores, before the results that need them
    for (auto& [host, merged] : merged_) {
      complete(bodies_[host], merged);
      roots.insert(roots.end(), merged.stores.begin(), merged.stores.end());
    }
    const size_t stores = roots.size();
    roots.insert(roots.end(), roots_.begin(), roots_.end());
    NodeTable<UOp> made;  // of the stores
    ChangedGraph out = rebuild_with_origins(roots, has_memory, [&](const UOp& u, const UOp& now) {
      const bool is_part = u.op() == Op::ScanStep || u.op() == Op::ScanStore || u.op() == Op::Scan;
      if (!is_part || has_memory(u)) return now;
      const auto place = places_.find(scan_part(u).loop.get());
      const auto merged = place == places_.end() ? merged_.end() : merged_.find(place->second.host);
      if (merged == merged_.end()) return now;
      ScanPart part = scan_part(u);
      part.loop = merged->second.loop;
      if (u.op() == Op::ScanStep) return make_scan_step(now.src(0), std::move(part));
      if (u.op() == Op::ScanStore) {
        const UOp store = make_scan_store(now.src(0), std::move(part));
        made.emplace(u.node(), store);
        return store;
      }
      const std::vector<size_t>& to =
          part.kind == Kind::Last ? place->second.states : place->second.outputs;
      if (!to.empty()) part.index = to[part.index];
      std::vector<UOp> sources;
      for (const UOp& s : merged->second.stores) sources.push_back(*made.find(s.node()));
      return make_scan(sources, std::move(part));
    });
    out.roots.erase(out.roots.begin(), out.roots.begin() + static_cast<ptrdiff_t>(stores));
    return out;
  }

 private:
  // Where a loop's results are: its own, where these are empty.
  struct Place {
    size_t host;
    std::vector<size_t> outputs, states;
  };

  void find_bodies() {
    const std::vector<UOp> order = topological(roots_, has_memory);
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> owner(order.front().graph().id_limit(), kNone);
    std::vector<uint32_t> position(owner.size());
    std::unordered_map<const ScanLoop*, uint32_t> index;
    const auto body_of = [&](const UOp& part) {
      const auto [at, is_new] = index.try_emplace(scan_part(part).loop.get(), bodies_.size());
      if (is_new) bodies_.emplace_back().loop = scan_part(part).loop;
      return at->second;
    };
    for (size_t k = 0; k < order.size(); ++k) {
      const UOp& u = order[k];
      position[u.id()] = static_cast<uint32_t>(k);
      if (has_memory(u)) continue;
      if (u.op() == Op::Scan) {
        if (scan_part(u).loop->is_counted) continue;
        Body& body = bodies_[body_of(u)];
        body.results = std::min(body.results, k);
        if (body.stores.empty()) body.stores.assign(u.src().begin(), u.src().end());
        continue;
      }
      const bool is_part = u.op() == Op::ScanStep || u.op() == Op::ScanStore;
      uint32_t mine = kNone;
      if (is_part && !scan_part(u).loop->is_counted) mine = body_of(u);
      for (const UOp& s : u.src())
        if (mine == kNone) mine = owner[s.id()];
      if (mine == kNone) continue;
      owner[u.id()] = mine;
      Body& body = bodies_[mine];
      body.nodes.push_back(u);
      if (u.op() == Op::ScanStep && scan_part(u).kind == Kind::State) body.states.push_back(u);
      for (const UOp& s : u.src())
        if (owner[s.id()] != mine) body.needs = std::max<size_t>(body.needs, position[s.id()] + 1);
    }
    for (Body& body : bodies_)
      std::ranges::sort(body.states, {}, [](const UOp& u) { return scan_part(u).index; });
    std::ranges::sort(bodies_, {}, &Body::results);
    for (size_t b = 0; b < bodies_.size(); ++b) places_[bodies_[b].loop.get()] = {b, {}, {}};
  }

  static Key key_of(const Body& body) {
    Key key;
    NodeSet needed;
    for (size_t i = 0; i < body.states.size(); ++i) {
      key.emplace_back(body.states[i].src(0).node(), false);
      needed.insert(body.state_value(i).node());
    }
    const auto states = static_cast<ptrdiff_t>(key.size());
    for (size_t k = body.nodes.size(); k-- > 0;) {
      const UOp& u = body.nodes[k];
      if (!needed.contains(u.node())) continue;
      if (u.op() == Op::ScanStep) {
        if (scan_part(u).kind == Kind::Element)
          key.emplace_back(u.src(0).node(), scan_part(u).reverse);
        continue;
      }
      for (const UOp& s : u.src()) needed.insert(s.node());
    }
    std::sort(key.begin() + states, key.end());
    return key;
  }

  // A ScanStep of `from` as one of `to`.
  static UOp step_in(const Body& to, const UOp& step) {
    for (const UOp& u : to.nodes) {
      if (u.op() != Op::ScanStep || scan_part(u).kind != Kind::Element) continue;
      if (u.src(0) == step.src(0) && scan_part(u).reverse == scan_part(step).reverse) return u;
    }
    ScanPart part = scan_part(step);
    part.loop = to.loop;
    return make_scan_step(step.src(0), std::move(part));
  }

  // Whether the loop `b` is one with `a`, which has its results then.
  bool merge(size_t a, size_t b) {
    const Body &to = bodies_[a], &from = bodies_[b];
    if (!(to.loop->count == from.loop->count) || from.loop->states != from.states.size() ||
        from.needs > to.results || to.needs > from.results)
      return false;
    NodeTable<UOp> now;
    for (size_t i = 0; i < from.states.size(); ++i)
      now.emplace(from.states[i].node(), to.states[i]);
    const auto seen = [&](const UOp& u) {
      const UOp* found = now.find(u.node());
      return found ? *found : u;
    };
    for (const UOp& u : from.nodes) {
      if (now.contains(u.node()) || u.op() == Op::ScanStore) continue;
      if (u.op() == Op::ScanStep) {
        now.emplace(u.node(), step_in(to, u));
        continue;
      }
      std::vector<UOp> src;
      for (const UOp& s : u.src()) src.push_back(seen(s));
      now.emplace(u.node(), u.with_src(src));
    }
    for (size_t i = 0; i < from.states.size(); ++i)
      if (!(seen(from.state_value(i)) == to.state_value(i))) return false;
    Merged& merged = merged_[a];
    if (merged.outputs.empty())
      for (size_t i = 0; i < to.loop->outputs; ++i)
        merged.outputs.emplace_back(to.stores[i].src(0), scan_part(to.stores[i]).reverse);
    Place place{a, {}, {}};
    for (size_t i = 0; i < from.loop->outputs; ++i) {
      const std::pair<UOp, bool> output{seen(from.stores[i].src(0)),
                                        scan_part(from.stores[i]).reverse};
      const auto found = std::ranges::find(merged.outputs, output);
      place.outputs.push_back(static_cast<size_t>(found - merged.outputs.begin()));
      if (found == merged.outputs.end()) merged.outputs.push_back(output);
    }
    for (const UOp& state : to.states) place.states.push_back(scan_part(state).index);
    places_[from.loop.get()] = std::move(place);
    return true;
  }

  // The loop itself, and its stores as nodes of the first one.
  static void complete(const Body& host, Merged& merged) {
    merged.loop = make_ref<ScanLoop>();
    merged.loop->count = host.loop->count;
    merged.loop->states = host.loop->states;
    const auto own = host.stores.begin() + static_cast<ptrdiff_t>(host.loop->outputs);
    merged.stores.assign(host.stores.begin(), own);
    for (size_t i = host.loop->outputs; i < merged.outputs.size(); ++i)
      merged.stores.push_back(make_scan_store(
          merged.outputs[i].first, {host.loop, Kind::Output, i, merged.outputs[i].second}));
    merged.stores.insert(merged.stores.end(), own, host.stores.end());
    merged.loop->outputs = merged.outputs.size();
  }

  std::span<const UOp> roots_;
  std::vector<Body> bodies_;  // by their first result
  std::unordered_map<const ScanLoop*, Place> places_;
  std::map<size_t, Merged> merged_;  // by the body of the first
};

}  // namespace

ChangedGraph same_loops(std::span<const UOp> roots) {
  return Merger(roots).run();
}

}  // namespace tiny

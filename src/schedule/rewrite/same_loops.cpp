#include "schedule/rewrite/same_loops.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/node_map.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

namespace {

using Kind = ScanPart::Kind;

// A value of each step, and whether the last one's comes first.
using Output = std::pair<UOp, bool>;

// What a loop is made of, and which loop has its results in the end.
struct Body {
  Ref<const ScanLoop> loop;
  std::vector<UOp> stores;    // sources of its results
  std::vector<UOp> nodes;     // its ScanSteps and what is made of them, sources first
  std::vector<UOp> states;    // ScanSteps, by index: what no step reads has none
  size_t needs = 0;           // behind the last node outside that it needs, in the order
  size_t results = SIZE_MAX;  // where its first result is
  uint32_t host = 0;          // the body of the first of those that become one
  // Of one that is another's: where its results are.
  std::vector<size_t> outputs_at, states_at;
  // Of one that has others': the loop for all, its outputs as values of its own steps, and the
  // stores of these and of the states.
  Ref<ScanLoop> merged;
  std::vector<Output> outputs;
  std::vector<UOp> merged_stores;

  const UOp& state_value(size_t i) const {
    return stores[loop->outputs + scan_part(states[i]).index].src(0);
  }
};

class Merger {
 public:
  explicit Merger(std::span<const UOp> roots) : roots_(roots) {
    find_bodies();
    std::unordered_map<uint64_t, std::vector<uint32_t>> hosts;
    for (const uint32_t b : with_results_) {
      if (bodies_[b].states.empty()) continue;
      std::vector<uint32_t>& same = hosts[hash_of(bodies_[b])];
      if (std::ranges::none_of(same, [&](uint32_t a) { return merge(a, b); })) same.push_back(b);
    }
  }

  ChangedGraph run() {
    // The stores, before the results that need them: a loop needs results of earlier ones alone.
    std::vector<UOp> roots;
    for (const uint32_t b : with_results_) {
      Body& body = bodies_[b];
      if (body.outputs.empty()) continue;
      complete(body);
      roots.insert(roots.end(), body.merged_stores.begin(), body.merged_stores.end());
    }
    if (roots.empty()) return unchanged(roots_);
    const auto stores = static_cast<ptrdiff_t>(roots.size());
    roots.insert(roots.end(), roots_.begin(), roots_.end());
    ChangedGraph out = rebuild_with_origins(
        roots, has_memory, [&](const UOp& u, const UOp& now) { return part(u, now); });
    out.roots.erase(out.roots.begin(), out.roots.begin() + stores);
    return out;
  }

 private:
  void find_bodies() {
    const std::vector<UOp> order = topological(roots_, has_memory);
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> owner(order.front().graph().id_limit(), kNone);
    std::vector<uint32_t> position(owner.size());
    for (uint32_t k = 0; k < order.size(); ++k) {
      const UOp& u = order[k];
      position[u.id()] = k;
      if (has_memory(u)) continue;
      const bool is_part = u.op() == Op::ScanStep || u.op() == Op::ScanStore || u.op() == Op::Scan;
      uint32_t mine = is_part && !scan_part(u).loop->is_counted ? body_of(u) : kNone;
      if (u.op() == Op::Scan) {
        if (mine == kNone || bodies_[mine].results != SIZE_MAX) continue;
        bodies_[mine].results = k;
        bodies_[mine].stores.assign(u.src().begin(), u.src().end());
        with_results_.push_back(mine);
        continue;
      }
      for (const UOp& s : u.src())
        if (mine == kNone) mine = owner[s.id()];
      if (mine == kNone) continue;
      owner[u.id()] = mine;
      Body& body = bodies_[mine];
      body.nodes.push_back(u);
      if (u.op() == Op::ScanStep && scan_part(u).kind == Kind::State) {
        body.states.resize(std::max(body.states.size(), scan_part(u).index + 1));
        body.states[scan_part(u).index] = u;
      }
      for (const UOp& s : u.src())
        if (owner[s.id()] != mine) body.needs = std::max<size_t>(body.needs, position[s.id()] + 1);
    }
    for (Body& body : bodies_) std::erase_if(body.states, [](const UOp& u) { return !u; });
  }

  uint32_t body_of(const UOp& part) {
    const auto count = static_cast<uint32_t>(bodies_.size());
    const auto [at, is_new] = index_.try_emplace(scan_part(part).loop.get(), count);
    if (is_new) {
      bodies_.emplace_back().loop = scan_part(part).loop;
      bodies_.back().host = count;
    }
    return at->second;
  }

  // Of what the states begin with, and of what they depend on that steps see, in any order.
  static uint64_t hash_of(const Body& body) {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
    const auto mixed = [](const UOp& u, uint64_t more) {
      const uint64_t h = (u.id() + more) * kOdd;
      return (h ^ (h >> 32)) * kOdd;
    };
    uint64_t hash = 0;
    NodeSet needed;
    for (size_t i = 0; i < body.states.size(); ++i) {
      hash = hash * kOdd + mixed(body.states[i].src(0), 0);
      needed.insert(body.state_value(i).node());
    }
    for (size_t k = body.nodes.size(); k-- > 0;) {
      const UOp& u = body.nodes[k];
      if (!needed.contains(u.node())) continue;
      if (u.op() != Op::ScanStep) {
        for (const UOp& s : u.src()) needed.insert(s.node());
      } else if (scan_part(u).kind == Kind::Element) {
        hash += mixed(u.src(0), scan_part(u).reverse ? kOdd : 1);
      }
    }
    return hash;
  }

  // A ScanStep of another loop as one of `to`.
  static UOp step_in(const Body& to, const UOp& step) {
    const auto is_same = [&](const UOp& u) {
      return u.op() == Op::ScanStep && scan_part(u).kind == Kind::Element &&
             u.src(0) == step.src(0) && scan_part(u).reverse == scan_part(step).reverse;
    };
    const auto found = std::ranges::find_if(to.nodes, is_same);
    if (found != to.nodes.end()) return *found;
    ScanPart part = scan_part(step);
    part.loop = to.loop;
    return make_scan_step(step.src(0), std::move(part));
  }

  // Whether the body `b` is one with `a`, which has its results then.
  bool merge(uint32_t a, uint32_t b) {
    Body &to = bodies_[a], &from = bodies_[b];
    if (!(to.loop->count == from.loop->count) || from.loop->states != from.states.size() ||
        to.states.size() != from.states.size() || from.needs > to.results ||
        to.needs > from.results)
      return false;
    NodeTable<UOp> now;
    for (size_t i = 0; i < from.states.size(); ++i)
      now.emplace(from.states[i].node(), to.states[i]);
    const auto seen = [&](const UOp& u) {
      const UOp* found = now.find(u.node());
      return found ? *found : u;
    };
    std::vector<UOp> src;
    for (const UOp& u : from.nodes) {
      if (now.contains(u.node()) || u.op() == Op::ScanStore) continue;
      src.clear();
      for (const UOp& s : u.src()) src.push_back(seen(s));
      now.emplace(u.node(), u.op() == Op::ScanStep ? step_in(to, u) : u.with_src(src));
    }
    for (size_t i = 0; i < from.states.size(); ++i)
      if (!(from.states[i].src(0) == to.states[i].src(0)) ||
          !(seen(from.state_value(i)) == to.state_value(i)))
        return false;
    if (to.outputs.empty())
      for (size_t i = 0; i < to.loop->outputs; ++i) to.outputs.push_back(output(to.stores[i]));
    for (size_t i = 0; i < from.loop->outputs; ++i) {
      const Output made{seen(from.stores[i].src(0)), scan_part(from.stores[i]).reverse};
      const auto found = std::ranges::find(to.outputs, made);
      from.outputs_at.push_back(static_cast<size_t>(found - to.outputs.begin()));
      if (found == to.outputs.end()) to.outputs.push_back(made);
    }
    for (const UOp& state : to.states) from.states_at.push_back(scan_part(state).index);
    from.host = a;
    return true;
  }
  static Output output(const UOp& store) { return {store.src(0), scan_part(store).reverse}; }

  // The loop for all, and its stores as nodes of the first one's steps.
  static void complete(Body& host) {
    host.merged = make_ref<ScanLoop>();
    host.merged->count = host.loop->count;
    host.merged->states = host.loop->states;
    host.merged->outputs = host.outputs.size();
    host.merged_stores = host.stores;
    for (size_t i = host.loop->outputs; i < host.outputs.size(); ++i) {
      const auto& [value, reverse] = host.outputs[i];
      host.merged_stores.insert(host.merged_stores.begin() + static_cast<ptrdiff_t>(i),
                                make_scan_store(value, {host.loop, Kind::Output, i, reverse}));
    }
  }

  // What takes the place of a node, which is `now` over its changed sources.
  UOp part(const UOp& u, const UOp& now) {
    const bool is_part = u.op() == Op::ScanStep || u.op() == Op::ScanStore || u.op() == Op::Scan;
    const auto at = is_part && !has_memory(u) ? index_.find(scan_part(u).loop.get()) : index_.end();
    if (at == index_.end()) return now;
    const Body& own = bodies_[at->second];
    const Body& host = bodies_[own.host];
    if (!host.merged) return now;
    ScanPart part = scan_part(u);
    part.loop = host.merged;
    if (u.op() == Op::ScanStep) return make_scan_step(now.src(0), std::move(part));
    if (u.op() == Op::ScanStore)
      return stores_[u.node()] = make_scan_store(now.src(0), std::move(part));
    if (own.host != at->second)
      part.index = (part.kind == Kind::Last ? own.states_at : own.outputs_at)[part.index];
    std::vector<UOp> sources;
    for (const UOp& s : host.merged_stores) sources.push_back(stores_.at(s.node()));
    return make_scan(sources, std::move(part));
  }

  std::span<const UOp> roots_;
  std::vector<Body> bodies_;
  std::vector<uint32_t> with_results_;  // of these, in the order of their first results
  std::unordered_map<const ScanLoop*, uint32_t> index_;
  NodeTable<UOp> stores_;  // as they are made anew
};

}  // namespace

ChangedGraph same_loops(std::span<const UOp> roots) {
  return Merger(roots).run();
}

}  // namespace tiny

#include "schedule/hazards.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/sort.h"
#include "schedule/live_bytes.h"
#include "schedule/lower.h"
#include "shape/shape.h"
#include "shape/strides.h"
#include "shape/view.h"

namespace tiny {

namespace {

using Elements = std::pair<int64_t, int64_t>;

// One buffer that is written: its writes in the order of their versions.
struct Slot {
  std::vector<size_t> writers;              // kernels
  std::vector<std::optional<View>> places;  // what each writes; none: anything
};

// What a load reads, at most; none if it reads anything, or nothing by itself.
std::optional<View> place_of(const UOp& load) {
  if (!load) return std::nullopt;
  const ViewArg& arg = load.view_arg();
  const auto is_known = [](const Ints& numbers) {
    return std::ranges::count(numbers, kSymbolicDim) == 0;
  };
  if (!is_known(arg.shape) || !is_known(arg.strides) || arg.offset == kSymbolicDim)
    return std::nullopt;
  return View{to_shape(arg.shape), to_shape(arg.strides), arg.offset};
}

// Whether the read may find what the write leaves.
bool overlap(const ScheduledKernel::Read& read, const std::optional<View>& written) {
  if (read.elements.first > read.elements.second) return false;  // it only waits
  const auto place = place_of(read.load);
  if (place && written) return !are_apart(*place, *written);
  if (!written) return true;
  const Elements elements = extent(*written);
  return read.elements.first <= elements.second && elements.first <= read.elements.second;
}

constexpr size_t kNone = SIZE_MAX;
using Ready = std::set<std::pair<size_t, size_t>>;  // units behind what they are first needed for
constexpr size_t kChainMax = 4;  // units that are looked at together for what they free

// A read of an old version that no order serves.
struct Conflict {
  size_t reader = 0;
  size_t read = 0;
};

class Orderer {
 public:
  // `saves`: what frees memory runs as soon as it can.
  Orderer(Schedule& schedule, Decision& decision, std::span<const UOp> outputs, bool saves)
      : schedule_(schedule), decision_(decision), outputs_(outputs), saves_(saves) {}

  void run() {
    while (true) {
      index_kernels();
      if (slots_.empty() && !saves_) return;
      const std::vector<Conflict> conflicts = sort();
      if (conflicts.empty()) break;
      for (const Conflict& conflict : conflicts) copy_version(conflict);
    }
    std::vector<ScheduledKernel> sorted;
    for (size_t k : order_) sorted.push_back(std::move(schedule_.kernels[k]));
    schedule_.kernels = std::move(sorted);
  }

 private:
  // Kernels have one store each until they are joined side by side, which comes later.
  const UOp& root(size_t kernel) const { return schedule_.kernels[kernel].stores.front().value; }

  // Who makes what, and the chain of versions of each buffer.
  void index_kernels() {
    makers_.clear();
    rooted_.clear();
    slots_.clear();
    number_.clear();
    for (size_t k = 0; k < schedule_.kernels.size(); ++k) {
      rooted_[root(k).node()].push_back(k);
      // What copies a value does not make it.
      if (!decision_.is_copied(root(k), schedule_.kernels[k].stores.front().destination))
        makers_[root(k).node()].push_back(k);
      if (schedule_.kernels[k].call)  // all of its results
        for (const ScheduledStore& s : schedule_.kernels[k].stores)
          if (!(s.value == root(k))) makers_[s.value.node()].push_back(k);
      // A part of a concatenation makes it, too.
      const UOp& destination = schedule_.kernels[k].stores.front().destination;
      if (!(destination == root(k)) && !has_memory(destination))
        makers_[destination.node()].push_back(k);
    }
    find_units();
    for (const UOp& u : decision_.order) {
      if (u.op() != Op::After || has_memory(u)) continue;
      const auto maker = makers_.find(u.src(1).node());
      if (maker == makers_.end()) continue;  // nothing is written
      Slot& slot = slots_[decision_.slot(u).node()];
      slot.writers.push_back(maker->second.front());
      slot.places.push_back(written(u.src(1)));
      number_[u.node()] = slot.writers.size();
    }
  }

  std::optional<View> written(const UOp& assign) const {
    View view = as_view(assign.src(0), decision_.stored)->view;
    const bool numbers = all_const(view.shape) && all_const(view.strides) && view.offset.is_const();
    return numbers ? std::optional(std::move(view)) : std::nullopt;
  }

  // Kernels of one scan stay together: the first stands for all.
  void edge(size_t before, size_t after) {
    before = unit_[before];
    after = unit_[after];
    if (before == after) return;
    after_[before].push_back(after);
    ++waits_[after];
  }

  void find_units() {
    unit_.resize(schedule_.kernels.size());
    members_.assign(unit_.size(), {});
    std::unordered_map<const ScanLoop*, size_t> firsts;
    for (size_t k = 0; k < unit_.size(); ++k) {
      const ScheduledKernel& kernel = schedule_.kernels[k];
      const ScanLoop* body = kernel.segment ? kernel.segment : kernel.scan;
      unit_[k] = body ? firsts.try_emplace(body, k).first->second : k;
      members_[unit_[k]].push_back(k);
    }
    if (firsts.empty()) return;
    for (const UOp& u : decision_.order)
      if (u.op() == Op::Scan && !has_memory(u))
        for (const ScanLoop* body : {decision_.bodies.segment(u), scan_part(u).loop.get()})
          if (const auto first = firsts.find(body); first != firsts.end())
            makers_[u.node()].push_back(first->second);
  }

  // Not where it copies the value, which another kernel stores, to a part of a concatenation.
  bool makes(size_t kernel, const UOp& value) const {
    const UOp& destination = schedule_.kernels[kernel].stores.front().destination;
    return !(root(kernel) == value) || destination == value || has_memory(destination);
  }

  // Edges from and to one read; false if the kernel overwrites what it reads itself.
  bool add_read(size_t kernel, size_t number) {
    const ScheduledKernel::Read& read = schedule_.kernels[kernel].reads[number];
    const auto slot = slots_.find(decision_.slot(read.base).node());
    if (slot == slots_.end()) {
      const UOp& base = read.base.op() == Op::ScanStep ? read.base.src(0) : read.base;
      // A part of a value that is made of what was there waits for the parts before it.
      const bool is_part = schedule_.kernels[kernel].stores.front().destination == base;
      if (const auto maker = makers_.find(base.node()); maker != makers_.end())
        for (size_t m : maker->second)
          if ((m < kernel || !is_part) && makes(m, base)) edge(m, kernel);
      return true;
    }
    const auto at = number_.find(read.base.node());
    const size_t version = at == number_.end() ? 0 : at->second;
    const Slot& s = slot->second;
    if (version > 0) edge(s.writers[version - 1], kernel);
    for (size_t w = version; w < s.writers.size(); ++w) {
      if (!overlap(read, s.places[w])) continue;
      if (s.writers[w] == kernel) {
        // The next writes come later anyway.
        return read.in_place;
      }
      edge(kernel, s.writers[w]);
      late_.push_back({{kernel, number}, s.writers[w]});
      break;
    }
    return true;
  }

  // Fills order_, or finds what stands in its way: of each kernel, or of each cycle, one conflict,
  // since the copy for it may serve others.
  std::vector<Conflict> sort() {
    const size_t count = schedule_.kernels.size();
    after_.assign(count, {});
    waits_.assign(count, 0);
    late_.clear();
    order_.clear();
    for (const auto& [node, slot] : slots_)
      for (size_t w = 1; w < slot.writers.size(); ++w) edge(slot.writers[w - 1], slot.writers[w]);
    std::vector<Conflict> conflicts;
    for (size_t k = 0; k < count; ++k)
      for (size_t r = 0; r < schedule_.kernels[k].reads.size(); ++r)
        if (!add_read(k, r)) {
          conflicts.push_back({k, r});
          break;
        }
    if (!conflicts.empty()) return conflicts;
    std::vector<size_t> waits = waits_;
    std::optional<LiveBytes> live;
    if (saves_) live.emplace(schedule_.kernels, unit_, decision_, outputs_);
    const std::vector<size_t> ends = first_ends();
    Ready ready;
    for (size_t k = 0; k < count; ++k)
      if (waits[k] == 0 && unit_[k] == k) ready.emplace(ends[k], k);
    while (!ready.empty()) {
      const auto at = live ? first_that_frees(ready, *live, waits) : ready.begin();
      const size_t k = at->second;
      ready.erase(at);
      if (live) live->run(k);
      order_.insert(order_.end(), members_[k].begin(), members_[k].end());
      for (size_t next : after_[k])
        if (--waits[next] == 0) ready.emplace(ends[next], next);
    }
    if (order_.size() == count) return {};
    // Some read waits for a write that must come before it.
    const std::vector<size_t> cycles = find_cycles(waits);
    std::vector<uint8_t> is_open(count, 1);
    for (const auto& [conflict, writer] : late_) {
      const size_t cycle = cycles[unit_[conflict.reader]];
      if (cycle != kNone && cycle == cycles[unit_[writer]] && std::exchange(is_open[cycle], 0))
        conflicts.push_back(conflict);
    }
    invariant(!conflicts.empty(), "versions can be ordered once old ones are copied");
    return conflicts;
  }

  // Of each unit the first of the units with nothing after them that waits for it, these counted
  // from the one behind the fewest others in a row. What runs in this order is done with a layer's
  // parameter, its gradient and the layer's values before it goes on to the layer before.
  std::vector<size_t> first_ends() const {
    const size_t count = waits_.size();
    std::vector<std::vector<size_t>> before(count);
    std::vector<size_t> waits = waits_, level(count), open, ends;
    for (size_t k = 0; k < count; ++k) {
      for (size_t next : after_[k]) before[next].push_back(k);
      if (unit_[k] == k && waits[k] == 0) open.push_back(k);
      if (unit_[k] == k && after_[k].empty()) ends.push_back(k);
    }
    for (size_t i = 0; i < open.size(); ++i)
      for (size_t next : after_[open[i]]) {
        level[next] = std::max(level[next], level[open[i]] + 1);
        if (--waits[next] == 0) open.push_back(next);
      }
    sort_stable(ends, {}, [&](size_t k) { return level[k]; });
    std::vector<size_t> first(count, kNone);
    for (size_t end = 0; end < ends.size(); ++end) {
      open.assign(1, ends[end]);
      while (!open.empty()) {
        const size_t k = open.back();
        open.pop_back();
        if (first[k] != kNone) continue;
        first[k] = end;
        open.insert(open.end(), before[k].begin(), before[k].end());
      }
    }
    return first;
  }

  // The first after which no more is alive than now, it and those that read nothing but what it
  // makes and what is there; if none is, the first.
  Ready::const_iterator first_that_frees(const Ready& ready, const LiveBytes& live,
                                         const std::vector<size_t>& waits) const {
    for (auto at = ready.begin(); at != ready.end(); ++at) {
      std::vector<size_t> chain{at->second};
      while (live.growth(chain) > 0 && chain.size() < kChainMax) {
        const size_t last = chain.back();
        const size_t next = live.only_reader(last);
        const auto waits_for_last = std::ranges::count(after_[last], next);
        if (next == LiveBytes::kNone || !std::cmp_equal(waits_for_last, waits[next])) break;
        chain.push_back(next);
      }
      if (live.growth(chain) <= 0) return at;
    }
    return ready.begin();
  }

  // Of the units that wait for ever, by unit: one of those that it comes before and after
  // (Tarjan's strongly connected components).
  std::vector<size_t> find_cycles(const std::vector<size_t>& waits) const {
    struct Visit {
      size_t kernel;
      size_t next;  // of what comes after it
    };
    std::vector<size_t> number(waits.size(), kNone), lowest(waits.size()), cycle = number;
    std::vector<size_t> open;
    std::vector<Visit> stack;
    size_t visited = 0;
    const auto enter = [&](size_t k) {
      if (waits[k] == 0 || number[k] != kNone) return;
      number[k] = lowest[k] = visited++;
      open.push_back(k);
      stack.push_back({k, 0});
    };
    for (size_t start = 0; start < waits.size(); ++start)
      for (enter(start); !stack.empty();) {
        const auto [k, next] = stack.back();
        if (next > 0) {
          const size_t seen = after_[k][next - 1];
          if (cycle[seen] == kNone) lowest[k] = std::min(lowest[k], lowest[seen]);
        }
        if (next < after_[k].size()) {
          ++stack.back().next;
          enter(after_[k][next]);
          continue;
        }
        stack.pop_back();
        for (bool is_root = lowest[k] == number[k]; is_root; open.pop_back()) {
          cycle[open.back()] = k;
          is_root = open.back() != k;
        }
      }
    return cycle;
  }

  // Has the reader read a copy of what it needs of the version.
  void copy_version(const Conflict& conflict) {
    const ScheduledKernel::Read read = schedule_.kernels[conflict.reader].reads[conflict.read];
    const UOp reader = root(conflict.reader);
    Elements needed = read.elements;
    const int64_t count = product(shape_of(read.base)).value();
    for (const ScheduledKernel::Read& other : schedule_.kernels[conflict.reader].reads)
      if (other.base == read.base)
        needed = {std::min(needed.first, other.elements.first),
                  std::max(needed.second, other.elements.second)};
    needed.second = std::min(needed.second, count - 1);
    const UOp flat = make_reshape(read.base, {Dim(count)});
    const UOp copy = read.base.graph().make(
        Op::Contiguous, {make_shrink(flat, {Dim(needed.first)}, {Dim(needed.second + 1)})});
    const bool known = has_memory(copy) || makers_.contains(copy.node());
    decision_.stored.resize(copy.graph().id_limit());
    decision_.copies[{reader.node(), read.base.node()}] = {copy, needed.first};
    if (!known) {
      decision_.stored[copy.id()] = 1;
      schedule_.stored.push_back(copy);
      makers_[copy.node()].push_back(schedule_.kernels.size());
      rooted_[copy.node()].push_back(schedule_.kernels.size());
      schedule_.kernels.push_back(lower_value(copy, decision_));
      ++schedule_.copies;
      schedule_.copied_bytes += (needed.second - needed.first + 1) * copy.dtype().bytes();
    }
    for (size_t k : rooted_.at(reader.node())) relower(schedule_.kernels[k]);
  }

  void relower(ScheduledKernel& kernel) {
    const ScheduledStore store = kernel.stores.front();
    const ScanLoop* scan = kernel.scan;
    const ScanLoop* segment = kernel.segment;
    kernel = lower_store(store.value, store.destination, store.view, decision_);
    kernel.scan = scan;
    kernel.segment = segment;
  }

  Schedule& schedule_;
  Decision& decision_;
  std::span<const UOp> outputs_;
  bool saves_;
  std::unordered_map<const Node*, std::vector<size_t>> makers_;
  std::unordered_map<const Node*, std::vector<size_t>> rooted_;  // kernels by what they compute
  std::unordered_map<const Node*, Slot> slots_;                  // by what holds the memory
  std::unordered_map<const Node*, size_t> number_;  // of a version: 1 is the first write
  std::vector<size_t> unit_;                        // by kernel
  std::vector<std::vector<size_t>> members_;        // of units, in order
  std::vector<std::vector<size_t>> after_;          // by unit
  std::vector<size_t> waits_;
  std::vector<std::pair<Conflict, size_t>> late_;  // a read, and the write that must come later
  std::vector<size_t> order_;
};

}  // namespace

void order_kernels(Schedule& schedule, Decision& decision, std::span<const UOp> outputs) {
  const bool writes = std::ranges::any_of(
      decision.order, [](const UOp& u) { return u.op() == Op::After && !has_memory(u); });
  const bool saves =
      std::ranges::any_of(decision.order, [](const UOp& u) { return u.op() == Op::Alias; });
  if (writes || saves) Orderer(schedule, decision, outputs, saves).run();
}

}  // namespace tiny

#include "engine/plan.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/checked.h"
#include "base/error.h"
#include "base/sort.h"
#include "codegen/choose/choose.h"
#include "engine/backend.h"
#include "engine/custom_op.h"
#include "engine/kernel_cache.h"
#include "engine/observe.h"
#include "engine/placed_lifetimes.h"
#include "engine/plan_loops.h"
#include "engine/realize.h"
#include "engine/reuse.h"
#include "engine/shared_sizes.h"
#include "ir/node_map.h"
#include "schedule/scans.h"
#include "schedule/size_order.h"
#include "shape/shape.h"

namespace tiny {

namespace {

constexpr int64_t kApart = 1024;           // in their pages, so that no load waits for a store..
constexpr int64_t kApartFrom = 128 << 10;  // ..of values to which a page is little
constexpr int64_t kApartStep = 512;
// A value beside more others lies behind all of them: looking for gaps would take time like the
// square of their number, and values are placed from the largest on, so that what is lost is small.
constexpr size_t kGapsMost = 512;

// How far two places in a page are apart, the shorter way round.
int64_t apart_in_page(int64_t a, int64_t b, int64_t page) {
  const int64_t way = a < b ? a - b + page : a - b;
  return std::min(way, page - way);
}

// The first place from `at` on that is well apart, in its page, from those of large values that
// live at the same time (`others`: places in a page); the one that is farthest if there are too
// many of them.
int64_t place_apart(const std::vector<int64_t>& others, int64_t at, int64_t page) {
  int64_t best = at;
  int64_t best_apart = -1;
  for (int64_t more = 0; more < page; more += kApartStep) {
    const int64_t place = (at + more) % page;
    int64_t apart = page;
    for (const int64_t other : others) {
      apart = std::min(apart, apart_in_page(place, other, page));
      if (apart <= std::max<int64_t>(best_apart, 0)) break;  // others make it no better
    }
    if (apart <= best_apart) continue;
    best = at + more;
    best_apart = std::min(apart, kApart);
    if (apart >= kApart) break;
  }
  return best;
}

}  // namespace

int64_t place_lifetimes(std::vector<Lifetime>& lifetimes, const ArenaLayout& layout) {
  const auto [alignment, page, margin] = layout;
  std::vector<size_t> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  sort_stable(by_size, [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  int64_t total = 0;
  PlacedLifetimes placed(lifetimes);
  std::vector<size_t> others;
  std::vector<int64_t> large;  // places in a page
  for (size_t i : by_size) {
    Lifetime& life = lifetimes[i];
    const bool finds_gaps = placed.find(life, kGapsMost, others);
    large.clear();
    if (life.bytes >= kApartFrom && page > 0)
      for (const size_t other : others) large.push_back(lifetimes[other].offset % page);
    int64_t at =
        place_apart(large, finds_gaps ? 0 : round_up(placed.end_beside(life), alignment), page);
    for (size_t k = 0; finds_gaps && k < others.size(); ++k) {
      const Lifetime& other = lifetimes[others[k]];
      if (at + life.bytes <= other.offset) break;
      const int64_t end = round_up(other.offset + other.bytes, alignment);
      if (end > at) at = place_apart(large, end, page);
    }
    life.offset = at;
    total = std::max(total, at + life.bytes);
    placed.add(i);
  }
  return total;
}

int64_t peak_bytes(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const Lifetime& life : lifetimes) {
    changes.emplace_back(life.first * 2, life.bytes);
    changes.emplace_back(life.last * 2 + 1, -life.bytes);
  }
  sort_stable(changes);
  int64_t now = 0;
  int64_t peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, now += change);
  return peak;
}

Dim elements_of(const UOp& node, const Schedule& schedule) {
  const auto found = schedule.elements.find(node.node());
  return found == schedule.elements.end() ? product(shape_of(node)) : found->second;
}

int64_t bytes_of(const UOp& node, const Schedule& schedule) {
  const auto found = schedule.elements.find(node.node());
  int64_t bytes = node.dtype().bytes();
  if (found != schedule.elements.end())
    return checked_mul(bytes, upper_bound(found->second), "a buffer's size");
  for (const Dim& d : shape_of(node)) bytes = checked_mul(bytes, upper_bound(d), "a buffer's size");
  return bytes;
}

namespace {

class Planner {
 public:
  Planner(const Schedule& schedule, const PlanRequest& request, const ArenaLayout& layout)
      : schedule_(schedule),
        request_(request),
        layout_(layout),
        inputs_(numbers_of(request.inputs)),
        outputs_(numbers_of(request.outputs)),
        leaves_(numbers_of(request.leaves)),
        loops_(schedule, request.variables) {}

  Plan run(Context& context) {
    plan_.inputs = static_cast<int64_t>(request_.inputs.size());
    plan_.outputs = static_cast<int64_t>(request_.outputs.size());
    for (const UOp& v : request_.variables) {
      const VariableArg& arg = v.variable_arg();
      plan_.variables.push_back({arg.name, arg.min, arg.max});
    }
    plan_.loops = loops_.tape();
    for (const ScheduledScan& scan : schedule_.scans)
      for (const UOp& result : scan.results)
        if (const UOp* prior = prior_of(result)) shared_.emplace(prior->node(), result);
    compile(context);
    for (const ScheduledScan& scan : schedule_.scans)
      if (scan.loop->is_counted && loops_.has(scan.loop)) add_count(scan);
    for (const ComputedVariable& computed : request_.computed) add_size(computed);
    sort_stable(plan_.sizes, {}, &ComputedSize::entry);
    number_open_sizes();
    // An output is written even if no kernel does: a slot says how many bytes it has.
    for (const UOp& out : request_.outputs) slot_of(out, 0);
    place_arena();
    context.observer().planned(plan_);
    return std::move(plan_);
  }

 private:
  using Numbers = NodeTable<int64_t>;

  // Of a node that stands there twice, the first.
  static Numbers numbers_of(std::span<const UOp> list) {
    Numbers numbers;
    numbers.reserve(list.size());
    int64_t number = 0;
    for (const UOp& u : list) numbers.emplace(u.node(), number++);
    return numbers;
  }

  void compile(Context& context) {
    KernelCache& cache = context.kernels();
    find_last_uses();
    std::vector<Kernel> kernels;
    for (const ScheduledKernel& k : schedule_.kernels)
      if (!k.call) kernels.push_back(k.kernel);
    std::vector<int64_t> sizes(kernels.size());
    if (request_.runs <= kRunsOnce) sizes = share_sizes(kernels);
    std::vector<uint8_t> cached;
    const std::vector<const CompiledKernel*> compiled =
        cache.compile(kernels, request_.runs, &cached);
    size_t next = 0;
    for (size_t i = 0; i < schedule_.kernels.size(); ++i) {
      if (schedule_.kernels[i].call) {
        add_entry(i, call_entry(context, schedule_.kernels[i]));
        continue;
      }
      TapeEntry entry;
      entry.executable = compiled[next]->executable;
      entry.threads_extent = compiled[next]->threads_extent;
      entry.info = compiled[next]->info;
      entry.info.cached = cached[next] != 0;
      if (const int64_t size = sizes[next++]) entry.variables.push_back(fixed_variable(size));
      for (size_t store = 0; store < schedule_.kernels[i].stores.size(); ++store)
        take_over(i, store);
      add_entry(i, std::move(entry));
    }
  }

  // A variable that always has this value.
  uint32_t fixed_variable(int64_t value) {
    const auto [known, added] =
        fixed_.try_emplace(value, static_cast<uint32_t>(plan_.variables.size()));
    if (added) plan_.variables.push_back({"n", value, value, false});
    return known->second;
  }

  // Gives the entry of kernel `i` its slots and variables.
  void add_entry(size_t i, TapeEntry entry) {
    const Kernel& kernel = schedule_.kernels[i].kernel;
    for (const UOp& value : schedule_.kernels[i].values) {
      entry.slots.push_back(slot_of(value, static_cast<int64_t>(i)));
      const ScanLoop* scan = schedule_.kernels[i].scan;
      const ScanLoop* segment = schedule_.kernels[i].segment;
      if (scan) keep_in_loop(scan, value, entry.slots.back());
      if (segment && segment != scan) keep_in_loop(segment, value, entry.slots.back());
    }
    for (size_t p = 0; p < entry.slots.size(); ++p) {
      Slot& slot = plan_.slots[entry.slots[p]];
      if (slot.kind != SlotKind::Captured || !kernel.params[p].written) continue;
      slot.is_written = plan_.is_exclusive = true;
    }
    for (const UOp& v : kernel.variables) {
      const auto at = std::find(request_.variables.begin(), request_.variables.end(), v);
      invariant(at != request_.variables.end(), "a program knows the variables of its kernels");
      entry.variables.push_back(static_cast<uint32_t>(at - request_.variables.begin()));
    }
    plan_.tape.push_back(std::move(entry));
  }

  // Puts the value that kernel `i` is the first to store where an input is that dies there, if this
  // store may take that over and no other store of the kernel did.
  void take_over(size_t i, size_t store) {
    const ScheduledKernel& kernel = schedule_.kernels[i];
    const UOp& value = kernel.stores[store].destination;
    if (is_of_scan(value)) return;  // a part of a slot
    if (slots_.contains(value.node()) || new_slot(value).kind != SlotKind::Arena) return;
    for (size_t param : params_to_take_over(kernel, store)) {
      const UOp& input = kernel.values[param];
      const auto slot = slots_.find(input.node());
      if (slot == slots_.end() || last_use_.at(input.node()) != i) continue;
      const bool taken =
          std::any_of(kernel.stores.begin(), kernel.stores.begin() + static_cast<int64_t>(store),
                      [&](const ScheduledStore& s) {
                        const auto other = slots_.find(s.destination.node());
                        return other != slots_.end() && other->second == slot->second;
                      });
      if (taken) continue;
      if (plan_.slots[slot->second].kind != SlotKind::Arena) continue;
      if (bytes_of(input, schedule_) != bytes_of(value, schedule_) ||
          !(elements_of(input, schedule_) == elements_of(value, schedule_)))
        continue;
      slots_.emplace(value.node(), slot->second);
      return;
    }
  }

  // ---- Scans: what their kernels use, and slots that move in them.

  void find_last_uses() {
    constexpr size_t kNever = SIZE_MAX;  // it is read in later steps too
    for (size_t i = 0; i < schedule_.kernels.size(); ++i) {
      const ScanLoop* scan = schedule_.kernels[i].scan;
      for (const UOp& value : schedule_.kernels[i].values) {
        size_t& last = last_use_[value.node()];
        const bool is_read_again = scan && !scan->is_branch && !loops_.is_of_step(value, scan);
        last = std::max(last, is_read_again ? kNever : i);
        if (value.op() == Op::ScanStep) last_use_[value.src(0).node()] = kNever;
      }
    }
    for (const ScheduledScan& scan : schedule_.scans)
      for (const UOp& result : scan.results)
        for (const UOp& source : result.src().subspan(scan.loop->stores()))
          last_use_[source.node()] = kNever;
  }

  // What a scan uses is there from the first to the last of the steps; but what is of one step
  // alone, where no other scan's kernels come in between.
  void keep_in_loop(const ScanLoop* scan, const UOp& value, uint32_t slot) {
    if (scan->is_branch) return;
    if (loops_.is_of_step(value, scan) && loops_.is_alone(scan)) return;
    const auto [first, last] = loops_.kernels_beside(scan);
    touch(slot, first);
    touch(slot, last);
  }

  // What the result of a branch is without its step: its value is in the same memory.
  static const UOp* prior_of(const UOp& result) {
    const ScanLoop& loop = *scan_part(result).loop;
    return loop.is_branch && result.src().size() > loop.stores() + 1 ? &result.src().back()
                                                                     : nullptr;
  }

  // What the run reads of a scan whose steps it counts.
  void add_count(const ScheduledScan& scan) {
    TapeLoop& loop = plan_.loops[loops_.number(scan.loop)];
    const UOp& result = scan.results.front();
    loop.counted = slot_of(result.src(scan.loop->stores()), loop.first);
    if (!scan.loop->asks) return;
    loop.again = slot_of(result.src(scan.loop->stores() - 1), loop.first);
    touch(loop.again, loop.end - 1);
  }

  // What there is memory for once open sizes are known.
  static bool is_open_kind(const Slot& slot) {
    return slot.kind == SlotKind::Arena || slot.kind == SlotKind::Output;
  }

  static bool depends_on(const Slot& slot, uint32_t variable) {
    return std::ranges::any_of(slot.size.steps(), [&](const SizeExpression::Step& step) {
      return step.op == Op::Variable && step.number == variable;
    });
  }

  // The run reads the value before the first entry whose kernel uses it, or memory that it decides
  // about, which is the first of its loops.
  void add_size(const ComputedVariable& computed) {
    const auto at = std::ranges::find(request_.variables, computed.variable);
    ComputedSize size;
    size.variable = static_cast<uint32_t>(at - request_.variables.begin());
    plan_.variables[size.variable].is_computed = true;
    plan_.variables[size.variable].is_open = computed.is_open;
    size.entry = static_cast<uint32_t>(plan_.tape.size());
    for (uint32_t i = 0; i < size.entry; ++i)
      if (std::ranges::count(plan_.tape[i].variables, size.variable) > 0) size.entry = i;
    if (computed.is_open)
      for (size_t i = 0; i < plan_.slots.size(); ++i)
        if (is_open_kind(plan_.slots[i]) && depends_on(plan_.slots[i], size.variable))
          size.entry = std::min(size.entry, static_cast<uint32_t>(lifetimes_[i].first));
    uint32_t group = 0;
    for (const TapeLoop& loop : plan_.loops) {
      if (!loop.beside) group = loop.first;
      if (group < size.entry && size.entry < loop.end) size.entry = group;
    }
    size.slot = slot_of(stored_value(computed), size.entry);
    require(
        plan_.slots[size.slot].kind != SlotKind::Arena || lifetimes_[size.slot].first < size.entry,
        Status::Unsupported, "the size \"", plan_.variables[size.variable].name,
        "\" is wanted before the run can have found it");
    plan_.sizes.push_back(size);
  }

  void number_open_sizes() {
    uint32_t open = 0;
    for (ComputedSize& size : plan_.sizes)
      if (plan_.variables[size.variable].is_open) size.open_sizes = ++open;
  }

  uint32_t open_sizes_of(const Slot& slot) const {
    uint32_t open = 0;
    for (const ComputedSize& size : plan_.sizes)
      if (is_open_kind(slot) && depends_on(slot, size.variable))
        open = std::max(open, size.open_sizes);
    return open;
  }

  // Of a branch: the store of an output that somebody reads goes to the output itself.
  const UOp* result_of(const UOp& store) const {
    if (store.op() != Op::ScanStore || !scan_part(store).loop->is_branch) return nullptr;
    const auto scan =
        std::ranges::find(schedule_.scans, scan_part(store).loop.get(), &ScheduledScan::loop);
    const auto result = std::ranges::find_if(
        scan->results, [&](const UOp& r) { return scan_part(r).index == scan_part(store).index; });
    return result == scan->results.end() ? nullptr : &*result;
  }

  // What has the size of a store's memory.
  UOp whole_of(const UOp& value) const {
    const ScanPart& part = scan_part(value);
    if (value.op() != Op::ScanStore || part.kind != ScanPart::Kind::State) return value;
    return whole_state(
        std::ranges::find(schedule_.scans, part.loop.get(), &ScheduledScan::loop)->results.front(),
        part.index);
  }

  Slot moving_slot(const UOp& value, int64_t time) {
    const ScanPart& part = scan_part(value);
    Slot slot = sized_slot(whole_of(value));
    slot.kind = SlotKind::Moving;
    slot.motion.loop = loops_.number(part.loop.get());
    slot.motion.stride = slot.size;
    if (value.op() == Op::ScanStep && part.kind == ScanPart::Kind::Element) {
      slot.motion.base = slot_of(value.src(0), time);
      slot.motion.reverse = part.reverse;
      return slot;
    }
    const ScheduledScan& scan =
        *std::ranges::find(schedule_.scans, part.loop.get(), &ScheduledScan::loop);
    const UOp& store = value.op() == Op::ScanStore
                           ? value
                           : scan.results.front().src(part.loop->outputs + part.index);
    const Place place = place_of(store, scan, time);
    slot.motion.base = place.slot;
    slot.motion.alternates = place.alternates;
    slot.motion.reverse = scan_part(store).reverse;
    slot.motion.before = value.op() == Op::ScanStep;
    slot.motion.after_last = value.op() == Op::Scan;
    if (slot.motion.before) slot.motion.first = slot_of(value.src(0), time);
    // There may be no step.
    if (slot.motion.after_last && part.loop->is_counted)
      slot.motion.first = slot_of(value.src(part.loop->stores() + 1 + part.index), time);
    return slot;
  }

  // Where a store of a scan's body goes: into the outputs of all steps, if anybody reads these; or
  // to one of two parts in turn, since the next step reads what it overwrites.
  struct Place {
    uint32_t slot = 0;
    bool alternates = true;
  };
  Place place_of(const UOp& store, const ScheduledScan& scan, int64_t time) {
    for (const UOp& result : scan.results) {
      const ScanPart& part = scan_part(result);
      if (part.kind == ScanPart::Kind::Output && result.src(part.index) == store)
        return {slot_of(result, time), false};
    }
    const auto [known, added] = alternating_.try_emplace(store.node(), 0);
    if (added) {
      const UOp whole = whole_of(store);
      Slot slot = sized_slot(whole);
      slot.bytes = checked_mul(slot.bytes, 2, "a buffer's size");
      slot.size = SizeExpression(product(shape_of(whole)) * Dim(2 * store.dtype().bytes()),
                                 request_.variables);
      known->second = add_slot(std::move(slot), time);
    }
    return {known->second, true};
  }

  // ---- Slots.

  uint32_t slot_of(const UOp& value, int64_t time) {
    if (const UOp* result = result_of(value)) return slot_of(UOp(*result), time);
    if (const auto shared = shared_.find(value.node()); shared != shared_.end())
      return slot_of(UOp(shared->second), time);
    auto known = slots_.find(value.node());
    if (known == slots_.end()) {
      Slot slot = is_moving(value) ? moving_slot(value, time) : new_slot(value);
      known = slots_.emplace(value.node(), add_slot(std::move(slot), time)).first;
    }
    touch(known->second, time);
    return known->second;
  }

  bool is_moving(const UOp& value) const {
    if (has_memory(value) || !is_of_scan(value)) return false;
    if (!loops_.has(scan_part(value).loop.get())) return false;
    if (scan_part(value).kind == ScanPart::Kind::Again) return false;
    return value.op() != Op::Scan || scan_part(value).kind == ScanPart::Kind::Last;
  }

  uint32_t add_slot(Slot slot, int64_t time) {
    lifetimes_.push_back({slot.bytes, time, time, 0});
    plan_.slots.push_back(std::move(slot));
    return static_cast<uint32_t>(plan_.slots.size() - 1);
  }

  // Its memory is used by this entry of the tape.
  void touch(uint32_t slot, int64_t time) {
    lifetimes_[slot].first = std::min(lifetimes_[slot].first, time);
    lifetimes_[slot].last = std::max(lifetimes_[slot].last, time);
    if (plan_.slots[slot].kind != SlotKind::Moving) return;
    touch(plan_.slots[slot].motion.base, time);
    if (plan_.slots[slot].motion.first != Motion::kNone)
      touch(plan_.slots[slot].motion.first, time);
  }

  Slot sized_slot(const UOp& value) const {
    Slot slot;
    slot.bytes = bytes_of(value, schedule_);
    slot.size = SizeExpression(elements_of(value, schedule_) * Dim(value.dtype().bytes()),
                               request_.variables);
    return slot;
  }

  Slot new_slot(const UOp& value) const {
    Slot slot = sized_slot(value);
    if (const int64_t* input = inputs_.find(value.node())) {
      slot.kind = SlotKind::Input;
      slot.number = *input;
    } else if (const int64_t* output = outputs_.find(value.node())) {
      slot.kind = SlotKind::Output;
      slot.number = *output;
    } else if (Ref<Storage> storage = storage_of(value)) {
      slot.kind = SlotKind::Captured;
      slot.storage = std::move(storage);
      const int64_t* leaf = leaves_.find(value.node());
      slot.number = leaf ? *leaf : std::ssize(request_.leaves);
    }
    return slot;
  }

  void place_arena() {
    for (size_t i = 0; i < plan_.slots.size(); ++i) {
      plan_.slots[i].first = lifetimes_[i].first;
      plan_.slots[i].last = lifetimes_[i].last;
      plan_.slots[i].open_sizes = open_sizes_of(plan_.slots[i]);
    }
    std::vector<Lifetime> lives;
    std::vector<size_t> owners;
    for (size_t i = 0; i < plan_.slots.size(); ++i) {
      if (plan_.slots[i].kind != SlotKind::Arena || plan_.slots[i].open_sizes > 0) continue;
      lives.push_back(lifetimes_[i]);
      owners.push_back(i);
    }
    plan_.arena_bytes = place_lifetimes(lives, layout_);
    plan_.live_bytes_max = peak_bytes(lives);
    for (size_t i = 0; i < lives.size(); ++i) plan_.slots[owners[i]].arena_offset = lives[i].offset;
  }

  const Schedule& schedule_;
  const PlanRequest& request_;
  const ArenaLayout layout_;
  const Numbers inputs_;
  const Numbers outputs_;
  const Numbers leaves_;
  const PlanLoops loops_;
  Plan plan_;
  std::unordered_map<const Node*, uint32_t> slots_;
  std::unordered_map<const Node*, size_t> last_use_;  // the last kernel that reads or stores it
  std::vector<Lifetime> lifetimes_;
  std::unordered_map<int64_t, uint32_t> fixed_;            // variables by value
  std::unordered_map<const Node*, uint32_t> alternating_;  // by store
  std::unordered_map<const Node*, UOp> shared_;            // whose memory a value lies in
};

}  // namespace

Plan make_plan(Context& context, const Schedule& schedule, const PlanRequest& request) {
  return Planner(schedule, request, context.backend().target().arena).run(context);
}

}  // namespace tiny

#include "schedule/join_beside.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/bounds.h"
#include "schedule/lower.h"
#include "schedule/row_test.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

// Kernels further apart are not looked at, nor more of those that read one value.
constexpr size_t kApartMax = 256;
constexpr size_t kTriesMax = 4;
constexpr size_t kRangesMax = 24;

bool has_checks(const ScheduledKernel& kernel) {
  return kernel.kernel.roots.size() != kernel.stores.size();
}

bool is_write(const ScheduledStore& store) {
  return store.value.op() == Op::Assign;
}

// The ranges of a store in the order in which its elements lie, the innermost last.
std::vector<UOp> ranges_by_stride(const UOp& store) {
  const ViewArg& view = store.view_arg();
  std::vector<std::pair<int64_t, UOp>> found;
  for (size_t i = 0; i < view.strides.size(); ++i)
    if (store.src(2 + i).op() == Op::Range) found.emplace_back(view.strides[i], store.src(2 + i));
  std::ranges::stable_sort(found, std::greater<>(), [](const auto& f) { return f.first; });
  std::vector<UOp> ranges;
  for (const auto& [stride, range] : found) ranges.push_back(range);
  return ranges;
}

class SideJoiner {
 public:
  SideJoiner(Schedule& schedule, const Decision& decision, const Machine& machine,
             const JoinSettings& settings, const Joins& before)
      : schedule_(schedule),
        kernels_(schedule.kernels),
        decision_(decision),
        machine_(machine),
        settings_(settings),
        before_(before) {
    inlined_.resize(kernels_.size());
    loops_.resize(kernels_.size());
    seconds_.resize(kernels_.size());
    noted_.resize(kernels_.size());
    const size_t count = kernels_.size();
    for (size_t k = 0; k <= count; ++k)
      places_.push_back({(k + count) % (count + 1), (k + 1) % (count + 1), k});
    for (size_t k = 0; k < count; ++k) {
      joined_into_.push_back(k);
      for (const ScheduledKernel::Read& read : kernels_[k].reads)
        readers_[read.base.node()].push_back(k);
    }
    for (const auto& [key, copy] : decision.copies) copied_.insert(key.first);
  }

  void run() {
    for (size_t k = 0; k < kernels_.size(); ++k) {
      if (settings_.stop) settings_.stop->check();
      if (!can_join(kernels_[k])) continue;
      const std::vector<size_t> others = neighbours(k);
      if (std::ranges::none_of(others, [&](size_t other) { return try_join(other, k); }))
        note_memory_of(k);
    }
    std::vector<ScheduledKernel> joined;
    for (size_t k = places_[kernels_.size()].next; k < kernels_.size(); k = places_[k].next)
      joined.push_back(std::move(kernels_[k]));
    schedule_.kernels = std::move(joined);
    std::erase_if(schedule_.stored, [&](const UOp& u) { return dropped_.contains(u.node()); });
  }

 private:
  const Node* memory(const UOp& base) const { return decision_.slot(base).node(); }

  // Kernels before `k` that read what it reads, or store it: those that share the most come first.
  std::vector<size_t> neighbours(size_t k) const {
    std::unordered_map<size_t, double> shared;
    std::unordered_set<const Node*> seen;
    for (const ScheduledKernel::Read& read : kernels_[k].reads) {
      if (!seen.insert(memory(read.base)).second) continue;
      const auto known = touched_.find(memory(read.base));
      if (known == touched_.end()) continue;
      const size_t count = std::min(known->second.size(), 2 * kTriesMax);
      for (size_t i = known->second.size() - count; i < known->second.size(); ++i)
        shared[known->second[i]] += bytes_of(read.base);
    }
    std::vector<size_t> found;
    for (const auto& [other, bytes] : shared) found.push_back(other);
    std::ranges::sort(found, [&](size_t a, size_t b) {
      return shared.at(a) != shared.at(b) ? shared.at(a) > shared.at(b) : a > b;
    });
    if (found.size() > kTriesMax) found.resize(kTriesMax);
    return found;
  }

  // Later kernels find kernel `k` by the memory that is touched.
  void note_memory_of(size_t k) {
    const auto note = [&](const UOp& base) {
      if (noted_[k].insert(memory(base)).second) touched_[memory(base)].push_back(k);
    };
    for (const ScheduledKernel::Read& read : kernels_[k].reads) note(read.base);
    for (const ScheduledStore& s : kernels_[k].stores) note(s.destination);
  }

  bool can_join(const ScheduledKernel& kernel) const {
    if (has_checks(kernel) || kernel.kernel.ranges.empty() ||
        kernel.kernel.ranges.size() > kRangesMax || stores_by_index(kernel.kernel))
      return false;
    return std::ranges::none_of(
        kernel.stores, [&](const ScheduledStore& s) { return copied_.contains(s.value.node()); });
  }

  static double bytes_of(const UOp& base) {
    return static_cast<double>(base.dtype().bytes()) * elements_at_most(base);
  }

  // What a set of kernels reads and stores.
  struct Memory {
    std::unordered_set<const Node*> read;
    std::unordered_set<const Node*> stored;
    std::unordered_set<const Node*> written;  // of those that are stored, in new versions
  };
  void add_memory(const ScheduledKernel& kernel, Memory& to) const {
    for (const ScheduledKernel::Read& read : kernel.reads) to.read.insert(memory(read.base));
    for (const ScheduledStore& s : kernel.stores) {
      to.stored.insert(memory(s.destination));
      if (is_write(s)) to.written.insert(memory(s.destination));
    }
  }
  // Whether the kernel must come after what touches that memory.
  bool depends(const ScheduledKernel& kernel, const Memory& on) const {
    for (const ScheduledKernel::Read& read : kernel.reads)
      if (on.stored.contains(memory(read.base))) return true;
    for (const ScheduledStore& s : kernel.stores) {
      const Node* node = memory(s.destination);
      if (on.written.contains(node)) return true;
      if (is_write(s) && (on.stored.contains(node) || on.read.contains(node))) return true;
    }
    return false;
  }

  // Whether not too many kernels are from `first` to `second`, which comes later.
  bool are_near(size_t first, size_t second) const {
    size_t k = first;
    for (size_t steps = 0; steps < kApartMax && k < kernels_.size() && k != second; ++steps)
      k = places_[k].next;
    return k == second;
  }

  // The order from `first` to `second` with both as one, in the place of `second`: what depends on
  // `first` comes after.  None if `second` depends on that.
  std::optional<std::vector<size_t>> order_of(size_t first, size_t second) const {
    if (!are_near(first, second)) return std::nullopt;
    Memory made;
    add_memory(kernels_[first], made);
    std::vector<size_t> order;
    std::vector<size_t> after;
    Memory between;
    for (size_t k = places_[first].next; k != second; k = places_[k].next) {
      // Who reads a scan is not seen here.
      if (kernels_[k].scan != kernels_[first].scan) return std::nullopt;
      if (depends(kernels_[k], made)) {
        add_memory(kernels_[k], made);
        add_memory(kernels_[k], between);
        after.push_back(k);
      } else {
        order.push_back(k);
      }
    }
    if (depends(kernels_[second], between)) return std::nullopt;
    order.push_back(first);
    order.insert(order.end(), after.begin(), after.end());
    return order;
  }

  // Puts kernels into this order where those from `first` to `second` were.
  void reorder(size_t first, size_t second, const std::vector<size_t>& order) {
    std::vector<size_t> numbers;
    for (size_t k = first; k != second; k = places_[k].next) numbers.push_back(places_[k].number);
    size_t before = places_[first].previous;
    const size_t end = places_[second].next;
    for (size_t i = 0; i <= order.size(); ++i) {
      const size_t k = i < order.size() ? order[i] : end;
      places_[before].next = k;
      places_[k].previous = before;
      if (i < order.size()) places_[k].number = numbers[i];
      before = k;
    }
  }

  // What the kernels read of each other and the joined one need not: versions that one of them
  // stores whole, and values that nobody else reads.
  std::vector<UOp> inlined_of(size_t first, size_t second) const {
    std::vector<UOp> inlined = inlined_[first];
    inlined.insert(inlined.end(), inlined_[second].begin(), inlined_[second].end());
    for (const size_t writer : {first, second})
      for (const ScheduledStore& s : kernels_[writer].stores) {
        if (can_drop(s, first, second)) inlined.push_back(s.value);
        for (const size_t reader : {first, second})
          for (const ScheduledKernel::Read& read : kernels_[reader].reads)
            if (read.base.op() == Op::After && !has_memory(read.base) &&
                s.value == read.base.src(1) && is_row_major(s.view) && s.view.offset.is(0) &&
                product(shape_of(s.value)) == product(shape_of(read.base)))
              inlined.push_back(read.base);
      }
    return inlined;
  }

  // Whether only these two read the value, which then needs no buffer.
  bool can_drop(const ScheduledStore& store, size_t first, size_t second) const {
    const uint32_t id = store.value.id();
    if (id >= before_.inner.size() || !before_.inner[id]) return false;
    if (!(store.value == store.destination)) return false;  // a part of another, too
    const auto readers = readers_.find(store.value.node());
    return readers != readers_.end() && std::ranges::all_of(readers->second, [&](size_t k) {
             while (joined_into_[k] != k) k = joined_into_[k];
             return k == first || k == second;
           });
  }

  // Whether what the kernel reads is there when it begins, or read before it is overwritten.
  bool reads_before_it_stores(const ScheduledKernel& kernel) const {
    Memory own;
    add_memory(kernel, own);
    const auto writes = std::ranges::count_if(kernel.stores, is_write);
    if (static_cast<size_t>(writes) != own.written.size()) return false;  // two of one memory
    return std::ranges::all_of(kernel.reads, [&](const ScheduledKernel::Read& read) {
      if (!own.stored.contains(memory(read.base))) return true;
      const auto is_version = [&](const ScheduledStore& s) {
        return read.base.op() == Op::After && read.base.src(1) == s.value;
      };
      return read.in_place && own.written.contains(memory(read.base)) &&
             std::ranges::none_of(kernel.stores, is_version);
    });
  }

  // Whether what is stored over the same ranges lies in the same order, which the loops keep.
  static bool lies_alike(const ScheduledKernel& joined, const ScheduledKernel& alone) {
    const Kernel& kernel = joined.kernel;
    const std::vector<UOp> largest = ranges_by_stride(kernel.roots.front());
    for (size_t i = 1; i < joined.stores.size(); ++i) {
      const std::vector<UOp> own = ranges_by_stride(kernel.roots[i]);
      if (own.size() == largest.size() && own != largest) return false;
    }
    // The loops of the largest store are in the order that they have without the others.
    for (size_t i = 0; i + 1 < alone.kernel.ranges.size(); ++i)
      if (!alone.kernel.ranges[i + 1].reduced && !joined.kernel.ranges[i].reduced &&
          !(alone.kernel.ranges[i].range.src(0) == joined.kernel.ranges[i].range.src(0)))
        return false;
    return true;
  }

  // Bytes that both kernels read or one makes and the other reads, and that the joined kernel reads
  // once at most.
  double shared_bytes(const ScheduledKernel& a, const ScheduledKernel& b) const {
    std::unordered_set<const Node*> of_a;
    for (const ScheduledKernel::Read& read : a.reads) of_a.insert(memory(read.base));
    for (const ScheduledStore& s : a.stores) of_a.insert(memory(s.destination));
    double sum = 0;
    std::unordered_set<const Node*> seen;
    for (const ScheduledKernel::Read& read : b.reads)
      if (of_a.contains(memory(read.base)) && seen.insert(memory(read.base)).second)
        sum += bytes_of(read.base);
    return sum;
  }

  // Of reading or storing a buffer of this size.
  double access_seconds(double bytes) const {
    return (saved_seconds(bytes, machine_) - machine_.launch_seconds) / 2;
  }

  // Bytes that stay alive until the place of `second` only because `first` is computed there.
  double bytes_kept(size_t first, size_t second) const {
    if (places_[first].next == second) return 0;
    std::unordered_set<const Node*> seen;
    double bytes = 0;
    for (const ScheduledKernel::Read& read : kernels_[first].reads) {
      if (has_memory(read.base) || !seen.insert(read.base.node()).second) continue;
      const auto& readers = readers_.at(read.base.node());
      const bool lives = std::any_of(readers.rbegin(), readers.rend(), [&](size_t k) {
        while (joined_into_[k] != k) k = joined_into_[k];
        return places_[k].number >= places_[second].number;
      });
      if (!lives) bytes += bytes_of(read.base);
    }
    return bytes;
  }

  // Whether the second reads what has a buffer because it is not to be computed there.
  bool are_apart(const ScheduledKernel& first, const ScheduledKernel& second) const {
    return std::ranges::any_of(second.reads, [&](const ScheduledKernel::Read& read) {
      const bool apart = read.base.id() < before_.apart.size() && before_.apart[read.base.id()];
      return apart && std::ranges::find(first.stores, read.base, &ScheduledStore::value) !=
                          first.stores.end();
    });
  }

  // Whether the axes of the largest values may be the same, or one kernel may compute what the
  // other stores: known without lowering them.  Who reads a slice of what the other stores a slice
  // of reads the buffer.
  static bool may_share_ranges(const ScheduledKernel& a, const ScheduledKernel& b) {
    const Shape& of_a = shape_of(a.stores.front().value);
    const Shape& of_b = shape_of(b.stores.front().value);
    for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)})
      for (const ScheduledKernel::Read& read : one->reads)
        for (const ScheduledStore& s : other->stores)
          if (read.base == s.value || read.base.op() == Op::After) return true;
    for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i)
      if (!(of_a[i] == of_b[i]) && !of_a[i].is(1) && !of_b[i].is(1)) return false;
    return true;
  }

  // What a kernel needs of its loops; found when it is asked for first.
  struct Loops {
    int64_t reductions = 0;
    bool has_product = false;
    bool can_share = false;
  };
  static Loops loops_of(const RowTest& test, size_t inputs) {
    Loops loops;
    loops.can_share = test.stores_share_loops() && test.passes(inputs);
    if (!loops.can_share) return loops;
    loops.reductions = test.reductions();
    loops.has_product = test.has_product();
    return loops;
  }
  const Loops& known_loops(size_t k) {
    if (!loops_[k])
      loops_[k] = loops_of(RowTest(kernels_[k].kernel, machine_), kernels_[k].values.size());
    return *loops_[k];
  }

  // A product has register tiles of its own; what it ends in may be stored beside it.
  bool loops_differ(size_t first, size_t second) {
    const Loops& a = known_loops(first);
    if (!a.can_share) return true;
    const Loops& b = known_loops(second);
    const bool product = a.has_product || b.has_product;
    return !b.can_share || (product && a.reductions + b.reductions > 1);
  }

  // What is priced of a kernel; found when it is asked for first.
  struct Seconds {
    double work = 0;     // and how much longer it takes where cores cannot share it
    double streams = 0;  // what register tiles read and store in pieces of rows: half as fast
  };
  Seconds seconds_of(const RowTest& test) const {
    Seconds seconds;
    seconds.work = test.work() / machine_.fma_rate + test.alone_seconds() - test.staging_saves();
    for (const double bytes : test.tile_streams()) seconds.streams += access_seconds(bytes);
    return seconds;
  }
  const Seconds& known_seconds(size_t k) {
    if (!seconds_[k]) seconds_[k] = seconds_of(RowTest(kernels_[k].kernel, machine_));
    return *seconds_[k];
  }

  bool try_join(size_t first, size_t second) {
    const ScheduledKernel& a = kernels_[first];
    const ScheduledKernel& b = kernels_[second];
    if (a.values.size() + b.values.size() > static_cast<size_t>(machine_.inputs_max)) return false;
    if (a.scan != b.scan) return false;
    if (!may_share_ranges(a, b) || are_apart(a, b)) return false;
    if (loops_differ(first, second)) return false;
    const auto order = order_of(first, second);
    if (!order) return false;
    std::vector<UOp> inlined = inlined_of(first, second);
    std::vector<ScheduledStore> stores;
    const double shared = shared_bytes(a, b);
    if (bytes_kept(first, second) > shared) return false;
    double traffic = access_seconds(shared);
    for (const ScheduledKernel* k : {&a, &b})
      for (const ScheduledStore& s : k->stores) {
        if (!can_drop(s, first, second))
          stores.push_back(s);
        else
          traffic += access_seconds(bytes_of(s.value));
      }
    std::optional<ScheduledKernel> joined = lower_together(stores, inlined, decision_);
    if (!joined || joined->kernel.ranges.size() > kRangesMax || !reads_before_it_stores(*joined))
      return false;
    const bool is_a = joined->stores.front().value == a.stores.front().value;
    if (!lies_alike(*joined, is_a ? a : b)) return false;
    const RowTest test(joined->kernel, machine_);
    const Loops loops = loops_of(test, joined->values.size());
    if (!loops.can_share) return false;
    const Seconds both = seconds_of(test);
    const Seconds& of_a = known_seconds(first);
    const Seconds& of_b = known_seconds(second);
    JoinCost cost;
    cost[JoinPart::Launch] = machine_.launch_seconds;
    cost[JoinPart::Traffic] = traffic - (both.streams - of_a.streams - of_b.streams);
    cost[JoinPart::Recomputed] = both.work - of_a.work - of_b.work;
    const int64_t number = before_.count + static_cast<int64_t>(second);
    if (!decide_join({number, b.stores.front().value, cost, false}, settings_)) return false;
    for (const UOp& u : inlined) dropped_.insert(u.node());
    joined->scan = kernels_[first].scan;
    joined->segment = kernels_[first].segment;
    kernels_[first] = std::move(*joined);
    inlined_[first] = std::move(inlined);
    loops_[first] = loops;
    seconds_[first] = both;
    joined_into_[second] = first;
    note_memory_of(first);
    reorder(first, second, *order);
    return true;
  }

  Schedule& schedule_;
  std::vector<ScheduledKernel>& kernels_;
  const Decision& decision_;
  const Machine& machine_;
  const JoinSettings& settings_;
  const Joins& before_;
  // Of the kernels that are left and of their end, by kernel: those beside it, and a number that
  // grows along the order.
  struct Place {
    size_t previous = 0;
    size_t next = 0;
    size_t number = 0;
  };
  std::vector<Place> places_;
  std::vector<std::unordered_set<const Node*>> noted_;  // by kernel: memory that it is found by
  std::unordered_map<const Node*, std::vector<size_t>> touched_;  // kernels by memory, in order
  std::unordered_map<const Node*, std::vector<size_t>> readers_;  // as it was before
  std::vector<size_t> joined_into_;                               // by kernel: itself, or another
  std::vector<std::optional<Loops>> loops_;                       // by kernel
  std::vector<std::optional<Seconds>> seconds_;                   // by kernel
  std::vector<std::vector<UOp>> inlined_;                         // by kernel
  std::unordered_set<const Node*> dropped_;                       // values without a buffer now
  std::unordered_set<const Node*> copied_;  // values whose kernels read copies of versions
};

}  // namespace

void join_beside(Schedule& schedule, const Decision& decision, const Machine& machine,
                 const JoinSettings& settings, const Joins& before) {
  if (schedule.kernels.size() > 1) SideJoiner(schedule, decision, machine, settings, before).run();
}

}  // namespace tiny

#include "engine/dependencies.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/sort.h"

namespace tiny {

namespace {

using Entries = std::vector<uint32_t>;

// Entries that a list keeps at most, so that all lists together grow as the tape does.  Longer
// ones cost a wait for as many kernels, once in as many: more than the cores of most processors,
// so that these are hardly ever idle for it.
constexpr size_t kMostListed = 64;

void add_all(Entries& to, const Entries& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void keep_distinct(Entries& list) {
  sort_stable(list);
  const auto [rest, end] = std::ranges::unique(list);
  list.erase(rest, end);
}

// In a list that is too long, `entry` waits for the others and stands for them.
void bound(Entries& list, uint32_t entry, Entries& after) {
  if (list.size() <= kMostListed) return;
  add_all(after, list);
  list = {entry};
}

// What an entry of the tape does with a slot, by all of its parameters.
struct Use {
  uint32_t slot;
  bool is_read;
  bool is_written;
};

// One for each slot, in the order of their numbers.
void find_uses(const TapeEntry& entry, std::vector<Use>& uses) {
  uses.clear();
  for (size_t p = 0; p < entry.slots.size(); ++p)
    uses.push_back({entry.slots[p], entry.info.params[p].read, entry.info.params[p].written});
  sort_stable(uses, {}, &Use::slot);
  size_t kept = 0;
  for (const Use& use : uses) {
    if (kept == 0 || uses[kept - 1].slot != use.slot) {
      uses[kept++] = use;
      continue;
    }
    uses[kept - 1].is_read |= use.is_read;
    uses[kept - 1].is_written |= use.is_written;
  }
  uses.resize(kept);
}

// Pieces of memory, each with who touched it last.  A write makes one piece of all that it covers:
// however a value's memory was cut before, whoever touches the value later meets one piece.
class Memory {
 public:
  // Entries come in the order of the tape; a use's slot says whose value it is.
  void touch(int64_t begin, int64_t end, const Use& use, uint32_t entry, Entries& after) {
    if (begin == end) return;
    cut(begin);
    cut(end);
    if (use.is_written)
      write(begin, end, use, entry, after);
    else
      read(begin, end, entry, after);
  }

 private:
  struct Part {
    int64_t end = 0;
    uint32_t slot = UINT32_MAX;
    bool is_updated = false;  // by a writer that reads it
    Entries writers;
    Entries readers;  // since
    Entries before;   // that touched it before the writers
  };

  void read(int64_t begin, int64_t end, uint32_t entry, Entries& after) {
    while (begin < end) {
      auto at = parts_.lower_bound(begin);
      if (at == parts_.end() || at->first > begin) {  // nobody wrote it
        const int64_t until = at == parts_.end() ? end : std::min(end, at->first);
        at = parts_.emplace_hint(at, begin, Part{});
        at->second.end = until;
      }
      Part& part = at->second;
      add_all(after, part.writers);
      part.readers.push_back(entry);
      bound(part.readers, entry, after);
      begin = part.end;
    }
  }

  void write(int64_t begin, int64_t end, const Use& use, uint32_t entry, Entries& after) {
    const auto first = parts_.try_emplace(begin).first;
    Part& part = first->second;
    const bool is_one_piece = part.end == end;
    // Another part of the same value: what was there before is the same.
    if (is_one_piece && part.slot == use.slot && part.readers.empty() && !use.is_read &&
        !part.is_updated) {
      add_all(after, part.before);
      part.writers.push_back(entry);
      bound(part.writers, entry, after);
      return;
    }
    part.before.swap(part.writers);
    add_all(part.before, part.readers);
    if (!is_one_piece) {
      const auto others = std::next(first), last = parts_.lower_bound(end);
      for (auto at = others; at != last; ++at) {
        add_all(part.before, at->second.writers);
        add_all(part.before, at->second.readers);
      }
      parts_.erase(others, last);
      keep_distinct(part.before);
    }
    add_all(after, part.before);
    bound(part.before, entry, after);
    part.end = end;
    part.slot = use.slot;
    part.is_updated = use.is_read;
    part.writers.assign(1, entry);
    part.readers.clear();
  }

  void cut(int64_t where) {
    auto at = parts_.upper_bound(where);
    if (at == parts_.begin()) return;
    --at;
    if (at->first == where || at->second.end <= where) return;
    Part rest = at->second;
    at->second.end = where;
    parts_.emplace(where, std::move(rest));
  }

  std::map<int64_t, Part> parts_;  // by their beginning
};

}  // namespace

std::vector<Entries> find_dependencies(const Plan& plan) {
  std::vector<Entries> found(plan.tape.size());
  if (plan.has_writes || !plan.has_known_sizes()) {
    for (uint32_t i = 1; i < found.size(); ++i) found[i] = {i - 1};
    return found;
  }
  // Outputs share no memory with anything; they lie behind the arena here.
  std::vector<int64_t> begins(plan.slots.size(), -1);
  int64_t outputs = plan.arena_bytes;
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    if (slot.kind == SlotKind::Arena) begins[i] = slot.arena_offset;
    if (slot.kind == SlotKind::Output) begins[i] = std::exchange(outputs, outputs + slot.bytes);
  }
  Memory memory;
  std::vector<Use> uses;
  Entries after;
  for (uint32_t i = 0; i < found.size(); ++i) {
    find_uses(plan.tape[i], uses);
    after.clear();
    for (const Use& use : uses) {
      const int64_t begin = begins[use.slot];
      if (begin < 0) continue;
      memory.touch(begin, begin + plan.slots[use.slot].bytes, use, i, after);
    }
    keep_distinct(after);
    std::erase(after, i);
    found[i].assign(after.begin(), after.end());
  }
  return found;
}

}  // namespace tiny

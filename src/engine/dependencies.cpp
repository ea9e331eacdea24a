#include "engine/dependencies.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tiny {

namespace {

using Entries = std::vector<uint32_t>;

void add_all(Entries& to, const Entries& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Pieces of memory, each with who touched it last.
class Memory {
 public:
  // Entries come in the order of the tape; `slot` says whose value it is.
  void read(int64_t begin, int64_t end, uint32_t entry, Entries& after) {
    for_each_part(begin, end, [&](State& part) {
      add_all(after, part.writers);
      part.readers.push_back(entry);
    });
  }
  void write(int64_t begin, int64_t end, size_t slot, bool is_read, uint32_t entry,
             Entries& after) {
    for_each_part(begin, end, [&](State& part) {
      // Another part of the same value: what was there before is the same.
      if (part.slot == slot && part.readers.empty() && !is_read && !part.is_updated) {
        add_all(after, part.before);
        part.writers.push_back(entry);
        return;
      }
      part.before = std::move(part.writers);
      add_all(part.before, part.readers);
      add_all(after, part.before);
      part.writers = {entry};
      part.readers.clear();
      part.slot = slot;
      part.is_updated = is_read;
    });
  }

 private:
  struct State {
    int64_t end = 0;
    size_t slot = SIZE_MAX;
    bool is_updated = false;  // by a writer that reads it
    Entries writers;
    Entries readers;  // since
    Entries before;   // that touched it before the writers
  };

  // Cuts at both ends, and at the ends of what is known in between.
  template <class Change>
  void for_each_part(int64_t begin, int64_t end, const Change& change) {
    cut(begin);
    cut(end);
    while (begin < end) {
      auto at = parts_.lower_bound(begin);
      if (at == parts_.end() || at->first > begin) {
        const int64_t until = at == parts_.end() ? end : std::min(end, at->first);
        at = parts_.emplace(begin, State{}).first;
        at->second.end = until;
      }
      change(at->second);
      begin = at->second.end;
    }
  }
  void cut(int64_t where) {
    auto at = parts_.upper_bound(where);
    if (at == parts_.begin()) return;
    --at;
    if (at->first == where || at->second.end <= where) return;
    State rest = at->second;
    at->second.end = where;
    parts_.emplace(where, std::move(rest));
  }

  std::map<int64_t, State> parts_;  // by their beginning
};

}  // namespace

std::vector<Entries> find_dependencies(const Plan& plan) {
  std::vector<Entries> found(plan.tape.size());
  if (plan.has_writes || !plan.variables.empty()) {
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
  for (uint32_t i = 0; i < found.size(); ++i) {
    const TapeEntry& entry = plan.tape[i];
    const auto accesses = [&](size_t slot, bool KernelParam::* how) {
      for (size_t p = 0; p < entry.slots.size(); ++p)
        if (entry.slots[p] == slot && entry.info.params[p].*how) return true;
      return false;
    };
    for (const uint32_t slot : entry.slots) {
      if (begins[slot] < 0) continue;
      const int64_t end = begins[slot] + plan.slots[slot].bytes;
      const bool is_read = accesses(slot, &KernelParam::read);
      if (accesses(slot, &KernelParam::written))
        memory.write(begins[slot], end, slot, is_read, i, found[i]);
      else
        memory.read(begins[slot], end, i, found[i]);
    }
    std::ranges::sort(found[i]);
    const auto [end, last] = std::ranges::unique(found[i]);
    found[i].erase(end, last);
    std::erase(found[i], i);
  }
  return found;
}

}  // namespace tiny

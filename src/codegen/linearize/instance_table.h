// What an instance of a node is remembered by, and the table in which it is found: one probe of a
// flat array, no memory for each entry, nothing erased.  Nodes are told apart by address, so they
// must outlive the table.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// The node, and the coordinates of the unrolled ranges that it depends on.
struct InstanceKey {
  const Node* node = nullptr;
  std::array<uint64_t, 2> coordinates{};  // as two numbers
  uint64_t use = 0;                       // 0: the node's value; else what is made from it
  bool operator==(const InstanceKey&) const = default;
};

template <class T>
class InstanceTable {
 public:
  // The value at `key`, or null.  Valid until the next insertion.
  T* find(const InstanceKey& key) {
    if (slots_.empty()) return nullptr;
    const uint32_t slot = slots_[position(key)];
    return slot ? &entries_[slot - 1].value : nullptr;
  }
  const T* find(const InstanceKey& key) const {
    return const_cast<InstanceTable*>(this)->find(key);
  }

  // Stores `value` at `key`, over what was there.
  void insert(const InstanceKey& key, T value) {
    if ((entries_.size() + 1) * 2 > slots_.size()) grow();
    uint32_t& slot = slots_[position(key)];
    if (slot) {
      entries_[slot - 1].value = std::move(value);
      return;
    }
    entries_.push_back({key, std::move(value)});
    slot = static_cast<uint32_t>(entries_.size());
  }

 private:
  struct Entry {
    InstanceKey key;
    T value;
  };

  size_t position(const InstanceKey& key) const {
    uint64_t h = std::bit_cast<uintptr_t>(key.node) * 0x9E3779B97F4A7C15u;
    h = (h ^ (h >> 32) ^ key.coordinates[0]) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 29) ^ key.coordinates[1] ^ (key.use << 32 | key.use >> 32)) *
        0x94D049BB133111EBu;
    const size_t mask = slots_.size() - 1;
    size_t at = static_cast<size_t>(h >> (64 - std::countr_zero(slots_.size())));
    while (slots_[at] && !(entries_[slots_[at] - 1].key == key)) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 256 : slots_.size() * 2, 0);
    for (size_t i = 0; i < entries_.size(); ++i)
      slots_[position(entries_[i].key)] = static_cast<uint32_t>(i + 1);
  }

  std::vector<uint32_t> slots_;  // entry + 1, 0 if free
  std::vector<Entry> entries_;   // in order of insertion
};

}  // namespace tiny

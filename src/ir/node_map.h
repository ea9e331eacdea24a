// A hash map from nodes to values: side tables for passes that visit a small part of a big graph,
// where a vector over all ids would cost more than the pass.  It keeps its keys alive, so that an
// address is never reused while it is in the map; it must die before the graph does.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ir/uop.h"

namespace tiny {

template <class T>
class NodeMap {
 public:
  // The value at `key`, or null.  Valid until the next insertion.
  T* find(const UOp& key) {
    if (slots_.empty()) return nullptr;
    const size_t at = position(key.node());
    return slots_[at] ? &entries_[slots_[at] - 1].value : nullptr;
  }
  const T* find(const UOp& key) const { return const_cast<NodeMap*>(this)->find(key); }
  bool contains(const UOp& key) const { return find(key) != nullptr; }

  // Stores `value` at `key`, over what was there.
  T& insert(const UOp& key, T value) {
    if ((entries_.size() + 1) * 2 > slots_.size()) grow();
    const size_t at = position(key.node());
    if (slots_[at]) return entries_[slots_[at] - 1].value = std::move(value);
    entries_.push_back({key, std::move(value)});
    slots_[at] = static_cast<uint32_t>(entries_.size());
    return entries_.back().value;
  }

  size_t size() const { return entries_.size(); }
  void clear() {
    slots_.clear();
    entries_.clear();
  }

 private:
  struct Entry {
    UOp key;
    T value;
  };

  size_t position(const Node* node) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash_mix(0, std::bit_cast<uintptr_t>(node)) & mask;
    while (slots_[at] && entries_[slots_[at] - 1].key.node() != node) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 32 : slots_.size() * 2, 0);
    for (size_t i = 0; i < entries_.size(); ++i)
      slots_[position(entries_[i].key.node())] = static_cast<uint32_t>(i + 1);
  }

  std::vector<uint32_t> slots_;  // entry + 1, 0 if free
  std::vector<Entry> entries_;   // in order of insertion
};

}  // namespace tiny

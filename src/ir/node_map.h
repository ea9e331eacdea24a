// Hash maps from nodes to values: side tables for passes that visit a small part of a big graph,
// where a vector over all ids would cost more than the pass.  Neither needs memory for each entry.
//
//   NodeMap    keeps its keys alive, so that an address is never reused while it is in the map; it
//              must die before the graph does
//   NodeTable  leaves that to its user, for whom the nodes of one walk stay as they are
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/uop.h"

namespace tiny {

// Of a table that has any: most are of a kernel of few nodes.
constexpr size_t kNodeSlotsLeast = 8;

// Where to look for a node first, in a table of 2^bits slots: by the upper bits of a product, which
// depend on all bits of the address.
inline size_t home_of(const Node* node, int bits) {
  return static_cast<size_t>(std::bit_cast<uintptr_t>(node) * 0x9E3779B97F4A7C15u >> (64 - bits));
}

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
    size_t at = home_of(node, std::countr_zero(slots_.size()));
    while (slots_[at] && entries_[slots_[at] - 1].key.node() != node) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    slots_.assign(std::max(slots_.size() * 2, kNodeSlotsLeast), 0);
    for (size_t i = 0; i < entries_.size(); ++i)
      slots_[position(entries_[i].key.node())] = static_cast<uint32_t>(i + 1);
  }

  std::vector<uint32_t> slots_;  // entry + 1, 0 if free
  std::vector<Entry> entries_;   // in order of insertion
};

// Values are made by their default constructor.  Any insertion moves them.
template <class T>
class NodeTable {
 public:
  T* find(const Node* node) {
    if (slots_.empty()) return nullptr;
    Slot& slot = slots_[position(node)];
    return slot.node ? &slot.value : nullptr;
  }
  const T* find(const Node* node) const { return const_cast<NodeTable*>(this)->find(node); }
  bool contains(const Node* node) const { return find(node) != nullptr; }

  // The value of a node that is known to be there.
  T& at(const Node* node) {
    T* found = find(node);
    invariant(found != nullptr, "the node is in the table");
    return *found;
  }
  const T& at(const Node* node) const { return const_cast<NodeTable*>(this)->at(node); }

  // The value of the node, made if it is not there.
  T& operator[](const Node* node) {
    if ((size_ + 1) * 2 > slots_.size()) grow(std::max(slots_.size() * 2, kNodeSlotsLeast));
    Slot& slot = slots_[position(node)];
    if (!slot.node) {
      slot.node = node;
      ++size_;
    }
    return slot.value;
  }

  // Stores `value` if the node is not there; whether it did.
  bool emplace(const Node* node, T value) {
    const size_t before = size_;
    T& at = (*this)[node];
    if (size_ == before) return false;
    at = std::move(value);
    return true;
  }
  // Room for so many.
  void reserve(size_t count) {
    const size_t wanted = std::bit_ceil(count * 2);
    if (wanted > slots_.size()) grow(std::max(wanted, kNodeSlotsLeast));
  }
  size_t size() const { return size_; }
  void clear() {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct Slot {
    const Node* node = nullptr;
    T value{};
  };

  size_t position(const Node* node) const {
    const size_t mask = slots_.size() - 1;
    size_t at = home_of(node, std::countr_zero(slots_.size()));
    while (slots_[at].node && slots_[at].node != node) at = (at + 1) & mask;
    return at;
  }
  void grow(size_t count) {
    std::vector<Slot> old(count);
    old.swap(slots_);
    for (Slot& slot : old)
      if (slot.node) slots_[position(slot.node)] = std::move(slot);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

// The nodes that were seen.
class NodeSet {
 public:
  NodeSet() = default;
  NodeSet(std::initializer_list<const Node*> nodes) {
    for (const Node* node : nodes) insert(node);
  }
  // Whether the node was not there.
  bool insert(const Node* node) { return table_.emplace(node, {}); }
  bool contains(const Node* node) const { return table_.contains(node); }
  bool empty() const { return table_.size() == 0; }

 private:
  struct Nothing {};
  NodeTable<Nothing> table_;
};

}  // namespace tiny

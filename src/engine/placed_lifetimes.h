// Values that have their place in an arena, found by the time in which they live.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/plan.h"

namespace tiny {

class PlacedLifetimes {
 public:
  // For some of `lifetimes`, which outlive it.
  explicit PlacedLifetimes(std::span<const Lifetime> lifetimes);

  // A lifetime that has its offset now, by its number.
  void add(size_t number);

  // Those that live at the same time as this one, in the order of their offsets; of the same offset
  // the first that was added first.  False if there are more than `most`: then these are some.
  bool find(const Lifetime& life, size_t most, std::vector<size_t>& found) const;

  // Where the last of them ends.
  int64_t end_beside(const Lifetime& life) const;

 private:
  // A tree over the times at which something begins or ends: a leaf is one of them.
  struct TreeNode {
    uint32_t covers = 0;    // the first of the links of those that live for all of its time
    int64_t cover_end = 0;  // the largest of their ends
    int64_t end = 0;        // the same of all that live in some of its time
  };
  struct Link {
    size_t rank = 0;
    uint32_t next = 0;  // 0: none
  };

  size_t leaf_of(int64_t time) const;
  // Calls `see` with the fewest nodes that are the time from one leaf to another.
  template <class See>
  void for_each_piece(const Lifetime& life, const See& see) const;

  std::span<const Lifetime> lifetimes_;
  std::vector<size_t> added_;   // by rank: the number
  std::vector<int64_t> times_;  // sorted
  size_t leaves_ = 1;
  std::vector<TreeNode> tree_;  // the root is 1, below i are 2 i and 2 i + 1
  std::vector<Link> links_{1};
  std::set<std::pair<int64_t, size_t>> begins_;  // times and ranks
};

}  // namespace tiny

// In whose loops each node of a kernel is computed, and which loops these are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/walked_kernel.h"

namespace tiny {

// The loops around what a closure computes, outermost first, and what it touches in them.
struct Nest {
  bool is_split = false;  // sums are added to their destination in each turn of the loops outside
  RangeSet lanes = 0;     // of vectors of what is computed in them
  std::vector<size_t> loops;
  std::vector<const AccessInfo*> touched;
};

// What closes ranges, and what is computed in its loops.
struct Closure {
  uint32_t place = 0;
  uint64_t users = 0;         // the closures in whose loops its value is wanted
  std::vector<size_t> loops;  // around it and its own, outermost first
};
class Nests {
 public:
  explicit Nests(const WalkedKernel& walk);
  // Users first.
  std::span<const Closure> closures() const { return closures_; }
  // Opens the loops of a closure, whose users' are open.
  Nest open(size_t closure);
  bool is_computed_in(uint32_t place, size_t closure) const {
    return (computed_[place] >> closure & 1) != 0;
  }
  bool is_data(uint32_t place) const { return found_[place].is_data; }
  // Cycles of lookups that wait for each other before all of these are there.
  double longest_wait(std::span<const uint32_t> places) const;

 private:
  // Of a node: whether it is computed from data, and cycles of lookups that wait for each other.
  struct Found {
    bool is_data = false;
    double wait = 0;
  };
  void find_data();
  void find_owners();
  uint64_t computed_in(uint64_t owners) const;
  std::vector<size_t> loops_around(const Closure& closure) const;
  Nest nest_of(const Closure& closure, RangeSet own) const;

  const WalkedKernel& walk_;
  std::vector<Closure> closures_;
  // By place:
  std::vector<uint64_t> computed_;  // the closures in whose loops it is computed
  std::vector<Found> found_;
};

}  // namespace tiny

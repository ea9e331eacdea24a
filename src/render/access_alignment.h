// What the addresses of a linear program are multiples of.
//
// On CPUs a vector may lie anywhere; what a GPU's thread loads at once, up to 16 bytes, must lie at
// a multiple of its size.  The alignment of parameters (LinearParam) and what is known of the low
// bits of indices, from their constants, factors and steps, decide between one access and one for
// each lane.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/linear.h"

namespace tiny {

// At a multiple of which a renderer lets the scratch of a thread and the memory of a group begin.
inline constexpr int64_t kLocalAlignment = 64;

class AccessAlignment {
 public:
  // The program is one that verify() accepts; it is not kept.
  explicit AccessAlignment(const LinearProgram& program);

  // Of a Load or Store: the bytes, a power of two, that its address, of its first lane, is a
  // multiple of.  Of one with an index for each lane: those of its element.
  int64_t of(LinearId access) const { return alignment_[access]; }

  // The power of two that every lane of an integer, or an address, is a multiple of.
  int64_t factor(LinearId value) const { return factor_[value]; }

 private:
  std::vector<int64_t> alignment_, factor_;
};

// Of a Load or Store of adjacent lanes without a mask: into accesses of how many bytes it is best
// cut, at the most `widest`, a power of two: each a power of two of its elements at a multiple of
// its size, all its lanes in whole ones.
int64_t access_bytes(const LinearProgram& program, const AccessAlignment& alignment,
                     LinearId access, int64_t widest);

}  // namespace tiny

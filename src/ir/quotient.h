// x // c and x % c of a sum x and a number c, taken apart: what the simplifier of index expressions
// and the arithmetic of dimensions know of division, so that equal quotients are one expression.
#pragma once

#include <span>

#include "ir/affine.h"
#include "ir/bounds.h"

namespace tiny {

// whole + rest // by.  Without a rest `by` is 1 and `rest` 0.
struct Quotient {
  Affine whole;
  Affine rest;
  int64_t by = 1;

  bool operator==(const Quotient&) const = default;
};

// sum // c for c > 1: what c divides is whole, factors that the sum shares with c are gone, and a
// division within a division is one: (x // a + k) // b is (x + k*a) // (a*b).  `facts` are >= 0.
Quotient quotient(const Affine& sum, int64_t c, std::span<const Affine> facts, BoundsCache& cache);
UOp to_uop(Graph& graph, const Quotient& q);

// Whether 0 <= sum < d by bounds and facts.
bool in_range(const Affine& sum, const Affine& d, std::span<const Affine> facts,
              BoundsCache& cache);

// sum = divisible + rest with g | divisible and g | c, where rest // g is always `quotient`: then c
// sees divisible / g + quotient only.
struct Coarse {
  int64_t g = 1;
  int64_t quotient = 0;
  Affine divisible;  // without a constant
  Affine rest;
};
std::optional<Coarse> coarsened(const Affine& sum, int64_t c, BoundsCache& cache);
// The one value of (anything in b) // c, if it has one; c > 0.
std::optional<int64_t> common_quotient(const Interval& b, int64_t c);
// a / g, where g divides every coefficient.
Affine exact_quotient(Affine a, int64_t g);

}  // namespace tiny

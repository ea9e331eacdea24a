// What values an integer expression can take, and proofs that one is never negative.
//
// Intervals are of int64 and saturate: a `lo` of INT64_MIN or a `hi` of INT64_MAX means unbounded.
// int64 arithmetic is index arithmetic and assumed not to overflow; narrower and unsigned dtypes
// wrap, so what may leave their range has the whole range.  A Range r of size n is 0 <= r < n.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ir/affine.h"
#include "ir/node_map.h"
#include "ir/uop.h"

namespace tiny {

struct Interval {
  int64_t lo = INT64_MIN;
  int64_t hi = INT64_MAX;

  bool is_single() const { return lo == hi; }
  bool contains(int64_t v) const { return lo <= v && v <= hi; }
  bool contains(const Interval& other) const { return lo <= other.lo && other.hi <= hi; }
  bool operator==(const Interval&) const = default;
};

std::string to_string(const Interval& interval);

// Of an elementwise result of this dtype, from the intervals of its operands, the first of which
// has the dtype `first`; of any other op, what the dtype holds.
Interval bounds_of_result(Op op, DType dtype, DType first, std::span<const Interval> operands);

// Remembers the interval of every node asked about and below it.  Dies before its graph.
class BoundsCache {
 public:
  // The interval of an integer or bool expression (false 0, true 1); of a float whole numbers that
  // it lies between wherever it is a number.
  Interval of(const UOp& u);
  // The interval of a sum, term by term.
  Interval of(const Affine& a);
  void clear() { known_.clear(); }
  size_t size() const { return known_.size(); }

 private:
  Interval compute(const UOp& u) const;
  NodeMap<Interval> known_;
};

Interval bounds(const UOp& u);

// What is not negative where a comparison of int64 expressions (Less, LessEqual) holds, and
// negative where it does not.
UOp slack_of(const UOp& comparison);

// What is not negative exactly where `e` is not, without the quotients that it has by what is known
// to be positive; `e` where that is no sum of integers.
UOp without_quotients(const UOp& e, BoundsCache& bounds);

// Whether `e` >= 0 follows from the intervals and from `facts`, expressions known to be >= 0: e, or
// a positive multiple of it, is a sum of positive multiples of facts and something whose interval
// is not negative.  That a Range is below its size is always a fact; Min, Max and Where are split
// into cases.  False means not proved.
bool prove_nonnegative(const UOp& e, std::span<const UOp> facts, BoundsCache& cache);
bool prove_nonnegative(const UOp& e, std::span<const UOp> facts = {});
bool prove_nonnegative(const Affine& e, std::span<const Affine> facts, BoundsCache& cache);

}  // namespace tiny

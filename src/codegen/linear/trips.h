// How often the loops of a linear program turn, at the most.
#pragma once

#include <cstdint>

#include "ir/linear.h"

namespace tiny {

class TripBounds {
 public:
  // `threads_extent`: of the range that threads share; not above 0: not known.
  TripBounds(const LinearProgram& program, int64_t threads_extent)
      : program_(program), threads_extent_(threads_extent) {}

  // Infinite where the program does not tell.
  double most(LinearId loop) const;
  // Whether it turns that often whenever it is reached.
  bool is_exact(LinearId loop) const;

 private:
  struct Interval {
    double low, high;
  };
  Interval interval(LinearId id, int depth) const;
  double distance(LinearId end, LinearId begin, int depth) const;

  const LinearProgram& program_;
  const int64_t threads_extent_;
};

}  // namespace tiny

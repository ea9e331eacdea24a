// Dimensions as plain numbers, for callers that have no other: a number stands for itself, what
// depends on Variables has a mark, a number far below any size that stands for it in one context.
#pragma once

#include <cstdint>
#include <vector>

#include "shape/shape.h"

namespace tiny {

class DimensionMarks {
 public:
  // The number itself, or the mark of the expression: the same for equal ones.
  int64_t mark(const Dim& dim);
  // What the number stands for: a mark that was given, or itself.
  Dim dim(int64_t number) const;
  Shape shape(const Ints& numbers) const;

 private:
  std::vector<UOp> expressions_;
};

}  // namespace tiny

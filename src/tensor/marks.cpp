#include "tensor/marks.h"

#include <algorithm>

namespace tiny {

namespace {

// Above INT64_MIN, which stands for much else.
constexpr int64_t kFirstMark = INT64_MIN + 1;

}  // namespace

int64_t DimensionMarks::mark(const Dim& dim) {
  if (dim.is_const()) return dim.value();
  const auto at = std::ranges::find(expressions_, dim.expression());
  const int64_t place = at - expressions_.begin();
  if (at == expressions_.end()) expressions_.push_back(dim.expression());
  return kFirstMark + place;
}

Dim DimensionMarks::dim(int64_t number) const {
  if (number < kFirstMark || number >= kFirstMark + std::ssize(expressions_)) return number;
  return Dim(expressions_[static_cast<size_t>(number - kFirstMark)]);
}

Shape DimensionMarks::shape(const Ints& numbers) const {
  Shape out;
  for (int64_t number : numbers) out.push_back(dim(number));
  return out;
}

}  // namespace tiny

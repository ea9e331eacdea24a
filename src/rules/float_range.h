// Between which numbers floats lie, which are never NaN: bytes and integers that became floats,
// bits that are floats, and what is computed of them.
#pragma once

#include <optional>

#include "ir/uop.h"

namespace tiny {

struct FloatRange {
  double lo, hi;  // -inf and inf where it may be infinite
  bool is_finite() const;
};

// None where it may be NaN, as far as a few dozen operations show.
std::optional<FloatRange> range_of_float(const UOp& u);

// Whether a float is a whole number, or none (inf, NaN), by the operations that make it.
bool is_whole(const UOp& u);

}  // namespace tiny

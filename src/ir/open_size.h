// Sizes that a run finds and nothing bounds.
#pragma once

#include <cstdint>

#include "ir/uop.h"

namespace tiny {

// The greatest value of such a size, so that what is made of two of them and a few channels is a
// number of bytes: 2^24 frames, rows or words.
inline constexpr int64_t kOpenSizeMax = int64_t{1} << 24;
// What costs are weighed with: texts, sentences and their frames are of this order.
inline constexpr int64_t kOpenSizeUsual = 512;

// The greatest value of an integer expression, with such sizes as they usually are.
int64_t usual_most(const UOp& expression);

}  // namespace tiny

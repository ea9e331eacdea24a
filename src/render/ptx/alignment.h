// What is known of the divisors of integers and addresses: a vector may be loaded and stored at
// once only where its address is a multiple of its size.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/linear.h"

namespace tiny::ptx {

// Where memory of a thread, and of a group, begins at a multiple of this.
inline constexpr int64_t kMemoryAlignment = 16;

// For each op, so many low bits of its value are 0: of integers and addresses of one lane; 0 for
// all others.  The addresses in the slots are multiples of `parameter_alignment`, a power of two.
std::vector<uint8_t> zero_bits(const LinearProgram& program, int64_t parameter_alignment);

}  // namespace tiny::ptx

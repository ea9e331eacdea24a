// A tensor as bytes in host memory: what file readers return and writers take.  No device, no
// graph: row-major, little-endian, one element after the other, a bool one byte that is 0 or 1.
#pragma once

#include <bit>
#include <cstdint>

#include "io/file.h"
#include "ir/dtype.h"
#include "ir/uop.h"

namespace tiny {

static_assert(std::endian::native == std::endian::little, "files are read in place");

struct HostTensor {
  DType dtype;
  Ints shape;
  SharedBytes bytes;  // element_count(shape) * dtype.bytes() of them; may be unaligned
};

// The product of the dimensions.  A negative one is Error{InvalidModel}; a product of the non-zero
// ones beyond 63 bits is Error{Limit}, so that strides cannot overflow either.
int64_t element_count(const Ints& shape, const char* what);

// Whether there is a byte that is neither 0 nor 1, which no bool may be; and the bytes with 1 for
// Both throw what `stop` (may be null) says.
bool has_odd_bools(const SharedBytes& bytes, const StopSignal* stop);
SharedBytes normal_bools(const SharedBytes& bytes, const StopSignal* stop);

}  // namespace tiny

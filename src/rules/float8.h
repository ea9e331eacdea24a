// Floats of 8 bits as float32 and back, by steps that every target has.  The conversions are those
// of ir/dtype.h, bit for bit.
#pragma once

#include "ir/uop.h"

namespace tiny {

// x of a float8 as float32, exactly.
UOp float_of_float8(const UOp& x);
// x, a float32, as the float8 `to`.
UOp float8_of_float(const UOp& x, DType to);

}  // namespace tiny

// Axes made longer at their ends, with a value or with elements that are there.
#pragma once

#include "tensor/tensor.h"

namespace tiny {

// What stands beyond the ends, as numpy.pad names it.
enum class PadMode : uint8_t {
  Constant,  // the value
  Reflect,   // c b | a b c | b a: mirrored, the ends are not repeated
  Edge,      // a a | a b c | c c
  Wrap,      // b c | a b c | a b
};

// before[k] and after[k] elements more around axis k, whose size is a number; negative numbers take
// away.  `value` is a scalar (0 if it is no tensor) of any dtype, and is converted to a's.
Tensor pad(const Tensor& a, const Ints& before, const Ints& after, PadMode mode,
           const Tensor& value = {});
// The middle sizes[i] elements of axes[i], or all of it in the middle of as many, with zeros. Where
// the two sides differ, the end has more of what is added and of what is cut.
Tensor center_crop_pad(const Tensor& a, const Ints& axes, const Ints& sizes);

}  // namespace tiny

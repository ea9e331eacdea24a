// Instructions that a compiler does not find by itself in the portable definitions, as the
// intrinsics of its own headers: where a macro of the compiler says that they are there.
#pragma once

#include <string>
#include <vector>

#include "ir/dot.h"
#include "ir/dtype.h"
#include "ir/op.h"

namespace tiny::c {

struct Native {
  std::string guard;  // the condition of an #if
  std::string body;   // an expression of a, b, c, or of a memory address p and a mask
};
using Natives = std::vector<Native>;  // the first whose condition holds

Natives native(Op op, DType dtype);
Natives native_dot(DotKind kind, DType sum);
Natives native_cast(DType from, DType to);
// Of adjacent lanes, those of `mask` alone.
Natives native_masked(bool is_load, DType dtype);

}  // namespace tiny::c

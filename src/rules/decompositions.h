// Kernel-stage decompositions: after them a kernel has no op that a linear program may not have,
// and no arithmetic on element types that no target computes in.
//
//   Transcendentals     float32 and float64 in steps of Fma, bit operations and choices
//                       (rules/transcendental.h says how accurate); the 16-bit floats via float32.
//   float16, bfloat16   each op is computed in float32 and rounded; reductions accumulate in
//   float32
//                       and round once.  What only moves or chooses keeps every bit.  They are
//                       converted from and to float32 only.
//   int8 .. uint16      each op is computed in int32 and wrapped; floats convert through int32,
//                       saturated at the narrow ends.
//   bool                arithmetic and comparisons are And, Or, Xor, Not; a cast to bool is x != 0.
//
// Loads, stores, stages and bitcasts keep their dtype.  Index arithmetic (int64) is not touched.
#pragma once

#include <span>
#include <vector>

#include "ir/rewrite.h"

namespace tiny {

// `scales`: whether the target has instructions for Scale.
UOp decompose(const UOp& root, bool scales = false);
// The same of several roots, which share what they have in common.
std::vector<UOp> decompose(std::span<const UOp> roots, bool scales = false);

// The rules among them that are data: arithmetic of bools.
RuleTable bool_rules();

}  // namespace tiny

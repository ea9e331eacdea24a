// Linear programs to x86-64 machine code: AVX2 (with FMA, F16C, BMI2) or AVX-512 (F, DQ, BW, VL,
// CD).
//
// Three steps: select (linear ops to machine instructions over virtual registers), allocate (linear
// scan over intervals, three register classes), encode (bytes).  The result is one function,
// `void(const KernelArgs*)`, System V ABI, position independent, its constants behind its code.
#pragma once

#include <string>

#include "base/code.h"
#include "ir/linear.h"
#include "ir/target.h"

namespace tiny {

// Machine code for `target.isa`, which must be Avx2 or Avx512.  Error{Unsupported} names an op that
// cannot be spelled; the program must satisfy verify().
Code render_x86(const LinearProgram& program, const Target& target);

// The machine instructions by the linear op they came from, with registers and offsets, and after
// them all bytes as Intel HEX, which objdump reads.
std::string x86_listing(const LinearProgram& program, const Target& target);

}  // namespace tiny

// Elementwise ops on one lane, as docs/semantics.md has them.
#pragma once

#include "ir/dot.h"
#include "ir/op.h"
#include "render/ptx/writer.h"

namespace tiny::ptx {

// Any elementwise op but Cast, Bitcast and Where; what the op does not take is not looked at.
// Error{Unsupported} for Scale.
Operand arithmetic(Writer& out, Op op, DType operand, const Operand& a, const Operand& b,
                   const Operand& c);
Operand dot(Writer& out, DotKind kind, const Operand& a, const Operand& b, const Operand& sum);

// The quotient or remainder, towards 0 or down; by 0 and -1 as docs/semantics.md says.
Operand division(Writer& out, Op op, DType dtype, const Operand& a, const Operand& b);

// The low bits of a word as a register holds an integer of 8 or 16 bits; others as they are.
Operand narrowed(Writer& out, DType dtype, const Operand& wide);

Operand cast(Writer& out, DType from, DType to, const Operand& x);
Operand bitcast(Writer& out, DType from, DType to, const Operand& x);

}  // namespace tiny::ptx

// A program for tests of launches.
#pragma once

#include "ir/linear.h"

namespace tiny {

// out[i] = in[i] + n for begin <= i < end, through the worker's scratch.
inline LinearProgram add_number_program() {
  LinearProgram p;
  p.name = "E_n";
  p.params = {{kInt64, true, false}, {kInt64, false, true}};
  p.variables = {{"n", 0, 1000}};
  p.scratch_bytes = 64;
  p.threaded = true;
  const LinearId in = p.add(Op::Param, kAddress, {}, 0), out = p.add(Op::Param, kAddress, {}, 1);
  const LinearId scratch = p.add(Op::Scratch, kAddress), n = p.add(Op::Variable, kInt64);
  const LinearId zero = p.add(Op::Const, kInt64);
  const LinearId begin = p.add(Op::LaunchArg, kInt64, {}, 0);
  const LinearId end = p.add(Op::LaunchArg, kInt64, {}, 1);
  const LinearId i = p.add(Op::Loop, kInt64, {begin, end}, 1);
  p.add(Op::Store, kVoid, {scratch, zero, p.add(Op::Load, kInt64, {in, i})});
  const LinearId back = p.add(Op::Load, kInt64, {scratch, zero});
  p.add(Op::Store, kVoid, {out, i, p.add(Op::Add, kInt64, {back, n})});
  p.add(Op::EndLoop, kVoid, {i});
  return p;
}

}  // namespace tiny

// The oracle: evaluates a tensor graph node by node in naive loops, sharing no pass with the
// engine.
//
// Floats are computed in double and rounded to the dtype after every op, integers wrap.  Every
// element carries a bound on how far the engine may be from it: 0 where docs/semantics.md leaves no
// choice, more where the order of a sum, an FMA or a polynomial makes a difference, infinity where
// such a difference decides (a comparison of values that are nearly equal).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/uop.h"

namespace tiny::reference {

struct Values {
  DType dtype;
  Ints shape;
  std::vector<double> real;    // of a float dtype
  std::vector<int64_t> whole;  // of any other; uint64 wraps
  std::vector<double> error;   // of each element

  size_t size() const { return error.size(); }
};

// The value of a graph whose leaves are constants, iotas and buffers in host memory.
Values evaluate(const UOp& root);

// One lane of an elementwise op (ops.cpp): operands as they are in their Values.
struct Lane {
  double real = 0;
  int64_t whole = 0;
  double error = 0;
};
Lane apply(Op op, DType result, DType operand, const Lane* src);

// `value` rounded or wrapped to `dtype`.
double round_to(DType dtype, double value);
int64_t wrap_to(DType dtype, int64_t value);
// The distance of neighbouring numbers of `dtype` around `value`.
double spacing(DType dtype, double value);

// "" if `data` (row-major elements of want.dtype) is within the bounds, else the first difference.
std::string difference(const Values& want, const void* data);

}  // namespace tiny::reference

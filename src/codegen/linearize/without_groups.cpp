// A build without devices that compute in groups of threads: no kernel has products of matrices.
#include "base/error.h"
#include "codegen/linearize/group_matrix.h"

namespace tiny {

RangeSet Matrices::elements_of(const UOp&) const {
  return 0;
}

DType Matrices::dtype_of(const UOp& sum) {
  return sum.dtype();
}

void Matrices::accumulate(const Task&, LinearId) {
  invariant(false, "no kernel has products of matrices");
}

void Matrices::remember_rows(const UOp&, LinearId) {
  invariant(false, "no kernel has products of matrices");
}

}  // namespace tiny

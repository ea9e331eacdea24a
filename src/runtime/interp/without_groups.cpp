// A build without devices that compute in groups of threads: no bytecode multiplies matrices.
#include "base/error.h"
#include "runtime/interp/group.h"

namespace tiny::interp {

void multiply_matrices(const MatrixRow&, const Step&, WarpFrames) {
  invariant(false, "no bytecode multiplies matrices");
}

void multiply_shared(const MatrixRow&, const Step&, WarpFrames, const std::byte*, int64_t) {
  invariant(false, "no bytecode multiplies matrices");
}

void load_matrices(const Step&, WarpFrames) {
  invariant(false, "no bytecode loads matrices");
}

}  // namespace tiny::interp

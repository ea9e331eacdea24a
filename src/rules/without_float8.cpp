// A build for neither models nor nodes: floats of 8 bits are moved, and nothing is computed of
// them.
#include "base/error.h"
#include "rules/float8.h"

namespace tiny {

namespace {

[[noreturn]] void refuse() {
  throw_error(Status::Unsupported,
              "this build of the library computes nothing of floats of 8 bits (TINY_ONNX and "
              "TINY_NODES were OFF)");
}

}  // namespace

UOp float_of_float8(const UOp&) {
  refuse();
}

UOp float8_of_float(const UOp&, DType) {
  refuse();
}

}  // namespace tiny

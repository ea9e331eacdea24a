// A build without devices that compute in groups of threads: none multiplies matrices.
#include "base/error.h"
#include "codegen/options/group_matrix.h"

namespace tiny {

Kernel apply_matrix(const Kernel&, const Option&) {
  throw_error(Status::InvalidArgument,
              "option TC: this build has no devices with groups of threads");
}

}  // namespace tiny

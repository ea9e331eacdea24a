// A build without models: sizes that a run finds are theirs.
#include "base/error.h"
#include "tensor/counted_recurrence.h"
#include "tensor/radix_sort.h"

namespace tiny {

RecurrenceResult recur_in_run(const Ref<Context>&, const Recurrence&, const RecurrenceFunction&) {
  throw_error(Status::Unsupported,
              "this build of the library makes no recurrences of steps that a run finds, which may "
              "be none (TINY_ONNX was OFF)");
}

Tensor ascending_places(const Tensor&) {
  throw_error(Status::Unsupported,
              "this build of the library sorts no more than there may be at the most "
              "(TINY_ONNX was OFF)");
}

}  // namespace tiny

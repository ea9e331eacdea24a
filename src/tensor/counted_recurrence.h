// Recurrences of as many steps as a run finds.
#pragma once

#include "tensor/recurrence.h"

namespace tiny {

// The steps, of which there may be none and at most the greatest value of their number, are rounds
// that the run counts (tensor/control.h).
RecurrenceResult recur_in_run(const Ref<Context>& context, const Recurrence& recurrence,
                              const RecurrenceFunction& step);

}  // namespace tiny

// What parameters begin with, as tiny.h says it.
#pragma once

#include "nn/initialize.h"
#include "tiny.h"

namespace tiny {

// Error{InvalidArgument} that lists the known ones for another number.
Initialization initial_argument(tiny_initial initial, double a, double b);

}  // namespace tiny

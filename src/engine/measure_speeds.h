// How fast an unknown processor computes and moves, measured with kernels made here: what the
// scheduler's costs are made of (ir/target.h).
#pragma once

#include <string_view>

#include "base/flags.h"
#include "engine/backend.h"
#include "ir/target.h"

namespace tiny {

// `target` with the speeds of `backend`'s device on one thread, from some twenty milliseconds.
// Error where its kernels cannot be had.
Target measure_speeds(Backend& backend, Target target);

// The same, once a machine: kept in the disk cache under `processor`.  What the cache's folder
// cannot keep is not measured (a process would decide otherwise than the next), nor what fails;
// `target` stays as it is then.
Target cached_speeds(Backend& backend, const Target& target, std::string_view processor,
                     const Flags& flags);

}  // namespace tiny

// How fast an unknown processor computes and moves, and from which size stores past its caches win,
// measured with kernels made here: what all costs are made of (cost/machine.h).
#pragma once

#include <string_view>

#include "base/flags.h"
#include "cost/machine.h"
#include "engine/backend.h"

namespace tiny {

// How fast a value is copied, in bytes a second.
struct CopyingRates {
  double through = 0;  // the caches
  double past = 0;     // them
};

// From which size values are stored past the caches: `usual`, unless copies of a value that no
// cache holds, and of one of half the last cache, say clearly that never (0) or that from there.
int64_t bypass_threshold(int64_t usual, const CopyingRates& large, const CopyingRates& half);

// The rates of `backend`'s device on one thread, from some forty milliseconds.  Error where its
// kernels cannot be had, or that `stop` says.
Rates measure_speeds(Backend& backend, Machine machine, const StopSignal& stop);

// The same, once a machine: kept in the disk cache under `processor`.  What the cache's folder
// cannot keep is not measured (a process would decide otherwise than the next), nor what fails;
// `machine`'s own it is then.  Error{Cancelled} if the settings' poll function says so.
Rates cached_speeds(Backend& backend, const Machine& machine, std::string_view processor,
                    const Flags& flags);

}  // namespace tiny

// BEAM: the optimisations of one kernel, found by trying them.
//
//   Starts    the cost model's list with the others that strategies propose, and no options at
//             all; these climb on their own
//   A step    every list that differs by one change or one more step (codegen/options/actions.h)
//   from one
//             of the `width` best so far is compiled and timed; equal code is timed once
//   Ends      when a step gains less than one part in a hundred, or the time is up
//   Result    the best of both climbs, timed once more beside the cost model's, turn by turn: never
//             slower than the cost model's in that measurement
//
// Everything is told at debug 1.  A stop signal ends it between two candidates.
#pragma once

#include <cstdint>
#include <string>

#include "base/stop.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "engine/observe.h"
#include "ir/kernel.h"

namespace tiny {

struct SearchLimits {
  int64_t width = 2;
  double seconds = 10;                // of a whole search, about
  int64_t code_bytes_max = 64 << 10;  // of one candidate
};

struct SearchResult {
  bool is_better = false;     // than the cost model's list
  std::string options;        // if so, as text
  double seconds = 0;         // of a launch with them
  double chosen_seconds = 0;  // of a launch with the cost model's, measured alongside
  int64_t candidates = 0;     // that were compiled
};

// What it searches on: a device that computes, and where it tells of its progress.
struct SearchPlace {
  Backend& backend;
  const Observer& observer;
  const StopSignal& stop;
};

// Error{Cancelled} or Error{Limit} if `place.stop` says so; otherwise what stands in the way (no
// memory for the buffers, no machine code) is told and the cost model's list stands.  `base` says
// whether candidates are verified.
SearchResult search_options(const Kernel& kernel, const SearchPlace& place,
                            const PipelineOptions& base, const SearchLimits& limits);

}  // namespace tiny

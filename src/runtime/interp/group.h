// A group of threads, run by one: each in its turn as far as the next Barrier or GroupFold, where
// they meet.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/bytecode.h"
#include "runtime/host.h"
#include "runtime/interp/step.h"

namespace tiny::interp {

// Of a program, or of one group of a grouped one.
int64_t scratch_bytes(const BytecodeHeader& header);

// The op of a GroupFold on values at 0 and at `slot_bytes` of a frame, with the result behind them.
struct GroupFold {
  Step combine;
  int64_t slot_bytes = 0;
};
struct GroupCode {
  const std::string& name;
  const BytecodeHeader& header;
  std::span<const Step> steps;       // a GroupFold's `d`: its number, from 1
  std::span<const GroupFold> folds;  // by number
};

// Runs the groups from args.begin to before args.end.  Error{Internal} if its threads part before
// they meet.
void run_groups(const GroupCode& code, const KernelArgs& args);

}  // namespace tiny::interp

// A group of threads, run by one: each in its turn as far as the next Barrier, GroupFold or
// Mma, where they meet.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/bytecode.h"
#include "base/matrix.h"
#include "runtime/host.h"
#include "runtime/interp/step.h"

namespace tiny::interp {

// Of a program, or of one group of a grouped one.
int64_t scratch_bytes(const BytecodeHeader& header);

// The op of a GroupFold on values at 0 and at `slot_bytes` of a frame, with the result behind them;
// or what each warp does: a row of products of matrices, or none where matrices are loaded.
struct GroupMeeting {
  Step combine;
  int64_t slot_bytes = 0;
  bool is_of_warps = false;
  const MatrixRow* matrices = nullptr;
};
struct GroupCode {
  const std::string& name;
  const BytecodeHeader& header;
  std::span<const Step> steps;             // of a meeting `d`: its number, from 1; 0: a Barrier
  std::span<const GroupMeeting> meetings;  // by number
};

// The product of the matrices whose elements the threads of one warp have in their frames.
using WarpFrames = std::span<std::byte* const, kWarpThreads>;
void multiply_matrices(const MatrixRow& row, const Step& step, WarpFrames frames);
// The same of a row whose operands lie in the memory that the group shares, of one of its warps.
void multiply_shared(const MatrixRow& row, const Step& step, WarpFrames frames,
                     const std::byte* shared, int64_t warp);
// The words of the matrices whose rows begin at the addresses that the threads have.
void load_matrices(const Step& step, WarpFrames frames);

// Runs the groups from args.begin to before args.end.  Error{Internal} if its threads part before
// they meet.
void run_groups(const GroupCode& code, const KernelArgs& args);

}  // namespace tiny::interp

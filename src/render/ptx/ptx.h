// Linear programs to PTX, the text that the assemblers of NVIDIA's drivers and toolkit read.
// docs/architecture/ptx.md is the contract with whoever loads, launches or emulates it: the forms
// of instructions, the parameters, their order, and the geometry of a launch.
//
// Registers are virtual and the assembler schedules and allocates: an op is a few lines, a vector
// is a register a lane.  It gives the bits that docs/semantics.md states.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/code.h"
#include "base/matrix.h"
#include "ir/linear.h"

namespace tiny {

// Whether this build has the renderer; what follows is Error{Unsupported} otherwise.
bool has_ptx_renderer();

inline constexpr int kAnyPtx = INT32_MAX;

struct PtxTarget {
  std::string name = "sm_75";   // of `.target`
  std::string version = "6.3";  // of `.version`: the lowest that knows the target
  int compute = 75;             // what it can do: major * 10 + minor
  bool has_own = true;          // whether what devices of this capability alone have is known
  // Of the address in every slot, beside the slot's own alignment: who launches sees to it.
  int64_t parameter_alignment = 16;
};

// Of a device of this compute capability, 75 or more: the newest that is known, not above it, and
// that PTX of `version` (major * 10 + minor) has: code for it runs on later devices too.
PtxTarget ptx_target(int compute, int version = kAnyPtx);
// By its name, "sm_90a"; Error{InvalidArgument} lists those that are known.
PtxTarget ptx_target(const std::string& name);

// The rows that kernels for it may have; those that round float32 where allowed.
MatrixSet matrices_of(const PtxTarget& target, bool may_round_float);

// Shared memory that a kernel may declare; more is asked for at the launch.
inline constexpr int64_t kStaticSharedBytes = 48 << 10;
// A thread's own memory (CUDA C++ Programming Guide, "Technical Specifications").
inline constexpr int64_t kLocalBytesMax = 512 << 10;

// One unit with one entry.  The program is one that verify() accepts, with no arithmetic on float16
// and bfloat16: else Error{Internal}.  Error{Unsupported} names an op that cannot be spelled
// (Scale), or says that a thread's memory is too large.
Code render_ptx(const LinearProgram& program, const PtxTarget& target);

// One unit with an entry for each program; their names differ.  The text is the first code's.
std::vector<Code> render_ptx_unit(std::span<const LinearProgram> programs, const PtxTarget& target);

}  // namespace tiny

// The linear program: the one contract between codegen and render.  A flat list of ops from the op
// table, vector-typed, with structured loops and formed addresses.  Every renderer (machine code,
// C, bytecode) starts from it, and all must give the same bits.
//
// A value is named by the position of its op in the list; sources come before their users and are
// in an enclosing block (Loop..EndLoop, If..EndIf) or the same.  Nothing is interned here: position
// is identity.  Elementwise ops take and give equal lane counts (Where: a bool of equal lanes).
//
// clang-format off
// op          src                     imm                    aux    value
// Const                               bits of one lane              every lane that value
// Param                               slot                          address of the slot
// Scratch                             byte offset                   address in the worker's scratch
// Shared                              byte offset                   address in the group's memory
// Variable                            index                         int64, bound at launch
// LaunchArg                           0 begin 1 end 2 worker        int64 of KernelArgs; 0 of a
//                                     3.. the thread along axis 0.. grouped program: the group's
//                                                                   number
// Address     address, int64          bytes a unit                  address + int64 * imm
// Load        address, index [, mask] byte offset            stride lane l: element at address +
//                                                                   (index + l * aux) * size + imm
// Store       address, index,         byte offset            stride -
//             value [, mask]
// Prefetch    address, index          byte offset            unit   - (bytes at address + index * aux
//                                                                   + imm may be wanted soon; they
//                                                                   need not be there)
// Loop        begin, end (int64)      step > 0               mark   int64: begin, begin + step ..
// EndLoop     loop                                                  -
// Poll                                                              - (leaves the program if whoever
//                                                                   launched it wants that)
// If, EndIf   bool; the If                                          -
// Accumulator first value                                           a register: the value last Set
// Set         accumulator, value                                    -
// Broadcast   one lane                                              all lanes that value
// Ramp        int, one lane           step                          lane l: src + l * imm (wraps)
// LaneRange   low, high (int64)                                     bool: low <= l < high
// Fold        many lanes                                     Op     one lane: halves are combined,
//                                                                   l with l + n/2, to the last
// Dot         words, words, sum               DotKind              sum + the products of the words'
//                                                                   steps (ir/dot.h); words: uint32
// Check       bool, position          check number                  - (the status word, if any is
//                                                                   false and none failed before)
// Barrier                                                           - (what threads of the group have
//                                                                   stored before is stored for all)
// GroupFold   value                   axes, bits              Op     the values of the threads along
//                                                                   the axes, combined as by Fold; all
//                                                                   of these threads have it
// Mma         words, words, sum                      row    sum + A B: what the threads of a warp
//                                                                   have of A, B and sum
//                                                                   (base/matrix.h); words: uint32
// Mma         address, address,       turned                 row    of a row whose operands the group
//             accumulator                                           shares: where they begin; a Set of
//                                                                   that accumulator follows, which is
//                                                                   worth it once the thread has waited
// LoadMatrix  address                 byte offset            1: turned  uint32, 2 or 4 lanes: words
//                                                                   of as many matrices of 8 rows of
//                                                                   16 bytes in the group's memory,
//                                                                   where threads 8 j .. of the warp
//                                                                   have the addresses of the rows of
//                                                                   matrix j.  Thread 4 g + t gets of
//                                                                   each word t of row g; turned: the
//                                                                   elements g of 16 bits of the rows
//                                                                   2 t and 2 t + 1
// CopyAsync   address, address,       bytes of an     bytes  - (so many bytes are copied to the group's
//             int64                   element                memory from elsewhere, only the first
//                                                            int64 of them, then zeros; they are
//                                                            there once the thread has waited)
// Commit                                                     - (the thread's copies since the last
//                                                            one are a group)
// WaitCopies                          groups                 - (until no more than these, the last
//                                                            ones, are under way)
// Fence                               0 or 1                     - (0: what the thread has stored in
//                                                            the group's memory, is there for Mmas
//                                                            behind a barrier; 1: what it has set,
//                                                            is there for those that follow)
// CommitMmas                                             - (the thread's Mmas of shared operands
//                                                            since the last one are a group)
// WaitMmas                        groups                 - (as WaitCopies, of these groups)
// Join        value, value                                          the lanes of the first, then those
//                                                                   of the second, as many
// Part        value                   first                         its lanes from that one on
// clang-format on
//
// A grouped program is called once for each thread of a group, whose coordinates lie below `group`.
// All threads of a group come to the same Barriers, GroupFolds, Mmas and LoadMatrices, as often: no
// If or Loop around one depends on the thread.  These, Shared and LaunchArg 3.. are for such
// programs; one with Mma or LoadMatrix has kLaneColumns threads along axis 0 and kLaneRows along
// axis 1, so that those of a warp have one coordinate along axis 2.
//
// Load and Store: index is int64, one lane, or (a gather or scatter) int64 with the lanes of the
// value, aux 0.  Lane stride 0 is not used: load one lane and Broadcast.  The mask is a bool with
// the lanes of the value; lanes that are false are not accessed and load as zero.  One-lane loads
// and stores have no mask: the maker makes the index safe, or wraps them in If.
// A Loop's mark is for codegen: 1, its steps may overlap; more, so many rooms for what a group
// shares in it (codegen/linear/group_pipeline.h). A store with `bypass` (of adjacent lanes, without
// a mask) is of what nobody reads soon: it may pass the caches.  The program's end orders it like
// any other store. A bool is a byte 0 or 1 in memory.  Cast to Float16/BFloat16 rounds to nearest
// even.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/op.h"

namespace tiny {

class StopSignal;

using LinearId = uint32_t;

struct LinearOp {
  Op op = Op::Const;
  DType dtype;
  uint8_t count = 0;  // of src
  std::array<LinearId, 4> src{};
  int64_t imm = 0;
  int32_t aux = 0;
  bool bypass = false;  // of Store
};

struct LinearParam {
  DType element;
  bool read = false;
  bool written = false;
  int64_t alignment = 1;  // bytes that its address is a multiple of, beside its element's
};

struct LinearVariable {
  std::string name;
  int64_t min = 0;
  int64_t max = 0;
};

struct LinearProgram {
  std::string name;  // "r_128_32_4": a C identifier
  std::vector<LinearParam> params;
  std::vector<LinearVariable> variables;
  int64_t scratch_bytes = 0;  // a worker, or a thread
  bool threaded = false;      // reads begin and end; else one call does the whole kernel
  bool grouped = false;
  std::array<int64_t, 3> group{1, 1, 1};  // threads, by axis
  int64_t shared_bytes = 0;               // a group
  int64_t launch_max = INT64_MAX;         // steps, or groups, of a launch at the most
  std::vector<LinearOp> ops;
  // Who ends work on it early: passes and renderers throw what the signal says; null: nobody.
  // Outlives that work.
  const StopSignal* stop = nullptr;

  int64_t group_threads() const { return group[0] * group[1] * group[2]; }

  LinearId add(Op op, DType dtype, std::initializer_list<LinearId> src = {}, int64_t imm = 0,
               int32_t aux = 0);
};

// One op a line: "  %12 = float32x16 fma %3 %10 %11".  Blocks are indented.
std::string to_string(const LinearProgram& program);

// Checks every law above; throws Error{Internal} that names the op and the law.
void verify(const LinearProgram& program);

}  // namespace tiny

// What the dialects for groups of threads share (OpenCL C, HIP, Metal): a kernel's head, what its
// leaves are called, and a unit of several.
//
// A kernel's arguments: for each parameter slot a buffer and a byte offset, a number for each
// variable, `begin` and `end` (as Launch has them), then the queue's status (base/opencl_abi.h).  A
// piece of the THREAD range is a thread of a kernel without groups, and those behind `end` do
// nothing; of a grouped program it is a group of LinearProgram::group threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/linear.h"
#include "render/c/dialect.h"

namespace tiny::c {

// Patterns have $0 .. for what stands behind them.
struct GroupWords {
  const char* entry;    // before "void"
  const char* grouped;  // the same, of a grouped kernel: sizes of the axes, and their product
  const char* buffer;   // a parameter: its number
  const char* numbers;  // what all numbers are in: its place; null: each is a parameter
  const char* tail;     // the parameters behind: the place of the status in the numbers of buffers
  const char* group;    // the number of the group,
  const char* any;      // and of the thread among those of all groups
  std::array<const char*, 3> thread;  // its number in the group, by axis
  const char* shared;                 // the definition of memory of a group: name, bytes
  const char* scratch;                // of a thread
};

// What each of their units has behind the dialect's own types uchar, ushort, uint, i64 and u64:
// vectors as structs of lanes, and the names of types.
extern const char* const kStructsOfLanes;

// As Dialect::opening and Dialect::leaf.
std::string group_opening(const GroupWords& words, const LinearProgram& program,
                          int64_t fold_bytes);
std::string group_leaf(const GroupWords& words, const Dialect& dialect,
                       const LinearProgram& program, const LinearOp& op);

// One translation unit with a kernel for each program; their names differ.
std::string group_unit(const Dialect& dialect, std::span<const LinearProgram> programs);

}  // namespace tiny::c

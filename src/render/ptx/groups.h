// What threads of a group do together: folds over some of their axes.
//
// Threads are numbered as the hardware has them: along axis 0, then 1, then 2, 32 of them a warp.
// A step of a fold combines values of two threads whose coordinates differ in one bit.  Where these
// are surely in one warp they are shuffled; else all threads write theirs to shared memory, and
// each reads what a few steps need.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "ir/linear.h"
#include "render/ptx/writer.h"

namespace tiny::ptx {

inline constexpr uint32_t kWarp = 32;  // threads

// Threads along axis 2 (CUDA C++ Programming Guide, "Technical Specifications").
inline constexpr int64_t kAxis2Max = 64;

// The block of a launch: the group, or its threads in a row where axis 2 has more than a block may.
std::array<int64_t, 3> block_of(const LinearProgram& program);
// Where a thread is along an axis of the group, as a register of 32 bits.
Operand coordinate(Writer& out, const LinearProgram& program, size_t axis);

// Shared memory that the program's folds need, behind its own.
int64_t fold_bytes(const LinearProgram& program);

class GroupFolds {
 public:
  // `shared`: the address of that memory; not looked at if there is none.
  GroupFolds(Writer& out, const LinearProgram& program, const Operand& shared)
      : out_(out), program_(program), shared_(shared) {}

  // The lane of all threads along the axes, combined as ir/linear.h says; all of them have it.
  Operand fold(Op op, DType dtype, uint32_t axes, const Operand& own);

 private:
  // One step: the other thread's coordinate has another bit, so many threads apart.
  struct Step {
    size_t axis = 0;
    uint32_t bit = 0;
    uint32_t apart = 0;
    bool in_warp = false;
  };
  friend int64_t fold_bytes(const LinearProgram& program);

  static std::vector<Step> steps_of(const LinearProgram& program, uint32_t axes);
  Operand shuffled(Op op, DType dtype, const Step& step, const Operand& own);
  Operand exchanged(Op op, DType dtype, const Step* steps, size_t count, const Operand& own);
  Operand combine(Op op, DType dtype, const Operand& low, const Operand& high);
  Operand shuffle_word(uint32_t apart, const Operand& own);
  Operand thread();
  Operand is_high(const Step& step);

  Writer& out_;
  const LinearProgram& program_;
  Operand shared_;
};

}  // namespace tiny::ptx

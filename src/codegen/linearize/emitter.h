// Ops of the linear program as values are made of them: constants and broadcasts once, operations
// on constants folded, operands widened to the lanes of the widest, each in the outermost block
// where its operands are visible.
//
// reads: the blocks that are open, and nothing of the kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include "codegen/linearize/block.h"

namespace tiny {

class Emitter : public BlockTree {
 public:
  explicit Emitter(LinearProgram& program) : BlockTree(program) {}

  LinearId constant(DType dtype, uint64_t bits);
  LinearId index_constant(int64_t value) { return constant(kInt64, static_cast<uint64_t>(value)); }
  LinearId widened(LinearId id, int64_t lanes);
  // One op over operands that may be constants; `dtype` is that of a lane.
  LinearId elementwise(Op op, DType dtype, std::span<const LinearId> src);
  LinearId elementwise(Op op, DType dtype, std::initializer_list<LinearId> src) {
    return elementwise(op, dtype, std::span(src.begin(), src.size()));
  }
  LinearId equals(LinearId value, int64_t number) {
    return elementwise(Op::Equal, kBool, {value, index_constant(number)});
  }

  // No load and no operation is placed further out than this depth until it is 0 again: what is
  // seldom wanted, and much of it, is made where it is wanted, in the registers of what it is made
  // of.
  void place_within(size_t depth) { least_depth_ = depth; }
  size_t least_depth() const { return least_depth_; }

  // The depth of the facts that the values made since the last start_value() hold by: none of them
  // may be remembered further out.
  size_t relied_on() const { return relied_on_; }
  void set_relied_on(size_t depth) { relied_on_ = depth; }
  void rely_on(size_t depth) { relied_on_ = std::max(relied_on_, depth); }
  // Begins anew; what was relied on before.
  size_t start_value() { return std::exchange(relied_on_, 0); }

 private:
  size_t relied_on_ = 0;
  size_t least_depth_ = 0;
};

}  // namespace tiny

// A linear program as the selector asks about it.
#pragma once

#include <optional>

#include "ir/linear.h"

namespace tiny::x86 {

class LinearView {
 public:
  explicit LinearView(const LinearProgram& program) : program_(program) {}

  LinearId size() const { return static_cast<LinearId>(program_.ops.size()); }
  const LinearOp& op(LinearId id) const { return program_.ops[id]; }
  const LinearOp& source(const LinearOp& o, size_t i) const { return program_.ops[o.src[i]]; }
  bool is_const(LinearId id) const { return op(id).op == Op::Const; }
  int64_t const_value(LinearId id) const;
  // One bit a lane, if the mask is known.
  std::optional<uint64_t> constant_mask(LinearId id) const;

 private:
  const LinearProgram& program_;
};

}  // namespace tiny::x86

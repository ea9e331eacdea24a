#include "render/ptx/alignment.h"

#include <algorithm>
#include <bit>

namespace tiny::ptx {
namespace {

constexpr int kAll = 64;  // of the number 0

int zeros_of(int64_t value) {
  return std::countr_zero(static_cast<uint64_t>(value));
}

class ZeroBits {
 public:
  ZeroBits(const LinearProgram& program, int64_t parameter_alignment)
      : program_(program),
        parameter_zeros_(zeros_of(parameter_alignment)),
        known_(program.ops.size()) {}

  std::vector<uint8_t> run() {
    for (size_t at = 0; at < known_.size(); ++at) {
      const LinearOp& op = program_.ops[at];
      if (op.dtype.lanes == 1 && (op.dtype.is_int() || op.dtype == kAddress))
        known_[at] = static_cast<uint8_t>(std::clamp(of(op), 0, kAll));
    }
    return std::move(known_);
  }

 private:
  int source(const LinearOp& op, size_t i) const { return known_[op.src[i]]; }
  int least(const LinearOp& op) const { return std::min(source(op, 0), source(op, 1)); }
  // Of a constant that is not negative, else -1.
  int64_t number(const LinearOp& op, size_t i) const {
    const LinearOp& from = program_.ops[op.src[i]];
    return from.op == Op::Const ? std::max<int64_t>(from.imm, -1) : -1;
  }

  int of_memory(const LinearOp& op) const {
    switch (op.op) {
      case Op::Param:
        return parameter_zeros_;
      case Op::Shared:
      case Op::Scratch:
        return std::min(zeros_of(kMemoryAlignment), zeros_of(op.imm));
      case Op::Address:
        return std::min(source(op, 0), source(op, 1) + zeros_of(op.imm));
      default:
        return 0;
    }
  }

  int of(const LinearOp& op) const {
    switch (op.op) {
      case Op::Const:
        return zeros_of(op.imm);
      case Op::LaunchArg:
        return op.imm >= 3 && program_.group[static_cast<size_t>(op.imm - 3)] == 1 ? kAll : 0;
      case Op::Loop:
        return std::min(source(op, 0), zeros_of(op.imm));
      case Op::Add:
      case Op::Sub:
      case Op::Max:
      case Op::Min:
      case Op::Or:
      case Op::Xor:
        return least(op);
      case Op::And:
        return std::max(source(op, 0), source(op, 1));
      case Op::Mul:
        return source(op, 0) + source(op, 1);
      case Op::Neg:
      case Op::Abs:
        return source(op, 0);
      case Op::Where:
        return std::min(source(op, 1), source(op, 2));
      case Op::Shl:
        return source(op, 0) + static_cast<int>(std::clamp<int64_t>(number(op, 1), 0, kAll));
      case Op::FloorMod:
      case Op::TruncMod:
        return least(op);
      case Op::Cast:  // of integers: the low bits are kept
        return program_.ops[op.src[0]].dtype.is_int() ? source(op, 0) : 0;
      default:
        return of_memory(op);
    }
  }

  const LinearProgram& program_;
  int parameter_zeros_;
  std::vector<uint8_t> known_;
};

}  // namespace

std::vector<uint8_t> zero_bits(const LinearProgram& program, int64_t parameter_alignment) {
  return ZeroBits(program, parameter_alignment).run();
}

}  // namespace tiny::ptx

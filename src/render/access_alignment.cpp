#include "render/access_alignment.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "ir/dtype.h"

namespace tiny {

namespace {

// Low bits of more than this nobody asks for.
constexpr uint64_t kModulusMax = 256;
static_assert(kLocalAlignment <= int64_t{kModulusMax});

// A number as a multiple of a power of two and what is left: `rest` < `modulus`.
struct Congruence {
  uint64_t modulus = 1;
  uint64_t rest = 0;
};

Congruence exactly(int64_t v) {
  return {kModulusMax, static_cast<uint64_t>(v) % kModulusMax};
}
// The greatest power of two that divides a number; of 0 the greatest that is told apart.
uint64_t factor_of(uint64_t v) {
  return v == 0 ? kModulusMax : std::min(kModulusMax, v & (~v + 1));
}
uint64_t factor_of(const Congruence& c) {
  return std::min(c.modulus, factor_of(c.rest));
}
Congruence with_modulus(uint64_t modulus, uint64_t rest) {
  return {modulus, rest % modulus};
}

Congruence sum(const Congruence& a, const Congruence& b) {
  return with_modulus(std::min(a.modulus, b.modulus), a.rest + b.rest);
}
Congruence difference(const Congruence& a, const Congruence& b) {
  return with_modulus(std::min(a.modulus, b.modulus), a.rest - b.rest);
}
// (m x + r) (n y + s) = m n x y + m s x + n r y + r s.
Congruence product(const Congruence& a, const Congruence& b) {
  const uint64_t modulus = std::min({kModulusMax, a.modulus * b.modulus,
                                     a.modulus * factor_of(b.rest), b.modulus * factor_of(a.rest)});
  return with_modulus(modulus, a.rest * b.rest);
}
// One or the other.
Congruence either(const Congruence& a, const Congruence& b) {
  const uint64_t modulus = std::min({a.modulus, b.modulus, factor_of(a.rest - b.rest)});
  return with_modulus(modulus, a.rest);
}

class Analysis {
 public:
  Analysis(const LinearProgram& program, const std::vector<Congruence>& known)
      : program_(program), known_(known) {}

  // Of an address, or of each lane of an integer; nothing is known of another value.
  Congruence of(const LinearOp& op) const {
    switch (op.op) {
      case Op::Const:
        return op.dtype.is_int() ? exactly(op.imm) : Congruence{};
      case Op::Param: {
        const LinearParam& p = program_.params[static_cast<size_t>(op.imm)];
        return {factor_of(static_cast<uint64_t>(std::max(p.alignment, p.element.bytes()))), 0};
      }
      case Op::Scratch:
      case Op::Shared:
        return sum({uint64_t{kLocalAlignment}, 0}, exactly(op.imm));
      case Op::Address:
        return sum(at(op, 0), product(at(op, 1), exactly(op.imm)));
      case Op::Loop:
        return sum(at(op, 0), product(Congruence{}, exactly(op.imm)));
      case Op::Broadcast:
        return at(op, 0);
      case Op::Ramp:
        return sum(at(op, 0), product(Congruence{}, exactly(op.imm)));
      default:
        return op.dtype.is_int() && has(op.op, kElementwise) ? elementwise(op) : Congruence{};
    }
  }

  int64_t of_copy(const LinearOp& op) const {
    return static_cast<int64_t>(std::min(factor_of(at(op, 0)), factor_of(at(op, 1))));
  }

  int64_t of_access(const LinearOp& op) const {
    const DType element = (op.op == Op::Store ? program_.ops[op.src[2]].dtype : op.dtype).element();
    const auto least = static_cast<int64_t>(factor_of(static_cast<uint64_t>(element.bytes())));
    if (program_.ops[op.src[1]].dtype.lanes > 1) return least;
    const Congruence offset = sum(product(at(op, 1), exactly(element.bytes())), exactly(op.imm));
    return std::max(least, static_cast<int64_t>(factor_of(sum(at(op, 0), offset))));
  }

 private:
  const Congruence& at(const LinearOp& op, size_t i) const { return known_[op.src[i]]; }

  // Integers wrap at powers of two that are multiples of every modulus but that of a byte.
  Congruence elementwise(const LinearOp& op) const {
    const Congruence exact = exact_of(op);
    const uint64_t wraps = op.dtype.bits() < 64 ? uint64_t{1} << op.dtype.bits() : kModulusMax;
    return with_modulus(std::min(exact.modulus, wraps), exact.rest);
  }
  Congruence exact_of(const LinearOp& op) const {
    switch (op.op) {
      case Op::Add:
        return sum(at(op, 0), at(op, 1));
      case Op::Sub:
        return difference(at(op, 0), at(op, 1));
      case Op::Mul:
        return product(at(op, 0), at(op, 1));
      case Op::Neg:
        return difference(exactly(0), at(op, 0));
      case Op::Max:
      case Op::Min:
        return either(at(op, 0), at(op, 1));
      case Op::Where:
        return either(at(op, 1), at(op, 2));
      case Op::Shl:
        return shifted(op);
      case Op::FloorDiv:
        return quotient(op);
      case Op::FloorMod:
        return remainder(op);
      case Op::Cast:
        return program_.ops[op.src[0]].dtype.is_int() ? at(op, 0) : Congruence{};
      default:
        return {};
    }
  }
  const LinearOp* constant(const LinearOp& op, size_t i) const {
    const LinearOp& source = program_.ops[op.src[i]];
    return source.op == Op::Const ? &source : nullptr;
  }
  Congruence shifted(const LinearOp& op) const {
    const LinearOp* by = constant(op, 1);
    if (!by || by->imm < 0 || by->imm >= op.dtype.bits()) return {};
    const uint64_t times =
        by->imm < std::countr_zero(kModulusMax) ? uint64_t{1} << by->imm : uint64_t{kModulusMax};
    return product(at(op, 0), {kModulusMax, times % kModulusMax});
  }
  // By a power of two whose multiples are known.
  Congruence quotient(const LinearOp& op) const {
    const LinearOp* by = constant(op, 1);
    if (!by || by->imm < 1 || !std::has_single_bit(static_cast<uint64_t>(by->imm))) return {};
    const auto d = static_cast<uint64_t>(by->imm);
    if (d > at(op, 0).modulus) return {};
    return {at(op, 0).modulus / d, at(op, 0).rest / d};
  }
  // x - d (x // d).
  Congruence remainder(const LinearOp& op) const {
    const LinearOp* by = constant(op, 1);
    if (!by || by->imm < 1) return {};
    return sum(at(op, 0), product(Congruence{}, exactly(by->imm)));
  }

  const LinearProgram& program_;
  const std::vector<Congruence>& known_;
};

}  // namespace

AccessAlignment::AccessAlignment(const LinearProgram& program) {
  std::vector<Congruence> known;
  known.reserve(program.ops.size());
  alignment_.assign(program.ops.size(), 1);
  const Analysis analysis(program, known);
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const LinearOp& op = program.ops[id];
    if (op.op == Op::Load || op.op == Op::Store) alignment_[id] = analysis.of_access(op);
    if (op.op == Op::CopyAsync) alignment_[id] = analysis.of_copy(op);
    known.push_back(analysis.of(op));
    factor_.push_back(static_cast<int64_t>(factor_of(known.back())));
  }
}

int64_t access_bytes(const LinearProgram& program, const AccessAlignment& alignment,
                     LinearId access, int64_t widest) {
  const LinearOp& op = program.ops[access];
  const DType value = op.op == Op::Store ? program.ops[op.src[2]].dtype : op.dtype;
  const int64_t element = value.element().bytes();
  const size_t plain = op.op == Op::Store ? 3 : 2;
  if (value.lanes == 1 || op.aux != 1 || op.count > plain) return element;
  int64_t bytes = element;
  while (2 * bytes <= widest && alignment.of(access) % (2 * bytes) == 0 &&
         value.lanes * element % (2 * bytes) == 0)
    bytes *= 2;
  return bytes;
}

}  // namespace tiny

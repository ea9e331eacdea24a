// Division of integers.  What PTX gives for a divisor of 0, and for the lowest by -1, is the
// machine's own: they are divided by 1, and chosen afterwards.
#include <bit>

#include "base/error.h"
#include "render/ptx/arithmetic.h"

namespace tiny::ptx {
namespace {

bool is_quotient(Op op) {
  return op == Op::FloorDiv || op == Op::TruncDiv;
}

bool goes_down(Op op) {
  return op == Op::FloorDiv || op == Op::FloorMod;
}

class Division {
 public:
  Division(Writer& out, Op op, DType dtype, const Operand& a)
      : out_(out), op_(op), dtype_(dtype), a_(a), type_(int_type(dtype)) {}

  // By a number that is neither 0 nor -1.
  Operand by_constant(const Operand& b) {
    const int64_t divisor = int_of(dtype_.bits() == 64 ? dtype_ : kInt32, b.value);
    const auto magnitude = static_cast<uint64_t>(divisor);
    const bool is_power = divisor > 0 && std::has_single_bit(magnitude);
    if (is_power && (dtype_.is_unsigned() || goes_down(op_))) {
      if (!is_quotient(op_))
        return out_.make("and", bits_type(dtype_), {a_, constant(dtype_, magnitude - 1)});
      return out_.make("shr", type_,
                       {a_, word(static_cast<uint32_t>(std::countr_zero(magnitude)))});
    }
    if (dtype_.is_unsigned() || !goes_down(op_)) return towards_zero(b);
    const Operand q = out_.make("div", type_, {a_, b}), r = remainder(q, b);
    return down(q, r, b, out_.compare(divisor > 0 ? "lt" : "gt", type_, {r, zero()}));
  }

  Operand by_any(const Operand& b) {
    const Operand is_zero = out_.compare("eq", type_, {b, zero()});
    Operand is_special = is_zero, is_minus_one = is_zero;
    if (dtype_.is_signed()) {
      is_minus_one = out_.compare("eq", type_, {b, constant(dtype_, minus_one())});
      is_special = out_.make("or", "pred", {is_zero, is_minus_one});
    }
    const Operand safe = out_.choose(dtype_, is_special, constant(dtype_, 1), b);
    Operand result;
    if (dtype_.is_unsigned() || !goes_down(op_)) {
      result = towards_zero(safe);
    } else {
      const Operand q = out_.make("div", type_, {a_, safe}), r = remainder(q, safe);
      const Operand signs = out_.make("xor", bits_type(dtype_), {r, safe});
      const Operand differ = out_.compare("lt", type_, {signs, zero()});
      result = down(q, r, safe, out_.compare("ne.and", type_, {r, zero(), differ}));
    }
    if (!is_quotient(op_)) return result;  // of a division by 1: 0
    if (dtype_.is_signed())
      result = out_.choose(dtype_, is_minus_one, out_.make("neg", type_, {a_}), result);
    return narrowed(out_, dtype_, out_.choose(dtype_, is_zero, zero(), result));
  }

  static uint64_t minus_one() { return ~uint64_t{0}; }

 private:
  Operand zero() const { return constant(dtype_, 0); }
  Operand towards_zero(const Operand& b) {
    return out_.make(is_quotient(op_) ? "div" : "rem", type_, {a_, b});
  }
  Operand remainder(const Operand& q, const Operand& b) {
    return out_.make("sub", type_, {a_, out_.make("mul.lo", type_, {q, b})});
  }
  // From what goes towards 0 to what goes down, where the remainder has the other sign.
  Operand down(const Operand& q, const Operand& r, const Operand& b, const Operand& differs) {
    const bool wants_quotient = is_quotient(op_);
    const Operand further = wants_quotient ? out_.make("sub", type_, {q, constant(dtype_, 1)})
                                           : out_.make("add", type_, {r, b});
    return out_.choose(dtype_, differs, further, wants_quotient ? q : r);
  }

  Writer& out_;
  Op op_;
  DType dtype_;
  Operand a_;
  std::string type_;
};

}  // namespace

Operand division(Writer& out, Op op, DType dtype, const Operand& a, const Operand& b) {
  Division by(out, op, dtype, a);
  if (!b.is_constant) return by.by_any(b);
  const bool is_minus_one = dtype.is_signed() && b == constant(dtype, Division::minus_one());
  if (b.value == 0 || (is_minus_one && !is_quotient(op))) return constant(dtype, 0);
  if (is_minus_one) return arithmetic(out, Op::Neg, dtype, a, a, a);
  return by.by_constant(b);
}

}  // namespace tiny::ptx

// A deliberately naive evaluator of linear programs: the second opinion that renderers are tested
// against.  A value is a vector of 64-bit words, one a lane, holding the bits of the lane's dtype.
// Integers are computed exactly in 128 bits and wrapped; nothing is shared with the interpreter.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "base/kernel_abi.h"
#include "ir/dot.h"
#include "ir/linear.h"

namespace tiny::naive {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;
using Lanes = std::vector<uint64_t>;

inline Wide wide_of(DType t, uint64_t bits) {
  return t.is_signed() ? static_cast<Wide>(int_of(t, bits)) : static_cast<Wide>(bits);
}
inline uint64_t wrap(DType t, Wide value) {
  if (t.is_bool()) return value != 0;
  const auto low = static_cast<uint64_t>(value);
  return t.bits() == 64 ? low : low & ((uint64_t{1} << t.bits()) - 1);
}
inline double real_of(DType t, uint64_t bits) {
  return t.is_float() ? double_of(t, bits) : static_cast<double>(wide_of(t, bits));
}

inline Wide floor_quotient(Wide a, Wide b) {
  Wide q = a / b;
  if (q * b != a && (a < 0) != (b < 0)) --q;
  return q;
}

template <class T>
uint64_t compared(Op op, T a, T b) {
  switch (op) {
    case Op::Less:
      return a < b;
    case Op::LessEqual:
      return a <= b;
    case Op::Equal:
      return a == b;
    case Op::NotEqual:
      return a != b;
    default:
      throw Error(Status::Internal, cat("naive: no ", info(op).name));
  }
}

inline uint64_t integer_op(Op op, DType t, uint64_t x, uint64_t y) {
  const Wide a = wide_of(t, x), b = wide_of(t, y);
  const Wide width = t.bits();
  switch (op) {
    case Op::Neg:
      return wrap(t, -a);
    case Op::Abs:
      return wrap(t, a < 0 ? -a : a);
    case Op::Not:
      return t.is_bool() ? a == 0 : wrap(t, ~a);
    case Op::Add:
      return wrap(t, a + b);
    case Op::Sub:
      return wrap(t, a - b);
    case Op::Mul:
      return wrap(t,
                  static_cast<Wide>(static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b)));
    case Op::FloorDiv:
      return b == 0 ? 0 : wrap(t, floor_quotient(a, b));
    case Op::FloorMod:
      return b == 0 ? 0 : wrap(t, a - b * floor_quotient(a, b));
    case Op::TruncDiv:
      return b == 0 ? 0 : wrap(t, a / b);
    case Op::TruncMod:
      return b == 0 ? 0 : wrap(t, a % b);
    case Op::Max:
      return b > a ? y : x;
    case Op::Min:
      return b < a ? y : x;
    case Op::And:
      return x & y;
    case Op::Or:
      return x | y;
    case Op::Xor:
      return x ^ y;
    case Op::Shl:
      return b < 0 || b >= width
                 ? 0
                 : wrap(t, static_cast<Wide>(static_cast<UnsignedWide>(a) << static_cast<int>(b)));
    case Op::Shr:
      return b < 0 || b >= width ? wrap(t, a < 0 ? -1 : 0) : wrap(t, a >> static_cast<int>(b));
    default:
      return compared(op, a, b);
  }
}

template <class F>
F scaled(F a, F b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (std::isinf(b)) return b > 0 ? a * b : a * F{0};
  const F n = std::floor(b);
  return std::ldexp(a, n > 5000 ? 5000 : n < -5000 ? -5000 : static_cast<int>(n));
}

template <class F, class U>
uint64_t float_op(Op op, uint64_t x, uint64_t y, uint64_t z) {
  const F a = std::bit_cast<F>(static_cast<U>(x)), b = std::bit_cast<F>(static_cast<U>(y)),
          c = std::bit_cast<F>(static_cast<U>(z));
  const U sign = U{1} << (8 * sizeof(U) - 1);
  const auto bits = [](F value) -> uint64_t { return std::bit_cast<U>(value); };
  switch (op) {
    case Op::Neg:
      return static_cast<U>(x) ^ sign;
    case Op::Abs:
      return static_cast<U>(x) & static_cast<U>(~sign);
    case Op::Sqrt:
      return bits(std::sqrt(a));
    case Op::Floor:
      return bits(std::floor(a));
    case Op::Ceil:
      return bits(std::ceil(a));
    case Op::Trunc:
      return bits(std::trunc(a));
    case Op::Round:
      return bits(std::nearbyint(a));
    case Op::Add:
      return bits(a + b);
    case Op::Sub:
      return bits(a - b);
    case Op::Mul:
      return bits(a * b);
    case Op::Div:
      return bits(a / b);
    case Op::Scale:
      return bits(scaled(a, b));
    case Op::Fma:
      return bits(std::fma(a, b, c));
    case Op::Max:
      return b > a || std::isnan(b) ? y : x;
    case Op::Min:
      return b < a || std::isnan(b) ? y : x;
    default:
      return compared(op, a, b);
  }
}

inline uint64_t float_to_int(DType to, double value) {
  if (std::isnan(value)) return 0;
  const double low = real_of(to, lowest_bits(to)), high = real_of(to, highest_bits(to));
  if (value <= low) return lowest_bits(to);
  if (value >= high) return highest_bits(to);
  return wrap(to, static_cast<Wide>(value));
}

inline uint64_t cast(DType to, DType from, uint64_t x) {
  if (to.is_bool()) return from.is_float() ? double_of(from, x) != 0 : x != 0;
  if (!to.is_float())
    return from.is_float() ? float_to_int(to, double_of(from, x)) : wrap(to, wide_of(from, x));
  if (to == kFloat64) return std::bit_cast<uint64_t>(real_of(from, x));
  const float f = from.is_float()    ? static_cast<float>(double_of(from, x))
                  : from.is_signed() ? static_cast<float>(int_of(from, x))
                                     : static_cast<float>(x);
  if (to == kFloat32) return std::bit_cast<uint32_t>(f);
  return to == kFloat16 ? half_from_float(f) : bfloat_from_float(f);
}

inline uint64_t arithmetic(Op op, DType operand, uint64_t x, uint64_t y = 0, uint64_t z = 0) {
  if (operand == kFloat32) return float_op<float, uint32_t>(op, x, y, z);
  if (operand == kFloat64) return float_op<double, uint64_t>(op, x, y, z);
  invariant(operand.is_int() || operand.is_bool(), "half types are not computed with");
  return integer_op(op, operand, x, y);
}

// A product added with one rounding, where denormals count as zero: in float64 the product is
// exact, and so is the sum where it decides whether it rounds to a normal number.
inline float flushed_fma(float a, float b, float c) {
  const auto flushed = [](float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; };
  const float x = flushed(a), y = flushed(b), z = flushed(c);
  const double sum = double{x} * y + z;
  if (std::abs(sum) < 0x1p-126 - 0x1p-151) return static_cast<float>(std::copysign(0.0, sum));
  return std::fma(x, y, z);
}

inline uint64_t dot(DotKind kind, uint32_t a, uint32_t b, uint32_t c) {
  if (kind == DotKind::Bf16) {
    float sum = std::bit_cast<float>(c);
    for (const int half : {1, 0})
      sum = flushed_fma(float_from_bfloat(static_cast<uint16_t>(a >> (16 * half))),
                        float_from_bfloat(static_cast<uint16_t>(b >> (16 * half))), sum);
    return std::bit_cast<uint32_t>(sum);
  }
  int64_t sum = c;
  for (int s = 0; s < 4; ++s) {
    const auto x = static_cast<uint8_t>(a >> (8 * s)), y = static_cast<uint8_t>(b >> (8 * s));
    const int64_t left = kind == DotKind::S8S8 ? static_cast<int8_t>(x) : x;
    const int64_t right = kind == DotKind::U8U8 ? y : static_cast<int8_t>(y);
    sum += left * right;
  }
  return static_cast<uint32_t>(sum);
}

class Evaluator {
 public:
  Evaluator(const LinearProgram& program, const KernelArgs& args)
      : program_(program), args_(args), values_(program.ops.size()) {}

  void run() {
    const auto& ops = program_.ops;
    for (size_t at = 0; at < ops.size();) at = step(at, ops[at]);
  }

 private:
  DType type(const LinearOp& op, size_t i) const { return program_.ops[op.src[i]].dtype.element(); }
  const Lanes& lanes(const LinearOp& op, size_t i) const { return values_[op.src[i]]; }
  int64_t integer(const LinearOp& op, size_t i) const {
    return static_cast<int64_t>(lanes(op, i)[0]);
  }

  // The op after the block that `at` opens.
  size_t after_block(size_t at) const {
    for (size_t i = at + 1;; ++i) {
      const LinearOp& op = program_.ops[i];
      if ((op.op == Op::EndLoop || op.op == Op::EndIf) && op.src[0] == at) return i + 1;
    }
  }

  size_t step(size_t at, const LinearOp& op) {
    Lanes& out = values_[at];
    switch (op.op) {
      case Op::Loop:
        out = {lanes(op, 0)[0], lanes(op, 1)[0]};  // the counter, and the end as it was on entry
        return integer(op, 0) < integer(op, 1) ? at + 1 : after_block(at);
      case Op::EndLoop: {
        Lanes& counter = values_[op.src[0]];
        const auto next = static_cast<int64_t>(counter[0]) + program_.ops[op.src[0]].imm;
        counter[0] = static_cast<uint64_t>(next);
        return next < static_cast<int64_t>(counter[1]) ? op.src[0] + 1 : at + 1;
      }
      case Op::If:
        return lanes(op, 0)[0] ? at + 1 : after_block(at);
      case Op::Poll:
        return args_.poll->ask(args_.poll) ? program_.ops.size() : at + 1;
      case Op::EndIf:
      case Op::Prefetch:
        break;
      case Op::Set:
        values_[op.src[0]] = Lanes(lanes(op, 1));
        break;
      case Op::Store:
        store(op);
        break;
      case Op::Check:
        for (uint64_t lane : lanes(op, 0))
          if (!lane && *args_.status == 0) *args_.status = check_status(op.aux, integer(op, 1));
        break;
      default:
        out = value(op);
    }
    return at + 1;
  }

  std::byte* element(const LinearOp& op, size_t lane, DType t) const {
    const Lanes& index = lanes(op, 1);
    const bool gather = program_.ops[op.src[1]].dtype.lanes > 1;
    const int64_t i = static_cast<int64_t>(gather ? index[lane] : index[0]) +
                      (gather ? 0 : static_cast<int64_t>(lane) * op.aux);
    return std::bit_cast<std::byte*>(lanes(op, 0)[0] +
                                     static_cast<uint64_t>(i * t.bytes() + op.imm));
  }

  void store(const LinearOp& op) const {
    const DType t = type(op, 2);
    for (size_t l = 0; l < lanes(op, 2).size(); ++l)
      if (op.count < 4 || lanes(op, 3)[l])
        std::memcpy(element(op, l, t), &lanes(op, 2)[l], static_cast<size_t>(t.bytes()));
  }

  Lanes load(const LinearOp& op) const {
    Lanes out(op.dtype.lanes, 0);
    for (size_t l = 0; l < out.size(); ++l)
      if (op.count < 3 || lanes(op, 2)[l])
        std::memcpy(&out[l], element(op, l, op.dtype), static_cast<size_t>(op.dtype.bytes()));
    return out;
  }

  Lanes fold(const LinearOp& op) const {
    Lanes v = lanes(op, 0);
    for (; v.size() > 1; v.resize(v.size() / 2))
      for (size_t l = 0; l < v.size() / 2; ++l)
        v[l] = arithmetic(static_cast<Op>(op.aux), op.dtype, v[l], v[l + v.size() / 2]);
    return v;
  }

  Lanes value(const LinearOp& op) const {
    const size_t n = op.dtype.lanes;
    const auto word = [](auto x) { return static_cast<uint64_t>(x); };
    switch (op.op) {
      case Op::Const:
        return Lanes(n, word(op.imm));
      case Op::Param:
        return {std::bit_cast<uint64_t>(args_.buffers[op.imm])};
      case Op::Scratch:
        return {std::bit_cast<uint64_t>(args_.scratch + op.imm)};
      case Op::Variable:
        return {word(args_.variables[op.imm])};
      case Op::LaunchArg:
        return {word(op.imm == 0 ? args_.begin : op.imm == 1 ? args_.end : args_.worker)};
      case Op::Address:
        return {lanes(op, 0)[0] + lanes(op, 1)[0] * word(op.imm)};
      case Op::Accumulator:
        return lanes(op, 0);
      case Op::Load:
        return load(op);
      case Op::Fold:
        return fold(op);
      case Op::Broadcast:
        return Lanes(n, lanes(op, 0)[0]);
      default:
        break;
    }
    Lanes out(n);
    for (size_t l = 0; l < n; ++l) out[l] = lane(op, l);
    return out;
  }

  uint64_t lane(const LinearOp& op, size_t l) const {
    const auto x = [&](size_t i) { return i < op.count ? lanes(op, i)[l] : 0; };
    switch (op.op) {
      case Op::Ramp: {
        const DType t = op.dtype.element();
        return wrap(t,
                    wide_of(t, lanes(op, 0)[0]) + static_cast<Wide>(op.imm) * static_cast<Wide>(l));
      }
      case Op::LaneRange: {
        const auto i = static_cast<int64_t>(l);
        return integer(op, 0) <= i && i < integer(op, 1);
      }
      case Op::Where:
        return x(0) ? x(1) : x(2);
      case Op::Cast:
        return cast(op.dtype.element(), type(op, 0), x(0));
      case Op::Bitcast:
        return x(0);
      case Op::Dot:
        return dot(static_cast<DotKind>(op.aux), static_cast<uint32_t>(x(0)),
                   static_cast<uint32_t>(x(1)), static_cast<uint32_t>(x(2)));
      default:
        return arithmetic(op.op, type(op, 0), x(0), x(1), x(2));
    }
  }

  const LinearProgram& program_;
  const KernelArgs& args_;
  std::vector<Lanes> values_;
};

// Runs the program as one worker with these arguments.
inline void run(const LinearProgram& program, const KernelArgs& args) {
  Evaluator(program, args).run();
}

}  // namespace tiny::naive

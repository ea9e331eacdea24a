// A linear program executed the plain way, one lane at a time: what machine code is compared with.
// It shares no code with any renderer; the meaning of each op is written out from its definition.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/kernel_abi.h"
#include "ir/linear.h"

namespace tiny::test {

class LinearEvaluator {
 public:
  LinearEvaluator(const LinearProgram& program, const KernelArgs& args) : p_(program), a_(args), values_(program.ops.size()) {}

  void run() {
    size_t at = 0;
    while (at < p_.ops.size()) at = step(at);
  }

 private:
  using Lanes = std::vector<uint64_t>;

  const LinearOp& op(size_t i) const { return p_.ops[i]; }
  Lanes& value(LinearId id) { return values_[id]; }
  DType type(LinearId id) const { return p_.ops[id].dtype; }
  int64_t integer(LinearId id, size_t lane = 0) { return static_cast<int64_t>(values_[id][lane]); }

  size_t end_of(size_t begin) const {
    const Op closing = op(begin).op == Op::Loop ? Op::EndLoop : Op::EndIf;
    for (size_t i = begin;; ++i)
      if (op(i).op == closing && op(i).src[0] == begin) return i;
  }

  size_t step(size_t at) {
    const LinearOp& o = op(at);
    if (o.op == Op::Loop) {
      const size_t end = end_of(at);
      const int64_t to = integer(o.src[1]);
      for (int64_t i = integer(o.src[0]); i < to; i += o.imm) {
        values_[at] = {static_cast<uint64_t>(i)};
        for (size_t j = at + 1; j < end;) j = step(j);
      }
      return end + 1;
    }
    if (o.op == Op::If && value(o.src[0])[0] == 0) return end_of(at) + 1;
    if (o.op == Op::Set) value(o.src[0]) = value(o.src[1]);
    else if (o.op == Op::Load) load(at);
    else if (o.op == Op::Store) store(o);
    else if (o.op == Op::Check) check(o);
    else if (o.dtype != kVoid) values_[at] = compute(o);
    return at + 1;
  }

  std::byte* place(const LinearOp& o, DType d, size_t lane) {
    const bool gather = type(o.src[1]).lanes > 1;
    const int64_t index = gather ? integer(o.src[1], lane) : integer(o.src[1]) + static_cast<int64_t>(lane) * o.aux;
    return reinterpret_cast<std::byte*>(integer(o.src[0])) + index * d.bytes() + o.imm;
  }

  void load(size_t at) {
    const LinearOp& o = op(at);
    Lanes lanes(o.dtype.lanes, 0);
    for (size_t l = 0; l < lanes.size(); ++l)
      if (o.count < 3 || value(o.src[2])[l]) std::memcpy(&lanes[l], place(o, o.dtype, l), static_cast<size_t>(o.dtype.bytes()));
    values_[at] = lanes;
  }

  void store(const LinearOp& o) {
    const DType d = type(o.src[2]);
    for (size_t l = 0; l < d.lanes; ++l)
      if (o.count < 4 || value(o.src[3])[l]) std::memcpy(place(o, d, l), &value(o.src[2])[l], static_cast<size_t>(d.bytes()));
  }

  void check(const LinearOp& o) {
    for (uint64_t lane : value(o.src[0]))
      if (!lane && *a_.status == 0) *a_.status = check_status(o.aux, integer(o.src[1]));
  }

  Lanes compute(const LinearOp& o) {
    const auto launch = [&](int64_t which) { return which == 0 ? a_.begin : which == 1 ? a_.end : a_.worker; };
    switch (o.op) {
      case Op::Const:
        return Lanes(o.dtype.lanes, static_cast<uint64_t>(o.imm));
      case Op::Param:
        return {reinterpret_cast<uint64_t>(a_.buffers[o.imm])};
      case Op::Scratch:
        return {reinterpret_cast<uint64_t>(a_.scratch) + static_cast<uint64_t>(o.imm)};
      case Op::Variable:
        return {static_cast<uint64_t>(a_.variables[o.imm])};
      case Op::LaunchArg:
        return {static_cast<uint64_t>(launch(o.imm))};
      case Op::Address:
        return {value(o.src[0])[0] + value(o.src[1])[0] * static_cast<uint64_t>(o.imm)};
      case Op::Accumulator:
        return value(o.src[0]);
      case Op::Broadcast:
        return Lanes(o.dtype.lanes, value(o.src[0])[0]);
      case Op::Ramp: {
        Lanes lanes;
        for (uint64_t l = 0; l < o.dtype.lanes; ++l)
          lanes.push_back(bits_of_int(o.dtype.element(), static_cast<int64_t>(value(o.src[0])[0] + l * static_cast<uint64_t>(o.imm))));
        return lanes;
      }
      case Op::LaneRange: {
        Lanes lanes;
        for (int64_t l = 0; l < o.dtype.lanes; ++l) lanes.push_back(integer(o.src[0]) <= l && l < integer(o.src[1]));
        return lanes;
      }
      case Op::Fold: {
        Lanes lanes = value(o.src[0]);
        for (size_t n = lanes.size() / 2; n > 0; n /= 2)
          for (size_t l = 0; l < n; ++l) lanes[l] = arithmetic(static_cast<Op>(o.aux), o.dtype, lanes[l], lanes[l + n], 0);
        return {lanes[0]};
      }
      default:
        break;
    }
    Lanes lanes;
    for (size_t l = 0; l < o.dtype.lanes; ++l) lanes.push_back(lane(o, l));
    return lanes;
  }

  uint64_t lane(const LinearOp& o, size_t l) {
    const DType from = type(o.src[0]).element();
    const uint64_t a = value(o.src[0])[l], b = o.count > 1 ? value(o.src[1])[l] : 0, c = o.count > 2 ? value(o.src[2])[l] : 0;
    switch (o.op) {
      case Op::Cast:
        return cast(from, o.dtype.element(), a);
      case Op::Bitcast:
        return a;
      case Op::Where:
        return a ? b : c;
      default:
        return arithmetic(o.op, from, a, b, c);
    }
  }

  static uint64_t cast(DType from, DType to, uint64_t a) {
    if (from.is_float() && to.is_bool()) return double_of(from, a) != 0;
    if (from.is_float()) return bits_of(to, double_of(from, a));
    if (from.scalar == ScalarType::UInt64 && to.is_float()) {
      const DType wide = to.bytes() == 8 ? kFloat64 : kFloat32;
      const uint64_t bits = wide == kFloat64 ? std::bit_cast<uint64_t>(static_cast<double>(a))
                                             : std::bit_cast<uint32_t>(static_cast<float>(a));
      return wide == to ? bits : bits_of(to, double_of(wide, bits));
    }
    if (to.is_float() && to.bytes() == 2) return bits_of(to, static_cast<double>(static_cast<float>(int_of(from, a))));
    return bits_of_int(to, int_of(from, a));
  }

  template <class F>
  static uint64_t float_op(Op op, uint64_t a_bits, uint64_t b_bits, uint64_t c_bits) {
    using Bits = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;
    const F a = std::bit_cast<F>(static_cast<Bits>(a_bits)), b = std::bit_cast<F>(static_cast<Bits>(b_bits)),
            c = std::bit_cast<F>(static_cast<Bits>(c_bits));
    const Bits sign = Bits{1} << (8 * sizeof(F) - 1);
    const auto bits = [](F x) -> uint64_t { return std::bit_cast<Bits>(x); };
    switch (op) {
      case Op::Neg: return static_cast<Bits>(a_bits) ^ sign;
      case Op::Abs: return static_cast<Bits>(a_bits) & static_cast<Bits>(~sign);
      case Op::Sqrt: return bits(std::sqrt(a));
      case Op::Floor: return bits(std::floor(a));
      case Op::Ceil: return bits(std::ceil(a));
      case Op::Trunc: return bits(std::trunc(a));
      case Op::Round: return bits(std::nearbyint(a));
      case Op::Add: return bits(a + b);
      case Op::Sub: return bits(a - b);
      case Op::Mul: return bits(a * b);
      case Op::Div: return bits(a / b);
      case Op::Max: return (b > a || std::isnan(b)) ? b_bits : a_bits;
      case Op::Min: return (b < a || std::isnan(b)) ? b_bits : a_bits;
      case Op::Less: return a < b;
      case Op::LessEqual: return a <= b;
      case Op::Equal: return a == b;
      case Op::NotEqual: return a != b;
      case Op::Fma: return bits(std::fma(a, b, c));
      default: break;
    }
    throw Error(Status::Internal, "the evaluator has no such float op");
  }

  static uint64_t arithmetic(Op op, DType d, uint64_t a, uint64_t b, uint64_t c) {
    if (d.scalar == ScalarType::Float32) return float_op<float>(op, a, b, c);
    if (d.scalar == ScalarType::Float64) return float_op<double>(op, a, b, c);
    if (d.is_float() && op == Op::Neg) return a ^ 0x8000u;
    if (d.is_float() && op == Op::Abs) return a & 0x7FFFu;
    return d.is_signed() ? int_op<__int128>(op, d, a, b) : int_op<unsigned __int128>(op, d, a, b);
  }

  template <class Wide>
  static uint64_t int_op(Op op, DType d, uint64_t a_bits, uint64_t b_bits) {
    const auto widen = [&](uint64_t bits) -> Wide {
      if (d.is_signed()) return static_cast<Wide>(int_of(d, bits));
      return static_cast<Wide>(bits);
    };
    const Wide a = widen(a_bits), b = widen(b_bits);
    const auto wrap = [&](Wide x) { return bits_of_int(d, static_cast<int64_t>(static_cast<uint64_t>(x))); };
    Wide q = 0, r = 0;
    if (b != 0 && (op == Op::FloorDiv || op == Op::FloorMod || op == Op::TruncDiv || op == Op::TruncMod)) {
      q = a / b;
      r = a % b;
      if ((op == Op::FloorDiv || op == Op::FloorMod) && r != 0 && ((r < 0) != (b < 0))) {
        q -= 1;
        r += b;
      }
    }
    const bool beyond = b < 0 || b >= static_cast<Wide>(d.bits());
    switch (op) {
      case Op::Neg: return wrap(static_cast<Wide>(0) - a);
      case Op::Abs: return wrap(a < 0 ? static_cast<Wide>(0) - a : a);
      case Op::Not: return d.is_bool() ? a == 0 : wrap(~a);
      case Op::Add: return wrap(a + b);
      case Op::Sub: return wrap(a - b);
      case Op::Mul: return wrap(a * b);
      case Op::FloorDiv:
      case Op::TruncDiv: return wrap(q);
      case Op::FloorMod:
      case Op::TruncMod: return wrap(r);
      case Op::Max: return wrap(a > b ? a : b);
      case Op::Min: return wrap(a < b ? a : b);
      case Op::And: return wrap(a & b);
      case Op::Or: return wrap(a | b);
      case Op::Xor: return wrap(a ^ b);
      case Op::Shl: return beyond ? 0 : wrap(a << static_cast<int>(b));
      case Op::Shr: return beyond ? wrap(a < 0 ? static_cast<Wide>(-1) : static_cast<Wide>(0)) : wrap(a >> static_cast<int>(b));
      case Op::Less: return a < b;
      case Op::LessEqual: return a <= b;
      case Op::Equal: return a == b;
      case Op::NotEqual: return a != b;
      default: break;
    }
    throw Error(Status::Internal, "the evaluator has no such integer op");
  }

  const LinearProgram& p_;
  const KernelArgs& a_;
  std::vector<Lanes> values_;
};

}  // namespace tiny::test

#include "ir/fold.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "base/error.h"

namespace tiny {

namespace {

// ---- floats: T is float (also for the 16-bit formats) or double.

template <int arity, class F>
double called(F function, const double* v) {
  if constexpr (arity == 1)
    return function(v[0]);
  else
    return function(v[0], v[1]);
}

template <class T>
T transcendental(Op op, const T* v) {
  const double wide[] = {static_cast<double>(v[0]), static_cast<double>(v[1])};
  switch (op) {
#define OP(name, arity, symbol, result, weight, traits, stages)
#define TRANSCENDENTAL(name, arity, function) \
  case Op::name:                              \
    return static_cast<T>(called<arity>([](auto... x) { return std::function(x...); }, wide));
#include "ir/ops.def"
    default:
      break;
  }
  invariant(false, "the op is transcendental");
  return T{};
}

// a * 2^floor(b), rounded once.
template <class T>
T scale(T a, T b) {
  if (!std::isfinite(b)) return b < 0 ? a * T{0} : a * b;
  constexpr T kMost = 5000;  // beyond the exponents of all floats
  return std::ldexp(a, static_cast<int>(std::clamp(std::floor(b), -kMost, kMost)));
}

template <class T>
T fold_float(Op op, const T* v) {
  switch (op) {
    case Op::Sqrt:
      return std::sqrt(v[0]);
    case Op::Floor:
      return std::floor(v[0]);
    case Op::Ceil:
      return std::ceil(v[0]);
    case Op::Trunc:
      return std::trunc(v[0]);
    case Op::Round:
      return std::nearbyint(v[0]);
    case Op::Neg:
      return -v[0];
    case Op::Abs:
      return std::fabs(v[0]);
    case Op::Add:
      return v[0] + v[1];
    case Op::Sub:
      return v[0] - v[1];
    case Op::Mul:
      return v[0] * v[1];
    case Op::Div:
      return v[0] / v[1];
    case Op::Scale:
      return scale(v[0], v[1]);
    case Op::Fma:
      return std::fma(v[0], v[1], v[2]);
    default:
      return transcendental(op, v);
  }
}

template <class T>
bool compare(Op op, T a, T b) {
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
      break;
  }
  invariant(false, "the op compares");
  return false;
}

bool is_comparison(Op op) {
  return info(op).result == OpResult::Bool;
}

// What selects a value or changes only its sign keeps the other bits, also of a NaN.
std::optional<uint64_t> fold_sign_or_choice(Op op, DType operand, const uint64_t* src) {
  if (!operand.has_negative_zero() && (op == Op::Neg || op == Op::Abs)) return std::nullopt;
  const uint64_t sign = uint64_t{1} << (operand.bits() - 1);
  if (op == Op::Neg) return src[0] ^ sign;
  if (op == Op::Abs) return src[0] & ~sign;
  if (op != Op::Max && op != Op::Min) return std::nullopt;
  const double a = double_of(operand, src[0]);
  const double b = double_of(operand, src[1]);
  return std::isnan(b) || (op == Op::Max ? b > a : b < a) ? src[1] : src[0];
}

uint64_t fold_float_bits(Op op, DType operand, const uint64_t* src) {
  if (const auto bits = fold_sign_or_choice(op, operand, src)) return *bits;
  const auto count = static_cast<size_t>(info(op).arity);
  if (operand.scalar == ScalarType::Float64) {
    double v[3] = {};
    for (size_t i = 0; i < count; ++i) v[i] = std::bit_cast<double>(src[i]);
    if (is_comparison(op)) return compare(op, v[0], v[1]);
    return std::bit_cast<uint64_t>(fold_float(op, v));
  }
  float v[3] = {};
  for (size_t i = 0; i < count; ++i) v[i] = static_cast<float>(double_of(operand, src[i]));
  if (is_comparison(op)) return compare(op, v[0], v[1]);
  return bits_of(operand, static_cast<double>(fold_float(op, v)));
}

// ---- integers and bools: sign- or zero-extended to 64 bits, the result is narrowed again.

int64_t divide(Op op, bool is_signed, uint64_t a, uint64_t b) {
  if (b == 0) return 0;
  const bool quotient = op == Op::FloorDiv || op == Op::TruncDiv;
  if (!is_signed) return static_cast<int64_t>(quotient ? a / b : a % b);
  const auto x = static_cast<int64_t>(a);
  const auto y = static_cast<int64_t>(b);
  if (y == -1) return quotient ? static_cast<int64_t>(uint64_t{0} - a) : 0;  // the lowest wraps
  const int64_t q = x / y;
  const int64_t m = x % y;
  const bool floors = (op == Op::FloorDiv || op == Op::FloorMod) && m != 0 && (m < 0) != (y < 0);
  if (quotient) return floors ? q - 1 : q;
  return floors ? m + y : m;
}

int64_t shift(Op op, DType dtype, int64_t value, int64_t amount) {
  const auto width = dtype.bits();
  const bool out = amount < 0 || amount >= width;
  if (op == Op::Shl) return out ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value) << amount);
  if (dtype.is_signed()) return out ? (value < 0 ? -1 : 0) : value >> amount;
  return out ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value) >> amount);
}

int64_t fold_int(Op op, DType dtype, const int64_t* v) {
  const auto a = static_cast<uint64_t>(v[0]);
  const auto b = static_cast<uint64_t>(v[1]);
  const bool b_below_a = dtype.is_signed() ? v[1] < v[0] : b < a;
  switch (op) {
    case Op::Neg:
      return static_cast<int64_t>(uint64_t{0} - a);
    case Op::Abs:
      return dtype.is_signed() && v[0] < 0 ? static_cast<int64_t>(uint64_t{0} - a) : v[0];
    case Op::Not:
      return dtype.is_bool() ? (v[0] == 0 ? 1 : 0) : ~v[0];
    case Op::Add:
      return static_cast<int64_t>(a + b);
    case Op::Sub:
      return static_cast<int64_t>(a - b);
    case Op::Mul:
      return static_cast<int64_t>(a * b);
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::TruncDiv:
    case Op::TruncMod:
      return divide(op, dtype.is_signed(), a, b);
    case Op::Max:
      return b_below_a ? v[0] : v[1];
    case Op::Min:
      return b_below_a ? v[1] : v[0];
    case Op::And:
      return v[0] & v[1];
    case Op::Or:
      return v[0] | v[1];
    case Op::Xor:
      return v[0] ^ v[1];
    case Op::Shl:
    case Op::Shr:
      return shift(op, dtype, v[0], v[1]);
    default:
      break;
  }
  invariant(false, "the op takes integers");
  return 0;
}

uint64_t fold_int_bits(Op op, DType operand, const uint64_t* src) {
  int64_t v[3] = {};
  for (int i = 0; i < info(op).arity; ++i) v[i] = int_of(operand, src[i]);
  if (is_comparison(op)) {
    if (operand.is_signed()) return compare(op, v[0], v[1]);
    return compare(op, static_cast<uint64_t>(v[0]), static_cast<uint64_t>(v[1]));
  }
  return bits_of_int(operand, fold_int(op, operand, v));
}

uint64_t fold_cast(DType to, DType from, uint64_t bits) {
  if (from == to) return bits;
  if (from.is_float()) {
    const double value = double_of(from, bits);
    if (to.is_bool()) return value != 0 ? 1 : 0;  // NaN != 0
    return bits_of(to, value);
  }
  if (to.info().computed == ScalarType::Float64)
    return bits_of(to, from.is_unsigned() ? static_cast<double>(bits)
                                          : static_cast<double>(int_of(from, bits)));
  if (to.is_float())
    return bits_of(
        to, static_cast<double>(from.is_unsigned() ? static_cast<float>(bits)
                                                   : static_cast<float>(int_of(from, bits))));
  return bits_of_int(to, int_of(from, bits));
}

}  // namespace

uint64_t fold_bits(Op op, DType result, DType operand, const uint64_t* src) {
  switch (op) {
    case Op::Cast:
      return fold_cast(result.element(), operand.element(), src[0]);
    case Op::Bitcast:
      return src[0];
    case Op::Where:
      return src[0] != 0 ? src[1] : src[2];
    default:
      break;
  }
  if (operand.is_float()) return fold_float_bits(op, operand.element(), src);
  invariant(operand.is_int() || operand.is_bool(), "an elementwise op takes numbers or bools");
  return fold_int_bits(op, operand.element(), src);
}

std::optional<UOp> fold(Op op, std::span<const UOp> src, DType declared) {
  if (!has(op, kElementwise)) return std::nullopt;
  invariant(src.size() == static_cast<size_t>(info(op).arity),
            "the number of sources is the op's arity");
  uint64_t bits[3] = {};
  for (size_t i = 0; i < src.size(); ++i) {
    if (!src[i].is_const()) return std::nullopt;
    bits[i] = src[i].const_bits();
  }
  const DType operand = src.back().dtype();
  DType result = operand;
  if (info(op).result == OpResult::Declared) result = declared;
  if (is_comparison(op)) result = kBool.with_lanes(operand.lanes);
  return src[0].graph().constant_bits(result, fold_bits(op, result, operand, bits));
}

uint64_t identity_bits(Op op, DType dtype) {
  switch (op) {
    case Op::Mul:
      return bits_of_int(dtype, 1);
    case Op::Max:
      return lowest_bits(dtype);
    case Op::Min:
      return highest_bits(dtype);
    case Op::And:
      return dtype.is_bool() ? 1 : bits_of_int(dtype, -1);
    default:
      return 0;
  }
}

Evaluator::Evaluator(const UOp& root, std::span<const UOp> inputs) {
  std::unordered_map<const Node*, uint32_t> slot;
  for (const UOp& input : inputs) {
    input_slots_.push_back(static_cast<uint32_t>(values_.size()));
    slot.emplace(input.node(), input_slots_.back());
    values_.push_back(0);
  }
  // Inputs may be inner nodes: what only they reach is not visited.
  std::vector<std::pair<UOp, size_t>> stack;
  if (!slot.contains(root.node())) stack.emplace_back(root, 0);
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < node.src().size()) {
      UOp s = node.src(next++);
      if (!slot.contains(s.node())) stack.emplace_back(std::move(s), 0);
      continue;
    }
    const UOp u = std::move(node);
    stack.pop_back();
    if (slot.contains(u.node())) continue;
    const auto to = static_cast<uint32_t>(values_.size());
    slot.emplace(u.node(), to);
    values_.push_back(u.is_const() ? u.const_bits() : 0);
    if (u.is_const()) continue;
    invariant(has(u.op(), kElementwise), "an evaluated expression has elementwise ops only");
    Step step{u.op(), u.dtype(), u.src().back().dtype(), {}, to};
    for (size_t i = 0; i < u.src().size(); ++i) step.src[i] = slot.at(u.src(i).node());
    steps_.push_back(step);
  }
  root_slot_ = slot.at(root.node());
}

uint64_t Evaluator::operator()(std::span<const uint64_t> inputs) {
  invariant(inputs.size() == input_slots_.size(), "one value for each input");
  for (size_t i = 0; i < inputs.size(); ++i) values_[input_slots_[i]] = inputs[i];
  for (const Step& s : steps_) {
    const uint64_t v[3] = {values_[s.src[0]], values_[s.src[1]], values_[s.src[2]]};
    values_[s.to] = fold_bits(s.op, s.result, s.operand, v);
  }
  return values_[root_slot_];
}

}  // namespace tiny

#include "ir/build.h"

#include "base/error.h"
#include "ir/fold.h"

namespace tiny {

namespace {

bool is_zero(const UOp& a) {
  return a.is_const_int(0);
}
bool is_one(const UOp& a) {
  return a.is_const_int(1);
}
UOp like(const UOp& a, int64_t value) {
  return a.graph().constant_int(a.dtype(), value);
}
bool is_all_ones(const UOp& a) {
  return a.is_const() && !a.dtype().is_float() && a.const_bits() == bits_of_int(a.dtype(), -1);
}

// The operand or constant that an integer or bool op obviously is; no node if it is not obvious.
UOp trivial(Op op, std::span<const UOp> s) {
  if (op == Op::Where) {
    if (s[0].is_const()) return s[0].const_bits() ? s[1] : s[2];
    if (s[1] == s[2]) return s[1];
    if (s[1].dtype().is_bool() && is_one(s[1]) && is_zero(s[2])) return s[0];
    return {};
  }
  if (s[0].dtype().is_float() && op != Op::Cast && op != Op::Bitcast) return {};
  switch (op) {
    case Op::Add:
      return is_zero(s[0]) ? s[1] : is_zero(s[1]) ? s[0] : UOp();
    case Op::Mul:
      if (is_zero(s[0]) || is_one(s[1])) return s[0];
      return is_zero(s[1]) || is_one(s[0]) ? s[1] : UOp();
    case Op::FloorDiv:
    case Op::TruncDiv:
      return is_zero(s[0]) || is_one(s[1]) ? s[0] : UOp();
    case Op::FloorMod:
    case Op::TruncMod:
      return is_zero(s[0]) ? s[0] : is_one(s[1]) ? like(s[0], 0) : UOp();
    case Op::Max:
    case Op::Min:
      return s[0] == s[1] ? s[0] : UOp();
    case Op::And:
      if (is_zero(s[0]) || is_all_ones(s[1]) || s[0] == s[1]) return s[0];
      return is_zero(s[1]) || is_all_ones(s[0]) ? s[1] : UOp();
    case Op::Or:
      if (is_zero(s[1]) || is_all_ones(s[0]) || s[0] == s[1]) return s[0];
      return is_zero(s[0]) || is_all_ones(s[1]) ? s[1] : UOp();
    case Op::Neg:
    case Op::Not:
      return s[0].op() == op ? s[0].src(0) : UOp();
    case Op::Less:
    case Op::NotEqual:
      return s[0] == s[1] ? s[0].graph().constant_int(kBool.with_lanes(s[0].dtype().lanes), 0)
                          : UOp();
    case Op::LessEqual:
    case Op::Equal:
      return s[0] == s[1] ? s[0].graph().constant_int(kBool.with_lanes(s[0].dtype().lanes), 1)
                          : UOp();
    default:
      return {};
  }
}

}  // namespace

UOp elementwise(Op op, std::span<const UOp> src, DType declared) {
  invariant(has(op, kElementwise), "elementwise() makes elementwise ops");
  if ((op == Op::Cast || op == Op::Bitcast) && src[0].dtype() == declared) return src[0];
  if (op == Op::Where && src[0].is_const()) return src[0].const_bits() ? src[1] : src[2];
  if (auto value = fold(op, src, declared)) return *value;
  if (UOp known = trivial(op, src)) return known;
  // A constant stands second, so that both orders are one node.
  Graph& graph = src[0].graph();
  if (has(op, kCommutative) && src[0].is_const()) return graph.make(op, {src[1], src[0]});
  return graph.make(op, src, {}, declared);
}

UOp add(const UOp& a, const UOp& b) {
  return elementwise(Op::Add, {a, b});
}
UOp sub(const UOp& a, const UOp& b) {
  if (a == b && !a.dtype().is_float()) return like(a, 0);
  return add(a, neg(b));
}
UOp mul(const UOp& a, const UOp& b) {
  return elementwise(Op::Mul, {a, b});
}
UOp neg(const UOp& a) {
  return elementwise(Op::Neg, {a});
}
UOp div(const UOp& a, const UOp& b) {
  return elementwise(Op::Div, {a, b});
}
UOp floor_div(const UOp& a, const UOp& b) {
  return elementwise(Op::FloorDiv, {a, b});
}
UOp floor_mod(const UOp& a, const UOp& b) {
  return elementwise(Op::FloorMod, {a, b});
}
UOp ceil_div(const UOp& a, const UOp& b) {
  return floor_div(add(a, sub(b, 1)), b);
}
UOp minimum(const UOp& a, const UOp& b) {
  return elementwise(Op::Min, {a, b});
}
UOp maximum(const UOp& a, const UOp& b) {
  return elementwise(Op::Max, {a, b});
}
UOp fma(const UOp& a, const UOp& b, const UOp& c) {
  return elementwise(Op::Fma, {a, b, c});
}

UOp add(const UOp& a, int64_t b) {
  return add(a, like(a, b));
}
UOp sub(const UOp& a, int64_t b) {
  return add(a, neg(like(a, b)));
}
UOp mul(const UOp& a, int64_t b) {
  return mul(a, like(a, b));
}
UOp floor_div(const UOp& a, int64_t b) {
  return floor_div(a, like(a, b));
}
UOp floor_mod(const UOp& a, int64_t b) {
  return floor_mod(a, like(a, b));
}
UOp minimum(const UOp& a, int64_t b) {
  return minimum(a, like(a, b));
}
UOp maximum(const UOp& a, int64_t b) {
  return maximum(a, like(a, b));
}

UOp less(const UOp& a, const UOp& b) {
  return elementwise(Op::Less, {a, b});
}
UOp less_equal(const UOp& a, const UOp& b) {
  return elementwise(Op::LessEqual, {a, b});
}
UOp equal(const UOp& a, const UOp& b) {
  return elementwise(Op::Equal, {a, b});
}
UOp not_equal(const UOp& a, const UOp& b) {
  return elementwise(Op::NotEqual, {a, b});
}
UOp less(const UOp& a, int64_t b) {
  return less(a, like(a, b));
}
UOp less_equal(const UOp& a, int64_t b) {
  return less_equal(a, like(a, b));
}
UOp greater_equal(const UOp& a, int64_t b) {
  return less_equal(like(a, b), a);
}
UOp equal(const UOp& a, int64_t b) {
  return equal(a, like(a, b));
}
UOp nonnegative(const UOp& a) {
  return greater_equal(a, 0);
}

UOp logical_and(const UOp& a, const UOp& b) {
  return elementwise(Op::And, {a, b});
}
UOp logical_or(const UOp& a, const UOp& b) {
  return elementwise(Op::Or, {a, b});
}
UOp logical_not(const UOp& a) {
  return elementwise(Op::Not, {a});
}
UOp where(const UOp& condition, const UOp& a, const UOp& b) {
  return elementwise(Op::Where, {condition, a, b});
}
UOp cast(const UOp& a, DType dtype) {
  return elementwise(Op::Cast, {a}, dtype);
}
UOp bitcast(const UOp& a, DType dtype) {
  return elementwise(Op::Bitcast, {a}, dtype);
}

UOp all_of(Graph& graph, std::span<const UOp> conditions) {
  UOp all = graph.boolean(true);
  for (const UOp& c : conditions) all = logical_and(all, c);
  return all;
}
UOp product_of(Graph& graph, std::span<const UOp> factors) {
  if (factors.empty()) return graph.integer(1);
  UOp product = factors[0];
  for (const UOp& f : factors.subspan(1)) product = mul(product, f);
  return product;
}

}  // namespace tiny

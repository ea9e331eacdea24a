// Small helpers that build expressions, folding what is trivial on the way: constants of any dtype,
// and for integers and bools the identities of 0, 1, true and false.  They never look further than
// one node down; rules/symbolic.h simplifies whole index expressions.
//
// Operands of one call have one dtype and one graph.  An int64_t operand is a constant of the other
// operand's dtype.  `//` and `%` round towards minus infinity (docs/semantics.md).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// `op` on `src`, elementwise, folded where trivial; `declared` is the dtype of a Cast or Bitcast.
UOp elementwise(Op op, std::span<const UOp> src, DType declared = kVoid);
inline UOp elementwise(Op op, std::initializer_list<UOp> src, DType declared = kVoid) {
  return elementwise(op, std::span(src.begin(), src.size()), declared);
}

UOp add(const UOp& a, const UOp& b);
UOp sub(const UOp& a, const UOp& b);  // a + neg(b): Sub itself is made by the linear pass
UOp mul(const UOp& a, const UOp& b);
UOp neg(const UOp& a);
UOp div(const UOp& a, const UOp& b);  // floats
UOp floor_div(const UOp& a, const UOp& b);
UOp floor_mod(const UOp& a, const UOp& b);
UOp ceil_div(const UOp& a, const UOp& b);  // b > 0
UOp minimum(const UOp& a, const UOp& b);
UOp maximum(const UOp& a, const UOp& b);
UOp fma(const UOp& a, const UOp& b, const UOp& c);

UOp add(const UOp& a, int64_t b);
UOp sub(const UOp& a, int64_t b);
UOp mul(const UOp& a, int64_t b);
UOp floor_div(const UOp& a, int64_t b);
UOp floor_mod(const UOp& a, int64_t b);
UOp minimum(const UOp& a, int64_t b);
UOp maximum(const UOp& a, int64_t b);

UOp less(const UOp& a, const UOp& b);
UOp less_equal(const UOp& a, const UOp& b);
UOp equal(const UOp& a, const UOp& b);
UOp not_equal(const UOp& a, const UOp& b);
UOp less(const UOp& a, int64_t b);
UOp less_equal(const UOp& a, int64_t b);
UOp greater_equal(const UOp& a, int64_t b);
UOp equal(const UOp& a, int64_t b);
UOp nonnegative(const UOp& a);  // 0 <= a

UOp logical_and(const UOp& a, const UOp& b);
UOp logical_or(const UOp& a, const UOp& b);
UOp logical_not(const UOp& a);
UOp where(const UOp& condition, const UOp& a, const UOp& b);
UOp cast(const UOp& a, DType dtype);
UOp bitcast(const UOp& a, DType dtype);

// The conjunction and the product of a list; of an empty one true and 1.
UOp all_of(Graph& graph, std::span<const UOp> conditions);
UOp product_of(Graph& graph, std::span<const UOp> factors);

inline UOp operator+(const UOp& a, const UOp& b) {
  return add(a, b);
}
inline UOp operator-(const UOp& a, const UOp& b) {
  return sub(a, b);
}
inline UOp operator*(const UOp& a, const UOp& b) {
  return mul(a, b);
}
inline UOp operator-(const UOp& a) {
  return neg(a);
}
inline UOp operator+(const UOp& a, int64_t b) {
  return add(a, b);
}
inline UOp operator-(const UOp& a, int64_t b) {
  return sub(a, b);
}
inline UOp operator*(const UOp& a, int64_t b) {
  return mul(a, b);
}

}  // namespace tiny

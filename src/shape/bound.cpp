#include "shape/bound.h"

#include "shape/shape.h"

namespace tiny {

namespace {

// Behind the kinds of values under an identity of their own.
constexpr int64_t kFirst = static_cast<int64_t>(AliasKind::Later) + 1;

}  // namespace

UOp make_bound(const UOp& number, Corner corner) {
  return number.graph().make(Op::Alias, {number}, Ints{kFirst + static_cast<int64_t>(corner)});
}

bool is_bound(const UOp& node) {
  return node.op() == Op::Alias && node.ints().front() >= kFirst;
}

Corner corner_of(const UOp& bound) {
  return static_cast<Corner>(bound.ints().front() - kFirst);
}

}  // namespace tiny

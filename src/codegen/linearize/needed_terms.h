// Which terms of a fold may be left out: those that a choice by position makes what the fold starts
// with (a score of -inf for a maximum, a weight of exp(-inf) for a sum).
//
// As with padding (docs/semantics.md), what such a term is multiplied or added with is taken for a
// number: 0 * inf and inf - inf are not formed where the term is left out.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// x where a node is exp(x) in steps.
struct Exponent {
  UOp x;
  bool scales = false;  // by an instruction
};
std::optional<Exponent> exponent_of(const UOp& u, const std::function<bool(const UOp& x)>& wanted);

// Expressions of indices, each of which is >= 0 wherever `value` counts in a fold by `op`.
std::vector<UOp> needed_terms(const UOp& value, Op op);

}  // namespace tiny

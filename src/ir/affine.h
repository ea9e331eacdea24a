// Integer expressions as  constant + sum of coefficient * atom:  what index lowering, the prover
// and the simplifier look at.  Atoms are Ranges, Variables, opaque subexpressions (a Load, x // 3)
// and products of those; each stands once, with a coefficient that is not 0, in a fixed order:
// ranges by id, variables by name, the rest by op and sources, at last by structural hash, which is
// the same in every process.
//
// Only int64, the dtype of indices, is taken apart: index arithmetic is assumed not to overflow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/uop.h"

namespace tiny {

struct AffineTerm {
  UOp atom;
  int64_t coefficient = 0;
  bool operator==(const AffineTerm&) const = default;
};

struct Affine {
  int64_t constant = 0;
  std::vector<AffineTerm> terms;

  bool is_constant() const { return terms.empty(); }
  int64_t coefficient(const UOp& atom) const;  // 0 if absent
  bool operator==(const Affine&) const = default;
};

// `u` taken apart; none if it is not int64, a coefficient overflows, or it has more than 64 terms.
std::optional<Affine> affine(const UOp& u);

// a + scale * b, and scale * a; none if a coefficient overflows.
std::optional<Affine> add_scaled(const Affine& a, const Affine& b, int64_t scale);
std::optional<Affine> scaled(const Affine& a, int64_t scale);
// a * b multiplied out; none on overflow or above 64 terms.
std::optional<Affine> multiplied(const Affine& a, const Affine& b);

// The one expression of this sum: terms in order, the constant last.
UOp to_uop(Graph& graph, const Affine& a);

// The order of atoms: whether `a` stands before `b`.
bool stands_before(const UOp& a, const UOp& b);

// The factors of a product atom, in order; of any other atom itself.
std::vector<UOp> factors(const UOp& atom);
// The product atom with these factors, at least one.
UOp product_atom(std::vector<UOp> factors);
// The factors of `product` without those of `divisor`; none if it does not divide.
std::optional<std::vector<UOp>> factors_without(const UOp& product, const UOp& divisor);

}  // namespace tiny

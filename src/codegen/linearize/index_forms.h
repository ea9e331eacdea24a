// Index expressions as they stand under the present loops: a constant, a step from lane to lane,
// and the terms that loops and values add.
//
// reads: the nest of loops.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/linearize/loop_nest.h"
#include "ir/affine.h"
#include "ir/node_map.h"

namespace tiny {

// An index expression under the present range states: constant + lane * l + scalar terms.
struct IndexTerm {
  UOp atom;
  int64_t coefficient = 0;
  size_t depth = 0;  // of the innermost loop that it changes in
};
struct IndexForm {
  int64_t constant = 0;
  int64_t lane = 0;              // the coefficient of the lane number
  std::vector<IndexTerm> terms;  // one-lane atoms, outer loops first
  UOp vector_atom;               // an atom with lanes that is no range (a gathered index), if any
  UOp inner;                     // the innermost term, if there is one
  UOp outer;                     // the sum of the others, if there are any
};

enum class Extreme : uint8_t { Smallest, Largest };

class IndexForms {
 public:
  explicit IndexForms(LoopNest& nest) : nest_(nest) {}

  // Valid until the expression is asked for again.
  const IndexForm& form_of(const UOp& expression);
  // The sum of the terms, without coefficients that are 1.
  UOp sum_of(std::span<const IndexTerm> terms) const;
  // The expression with the coordinates of unrolled ranges put in; none if it is no sum.
  std::optional<Affine> fixed(const UOp& expression);
  // A sum without the terms of a range, at its least or greatest for the unrolled ranges and lanes
  // in `pending`; none if it has other atoms that depend on those.
  std::optional<Affine> extreme(const Affine& sum, const UOp& range, RangeSet pending,
                                Extreme wanted);
  // Where a Load or Store lies in its buffer, a Stage or an Index of one in scratch, in elements.
  const UOp& flat_index(const UOp& access);

 private:
  // An index expression, and what was made of it last: it is asked for at every instance, where
  // only the coordinates differ.
  struct Expression {
    std::optional<Affine> sum;
    RangeSet free = 0;
    IndexForm form;  // for these fixed ranges, and this nest of loops; 0: not made yet
    RangeSet fixed = 0;
    uint64_t nest = 0;
    int64_t constant = 0;                            // of the form, without the fixed ranges
    std::vector<std::pair<size_t, int64_t>> digits;  // their positions and coefficients
  };
  Expression& expression_of(const UOp& expression);
  void make_form(const UOp& expression, Expression& of);
  std::optional<int64_t> value_where_fixed(const UOp& atom);

  LoopNest& nest_;
  NodeTable<Expression*> expression_at_;
  std::deque<Expression> expressions_;
  std::unordered_map<const Node*, UOp> flat_;  // of accesses, which the kernel keeps
};

}  // namespace tiny

#include "codegen/linearize/needed_terms.h"

#include <cmath>

#include "ir/affine.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "ir/kernel.h"
#include "rules/decompositions.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

double number_of(const UOp& u) {
  return double_of(u.dtype(), u.const_bits());
}

bool is_number(const UOp& u, double wanted) {
  return u.is_const() && u.dtype().is_float() && number_of(u) == wanted;
}

bool is_sum_of_ranges(const UOp& e) {
  const std::optional<Affine> sum = affine(e);
  if (!sum) return false;
  for (const AffineTerm& term : sum->terms)
    if (term.atom.op() != Op::Range && term.atom.op() != Op::Variable) return false;
  return true;
}

// What holds where a condition does, or where it does not.
void add_condition(const UOp& condition, bool holds, std::vector<UOp>& needed) {
  std::vector<std::pair<UOp, bool>> stack{{condition, holds}};
  while (!stack.empty()) {
    const auto [u, is_true] = std::move(stack.back());
    stack.pop_back();
    if (u.op() == (is_true ? Op::And : Op::Or)) {
      for (const UOp& s : u.src()) stack.emplace_back(s, is_true);
    } else if (u.op() == Op::Not) {
      stack.emplace_back(u.src(0), !is_true);
    } else if ((u.op() == Op::Less || u.op() == Op::LessEqual) && u.src(0).dtype() == kInt64) {
      const UOp over = is_true ? sub(u.src(1), u.src(0)) : sub(u.src(0), u.src(1));
      const bool is_strict = (u.op() == Op::Less) == is_true;
      const UOp room = simplify_index(is_strict ? add(over, -1) : over);
      if (is_sum_of_ranges(room)) needed.push_back(room);
    }
  }
}

// What holds where a choice is not of `nothing`, and the other value; no node if it is no such
// choice.
UOp add_choice(const UOp& u, double nothing, std::vector<UOp>& needed) {
  if (u.op() != Op::Where) return {};
  const bool is_second = is_number(u.src(2), nothing);
  if (!is_second && !is_number(u.src(1), nothing)) return {};
  add_condition(u.src(0), is_second, needed);
  return u.src(is_second ? 1 : 2);
}

// Where the value is above -inf.
void add_where_finite(const UOp& value, std::vector<UOp>& needed) {
  const double inf = -HUGE_VAL;
  std::vector<UOp> stack{value};
  while (!stack.empty()) {
    const UOp u = std::move(stack.back());
    stack.pop_back();
    if (u.op() == Op::Add) {
      stack.insert(stack.end(), u.src().begin(), u.src().end());
    } else if (const UOp chosen = add_choice(u, inf, needed)) {
      stack.push_back(chosen);
    } else if (u.op() == Op::Mul || u.op() == Op::Fma) {
      if (u.op() == Op::Fma) stack.push_back(u.src(2));
      const size_t constant = u.src(0).is_const() ? 0 : 1;
      if (u.src(constant).is_const() && number_of(u.src(constant)) > 0)
        stack.push_back(u.src(1 - constant));
    }
  }
}

}  // namespace

std::optional<Exponent> exponent_of(const UOp& u, const std::function<bool(const UOp& x)>& wanted) {
  if (!u.dtype().is_float()) return std::nullopt;
  for (const UOp& clamp : topological({&u, 1}, closes_ranges)) {
    if (clamp.op() != Op::Max || clamp.dtype() != u.dtype()) continue;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const UOp x = clamp.src(side);
      if (!clamp.src(1 - side).is_const() || !wanted(x)) continue;
      // The steps for any x, or for one that is never positive: what this one is made of may have
      // changed since.
      const UOp any = u.graph().make(Op::Param, {}, int64_t{0}, x.dtype());
      for (const UOp& like : {any, neg(mul(any, any))}) {
        const UOp steps = substitute(u, {{x, like}});
        const UOp whole = u.graph().make(Op::Exp, {like});
        for (const bool scales : {false, true})
          if (decompose(whole, scales) == steps) return Exponent{x, scales};
      }
    }
  }
  return std::nullopt;
}

std::vector<UOp> needed_terms(const UOp& value, Op op) {
  std::vector<UOp> needed;
  if (!value.dtype().is_float()) return needed;
  if (op == Op::Max) add_where_finite(value, needed);
  if (op != Op::Add) return needed;
  std::vector<UOp> stack{value};
  while (!stack.empty()) {
    const UOp u = std::move(stack.back());
    stack.pop_back();
    if (const auto exponent = exponent_of(u, [](const UOp&) { return true; })) {
      add_where_finite(exponent->x, needed);
    } else if (u.op() == Op::Mul) {
      stack.insert(stack.end(), u.src().begin(), u.src().end());
    } else if (const UOp chosen = add_choice(u, 0, needed)) {
      stack.push_back(chosen);
    }
  }
  return needed;
}

}  // namespace tiny

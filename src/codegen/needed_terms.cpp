#include "codegen/needed_terms.h"

#include <cmath>

#include "ir/affine.h"
#include "ir/build.h"
#include "ir/fold.h"

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

// What holds where a condition does.
void add_condition(const UOp& condition, std::vector<UOp>& needed) {
  std::vector<UOp> stack{condition};
  while (!stack.empty()) {
    const UOp u = std::move(stack.back());
    stack.pop_back();
    if (u.op() == Op::And) {
      stack.insert(stack.end(), u.src().begin(), u.src().end());
    } else if ((u.op() == Op::Less || u.op() == Op::LessEqual) && u.src(0).dtype() == kInt64) {
      const UOp room = sub(u.src(1), u.src(0));
      if (is_sum_of_ranges(room)) needed.push_back(u.op() == Op::Less ? add(room, -1) : room);
    }
  }
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
    } else if (u.op() == Op::Where && is_number(u.src(2), inf)) {
      add_condition(u.src(0), needed);
      stack.push_back(u.src(1));
    } else if (u.op() == Op::Fma) {
      stack.push_back(u.src(2));
    } else if (u.op() == Op::Mul && (u.src(0).is_const() || u.src(1).is_const())) {
      const size_t constant = u.src(0).is_const() ? 0 : 1;
      if (number_of(u.src(constant)) > 0) stack.push_back(u.src(1 - constant));
    }
  }
}

}  // namespace

std::vector<UOp> needed_terms(const UOp& value, Op op, const FindExponent& exponent_of) {
  std::vector<UOp> needed;
  if (!value.dtype().is_float()) return needed;
  if (op == Op::Max) add_where_finite(value, needed);
  if (op != Op::Add) return needed;
  std::vector<UOp> stack{value};
  while (!stack.empty()) {
    const UOp u = std::move(stack.back());
    stack.pop_back();
    if (const std::optional<UOp> x = exponent_of(u)) {
      add_where_finite(*x, needed);
    } else if (u.op() == Op::Mul) {
      stack.insert(stack.end(), u.src().begin(), u.src().end());
    } else if (u.op() == Op::Where && is_number(u.src(2), 0)) {
      add_condition(u.src(0), needed);
      stack.push_back(u.src(1));
    }
  }
  return needed;
}

}  // namespace tiny

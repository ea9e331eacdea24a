#include "codegen/linearize/index_forms.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

IndexForms::Expression& IndexForms::expression_of(const UOp& expression) {
  Expression*& at = expression_at_[expression.node()];
  if (at) return *at;
  Expression& made = expressions_.emplace_back();
  at = &made;
  made.free = nest_.free_of(expression);  // which keeps the node
  made.sum = affine(expression);
  return made;
}

const IndexForm& IndexForms::form_of(const UOp& expression) {
  Expression& of = expression_of(expression);
  if (of.nest != nest_.version() || of.fixed != (of.free & nest_.fixed()))
    make_form(expression, of);
  of.form.constant = of.constant;
  for (const auto& [position, coefficient] : of.digits)
    of.form.constant += coefficient * nest_.state(position).value;
  return of.form;
}

void IndexForms::make_form(const UOp& expression, Expression& of) {
  of.nest = nest_.version();
  of.fixed = of.free & nest_.fixed();
  of.digits.clear();
  IndexForm& form = of.form;
  form = {};
  Affine whole;
  if (!of.sum) whole.terms.push_back({expression, 1});
  const Affine& sum = of.sum ? *of.sum : whole;
  of.constant = sum.constant;
  for (const AffineTerm& term : sum.terms) {
    const RangeSet free = nest_.free_of(term.atom);
    if (term.atom.op() == Op::Range) {
      if (free & nest_.fixed()) {
        of.digits.emplace_back(static_cast<size_t>(std::countr_zero(free)), term.coefficient);
        continue;
      }
      if (free & nest_.lanes()) {
        form.lane += term.coefficient;
        continue;
      }
    }
    if (free & nest_.lanes()) {
      // Several such atoms together are one: their sum.
      const UOp scaled = mul(term.atom, term.coefficient);
      form.vector_atom = form.vector_atom ? add(form.vector_atom, scaled) : scaled;
      continue;
    }
    size_t depth = 0;
    for (RangeSet set = free; set; set &= set - 1) {
      const RangeState& state = nest_.state(static_cast<size_t>(std::countr_zero(set)));
      if (state.kind == RangeState::Open) depth = std::max(depth, state.depth);
    }
    const auto place = std::ranges::upper_bound(form.terms, depth, {}, &IndexTerm::depth);
    form.terms.insert(place, {term.atom, term.coefficient, depth});
  }
  if (form.terms.empty()) return;
  const std::span<const IndexTerm> terms = form.terms;
  form.inner = sum_of(terms.last(1));
  if (terms.size() > 1) form.outer = sum_of(terms.first(terms.size() - 1));
}

UOp IndexForms::sum_of(std::span<const IndexTerm> terms) const {
  UOp sum;
  for (const IndexTerm& term : terms) {
    const UOp part = term.coefficient == 1 ? term.atom : mul(term.atom, term.coefficient);
    sum = sum ? add(sum, part) : part;
  }
  return sum ? sum : nest_.kernel().roots.front().graph().integer(0);
}

std::optional<Affine> IndexForms::fixed(const UOp& expression) {
  const Expression& of = expression_of(expression);
  const std::optional<Affine>& sum = of.sum;
  if (!sum || !(of.free & nest_.fixed())) return sum;
  Affine out{sum->constant, {}};
  out.terms.reserve(sum->terms.size());
  for (const AffineTerm& term : sum->terms) {
    if (const std::optional<int64_t> value = value_where_fixed(term.atom))
      out.constant += term.coefficient * *value;
    else
      out.terms.push_back(term);
  }
  return out;
}

// An atom that is a number once its ranges have coordinates; nothing if one has none.
std::optional<int64_t> IndexForms::value_where_fixed(const UOp& atom) {
  const RangeSet free = nest_.free_of(atom);
  if (!free || (free & ~nest_.fixed())) return std::nullopt;
  if (atom.op() == Op::Range) return nest_.state(static_cast<size_t>(std::countr_zero(free))).value;
  if (atom.op() != Op::FloorDiv && atom.op() != Op::Max && atom.op() != Op::Min)
    return std::nullopt;
  std::vector<std::pair<UOp, UOp>> values;
  for (RangeSet set = free; set; set &= set - 1) {
    const auto at = static_cast<size_t>(std::countr_zero(set));
    values.emplace_back(nest_.range(at), atom.graph().integer(nest_.state(at).value));
  }
  const UOp value = simplify_index(substitute(atom, values));
  return value.is_const() ? std::optional<int64_t>(value.const_int()) : std::nullopt;
}

std::optional<Affine> IndexForms::extreme(const Affine& sum, const UOp& range, RangeSet pending,
                                          Extreme wanted) {
  Affine rest{sum.constant, {}};
  for (const AffineTerm& term : sum.terms) {
    if (term.atom == range) continue;
    if (!(nest_.free_of(term.atom) & pending)) {
      rest.terms.push_back(term);
      continue;
    }
    if (term.atom.op() != Op::Range || !term.atom.src(0).is_const()) return std::nullopt;
    if ((term.coefficient > 0) == (wanted == Extreme::Largest))
      rest.constant += checked_mul(term.coefficient, term.atom.src(0).const_int() - 1, "an index");
  }
  return rest;
}

namespace {

// offset + sum of index * stride, over the axes of the access's view.
UOp flat_buffer_index(const UOp& access) {
  const size_t first_index = access.op() == Op::Store ? 2 : 1;
  Graph& graph = access.graph();
  const ViewArg& view = access.view_arg();
  size_t symbolic = first_index + view.shape.size();
  for (int64_t n : view.shape) symbolic += n == kSymbolicDim ? 1 : 0;
  const auto number = [&](int64_t v) {
    return v == kSymbolicDim ? UOp(access.src(symbolic++)) : graph.integer(v);
  };
  UOp flat = graph.integer(0);
  for (size_t i = 0; i < view.strides.size(); ++i)
    flat = add(flat, mul(access.src(first_index + i), number(view.strides[i])));
  return add(flat, number(view.offset));
}

// The place in scratch of what a stage's ranges say.
UOp flat_filled_index(const UOp& stage) {
  UOp flat = stage.graph().integer(0);
  for (size_t i = 1; i < stage.src().size(); ++i)
    flat = add(flat, mul(stage.src(i), stage.stage_arg().strides[i - 1]));
  return flat;
}

}  // namespace

const UOp& IndexForms::flat_index(const UOp& access) {
  UOp& flat = flat_[access.node()];
  if (flat) return flat;
  if (access.op() == Op::Index)
    flat = flat_stage_index(access);
  else if (access.op() == Op::Stage)
    flat = swizzled(flat_filled_index(access), access);
  else
    flat = flat_buffer_index(access);
  return flat;
}

}  // namespace tiny

// Loads, stores and conditions: index expressions become an address, an index and a displacement;
// what cannot be proven in range is guarded.
#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/linearize/lineariser.h"
#include "codegen/options/stage.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

constexpr uint64_t kConditionUse = 3;            // of an instance: whether it is not negative
constexpr uint64_t kImpossibleUse = UINT64_MAX;  // of a proof: that it is negative

}  // namespace

IndexExpression& Lineariser::expression_of(const UOp& expression) {
  IndexExpression*& at = expression_at_[expression.node()];
  if (at) return *at;
  IndexExpression& made = expressions_.emplace_back();
  at = &made;
  made.free = free_of(expression);  // which keeps the node
  made.sum = affine(expression);
  return made;
}

// Valid until the expression is asked for again.
const IndexForm& Lineariser::form_of(const UOp& expression) {
  IndexExpression& of = expression_of(expression);
  if (of.nest != nest_ || of.fixed != (of.free & fixed_)) make_form(expression, of);
  of.form.constant = of.constant;
  for (const auto& [position, coefficient] : of.digits)
    of.form.constant += coefficient * states_[position].value;
  return of.form;
}

void Lineariser::make_form(const UOp& expression, IndexExpression& of) {
  of.nest = nest_;
  of.fixed = of.free & fixed_;
  of.digits.clear();
  IndexForm& form = of.form;
  form = {};
  Affine whole;
  if (!of.sum) whole.terms.push_back({expression, 1});
  const Affine& sum = of.sum ? *of.sum : whole;
  of.constant = sum.constant;
  for (const AffineTerm& term : sum.terms) {
    const RangeSet free = free_of(term.atom);
    if (term.atom.op() == Op::Range) {
      if (free & fixed_) {
        of.digits.emplace_back(static_cast<size_t>(std::countr_zero(free)), term.coefficient);
        continue;
      }
      if (free & vec_) {
        form.lane += term.coefficient;
        continue;
      }
    }
    if (free & vec_) {
      // Several such atoms together are one: their sum.
      const UOp scaled = mul(term.atom, term.coefficient);
      form.vector_atom = form.vector_atom ? add(form.vector_atom, scaled) : scaled;
      continue;
    }
    size_t depth = 0;
    for (RangeSet set = free; set; set &= set - 1) {
      const RangeState& state = states_[static_cast<size_t>(std::countr_zero(set))];
      if (state.kind == RangeState::Open) depth = std::max(depth, depth_of(state.loop));
    }
    const auto place = std::ranges::upper_bound(form.terms, depth, {}, &IndexTerm::depth);
    form.terms.insert(place, {term.atom, term.coefficient, depth});
  }
  if (form.terms.empty()) return;
  const std::span<const IndexTerm> terms = form.terms;
  form.inner = sum_expression(terms.last(1));
  if (terms.size() > 1) form.outer = sum_expression(terms.first(terms.size() - 1));
}

UOp Lineariser::sum_expression(std::span<const IndexTerm> terms) {
  UOp sum;
  for (const IndexTerm& term : terms) {
    const UOp part = term.coefficient == 1 ? term.atom : mul(term.atom, term.coefficient);
    sum = sum ? add(sum, part) : part;
  }
  return sum ? sum : kernel_.roots.front().graph().integer(0);
}

LinearId Lineariser::scalar_of(const IndexForm& form) {
  const LinearId parts[] = {value_of(sum_expression(form.terms)), index_constant(form.constant)};
  return elementwise_op(Op::Add, kInt64, parts);
}

// The expression with the coordinates of unrolled ranges put in.
std::optional<Affine> Lineariser::fixed(const UOp& e) {
  const std::optional<Affine>& sum = expression_of(e).sum;
  if (!sum) return std::nullopt;
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
std::optional<int64_t> Lineariser::value_where_fixed(const UOp& atom) {
  const RangeSet free = free_of(atom);
  if (!free || (free & ~fixed_)) return std::nullopt;
  if (atom.op() == Op::Range) return states_[static_cast<size_t>(std::countr_zero(free))].value;
  if (atom.op() != Op::FloorDiv && atom.op() != Op::Max && atom.op() != Op::Min)
    return std::nullopt;
  std::vector<std::pair<UOp, UOp>> values;
  for (RangeSet set = free; set; set &= set - 1) {
    const auto at = static_cast<size_t>(std::countr_zero(set));
    values.emplace_back(kernel_.ranges[at].range, atom.graph().integer(states_[at].value));
  }
  const UOp value = simplify_index(substitute(atom, values));
  return value.is_const() ? std::optional<int64_t>(value.const_int()) : std::nullopt;
}

// The depth of the block that the proof relies on; none if there is no proof.  Instances of the
// same coordinates ask under the same facts.
std::optional<size_t> Lineariser::proven(const UOp& e) {
  InstanceKey key = key_of(e);
  std::optional<size_t> depth;
  const auto known = [&](const auto& prove) {
    if (const int64_t* found = proofs_.find(key)) {
      if (*found >= 0) depth = static_cast<size_t>(*found);
      return;
    }
    depth = prove();
    proofs_.insert(key, depth ? static_cast<int64_t>(*depth) : -1);
  };
  known([&]() -> std::optional<size_t> {
    const std::optional<Affine> sum = fixed(e);
    return sum && prove_nonnegative(*sum, {}, bounds_) ? std::optional<size_t>(0) : std::nullopt;
  });
  if (depth || known_.empty()) return depth;
  key.use = known_.back().number;
  known([&] { return prove_by_facts(e); });
  return depth;
}

std::optional<size_t> Lineariser::prove_by_facts(const UOp& e) {
  const std::optional<Affine> sum = fixed(e);
  if (!sum) return std::nullopt;
  std::vector<Affine> facts;
  size_t depth = 0;
  for (const Known& known : known_) {
    if (auto fact = fixed(known.fact)) facts.push_back(std::move(*fact));
    depth = std::max(depth, known.depth);
  }
  // Mostly the innermost fact and something that is not negative.
  for (size_t i = facts.size(); i-- > 0;)
    if (const auto rest = add_scaled(*sum, facts[i], -1); rest && bounds_.of(*rest).lo >= 0)
      return depth;
  if (!facts.empty() && prove_nonnegative(*sum, facts, bounds_)) return depth;
  return std::nullopt;
}

bool Lineariser::impossible(const UOp& e) {
  InstanceKey key = key_of(e);
  key.use = kImpossibleUse;
  if (const int64_t* found = proofs_.find(key)) return *found != 0;
  const std::optional<Affine> sum = fixed(e);
  const bool is_negative = sum && bounds_.of(*sum).hi < 0;
  proofs_.insert(key, is_negative ? 1 : 0);
  return is_negative;
}

Condition Lineariser::condition(const UOp& e, int64_t lanes) {
  Condition c;
  if (const auto depth = proven(e)) {
    c.depth = *depth;
    return c;
  }
  if (impossible(e)) {
    c.kind = Condition::False;
    return c;
  }
  const IndexForm& form = form_of(e);
  const bool is_scalar = !form.vector_atom && form.lane == 0;
  c.kind = is_scalar ? Condition::Scalar : Condition::Lanes;
  LinearId& holds = is_scalar ? c.scalar : c.mask;
  InstanceKey key = key_of(e);
  key.use = kConditionUse;
  if (const BlockTree::Remembered* known = tree_.recall(key)) {
    holds = known->id;
    relied_on_ = std::max(relied_on_, known->depth);
    return c;
  }
  const size_t relied_before = std::exchange(relied_on_, 0);
  holds = holds_of(e, form, lanes);
  tree_.remember(key, holds, relied_on_);
  relied_on_ = std::max(relied_before, relied_on_);
  return c;
}

// The condition as a bool, of one lane or of all.
LinearId Lineariser::holds_of(const UOp& e, const IndexForm& form, int64_t lanes) {
  const LinearId zero = index_constant(0);
  if (form.vector_atom) {
    const LinearId operands[] = {zero, value_of(e)};
    return elementwise_op(Op::LessEqual, kBool, operands);
  }
  const LinearId base = scalar_of(form);
  if (form.lane == 0) {
    const LinearId operands[] = {zero, base};
    return elementwise_op(Op::LessEqual, kBool, operands);
  }
  // base + lane * l >= 0 holds from -base/lane upwards, or up to base/-lane.
  const int64_t step = form.lane > 0 ? form.lane : -form.lane;
  const LinearId quotient_of[] = {base, index_constant(step)};
  const LinearId quotient = elementwise_op(Op::FloorDiv, kInt64, quotient_of);
  LinearId low = zero;
  LinearId high = index_constant(lanes);
  if (form.lane > 0) {
    low = elementwise_op(Op::Neg, kInt64, std::span(&quotient, 1));
  } else {
    const LinearId next[] = {quotient, index_constant(1)};
    high = elementwise_op(Op::Add, kInt64, next);
  }
  const size_t depth = std::max(depth_of(low), depth_of(high));
  return tree_.add(depth, Op::LaneRange, kBool.with_lanes(lanes), {low, high});
}

LinearId Lineariser::bool_of(const Condition& c, int64_t lanes) {
  switch (c.kind) {
    case Condition::True:
    case Condition::False:
      return constant(kBool.with_lanes(lanes), c.kind == Condition::True ? 1 : 0);
    case Condition::Scalar:
      return widened(c.scalar, lanes);
    case Condition::Lanes:
      break;
  }
  return c.mask;
}

Lineariser::Guards Lineariser::guards_of(std::span<const Condition> conditions, int64_t lanes) {
  Guards g;
  const auto both = [this](std::optional<LinearId>& sum, LinearId next) {
    const LinearId operands[] = {sum.value_or(next), next};
    sum = sum ? elementwise_op(Op::And, kBool, operands) : next;
  };
  for (const Condition& c : conditions) {
    g.never |= c.kind == Condition::False;
    g.depth = std::max(g.depth, c.depth);
    if (c.kind == Condition::Scalar) both(g.scalar, c.scalar);
    if (c.kind == Condition::Lanes) both(g.mask, c.mask);
  }
  if (g.mask && g.scalar) {
    both(g.mask, widened(*g.scalar, lanes));
    g.scalar.reset();
  }
  return g;
}

// offset + sum of index * stride, over the axes of the access's view.
UOp Lineariser::flat_index(const UOp& access, size_t first_index) {
  const auto found = flat_.find(access.node());
  if (found != flat_.end()) return found->second;
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
  flat = add(flat, number(view.offset));
  kept_.push_back(access);
  flat_.emplace(access.node(), flat);
  return flat;
}

// address + index * size + displacement: what belongs to the innermost loop is the index, what is
// outside of it the address, so that the loop adds nothing that it need not.
Lineariser::Place Lineariser::place(LinearId base, const UOp& flat, int64_t element_bytes) {
  Place p;
  const IndexForm& form = form_of(flat);
  if (form.vector_atom) {
    const LinearId index = value_of(flat);
    return {base, index, 0, 0};
  }
  p.displacement = checked_mul(form.constant, element_bytes, "a displacement");
  p.lane_stride = static_cast<int32_t>(form.lane);
  if (p.displacement != static_cast<int32_t>(p.displacement) || form.lane != p.lane_stride) {
    const LinearId index = scalar_of(form);
    require(form.lane == p.lane_stride, Status::Limit, "a stride is beyond 2^31 elements");
    return {base, index, 0, p.lane_stride};
  }
  if (form.terms.empty()) return {base, index_constant(0), p.displacement, p.lane_stride};
  p.address = base;
  p.index = value_of(form.inner);
  if (!form.outer) return p;
  InstanceKey key = key_of(form.outer);
  key.use = (uint64_t{base} + 1) << 8 | static_cast<uint64_t>(element_bytes);
  if (const LinearId* known = tree_.find(key)) {
    p.address = *known;
    return p;
  }
  const LinearId offset = value_of(form.outer);
  const size_t depth = std::max(depth_of(offset), depth_of(base));
  p.address = tree_.add(depth, Op::Address, kAddress, {base, offset}, element_bytes);
  tree_.remember(key, p.address, relied_on_);
  return p;
}

LinearId Lineariser::masked_load(const UOp& node, const Guards& guards, int64_t lanes) {
  const DType dtype = node.dtype().with_lanes(lanes);
  const LinearId base = value_of(node.src(0));
  const UOp flat = flat_index(node, 1);
  if (const auto places = places_of_wide(flat, lanes); !places.empty())
    return load_apart(base, places, node.dtype(), guards.mask);
  const Place p = place(base, flat, node.dtype().bytes());
  size_t depth = std::max({guards.depth, depth_of(p.address), depth_of(p.index)});
  if (is_read_in_step(node)) depth = tree_.depth();
  if (!guards.mask)
    return tree_.add(depth, Op::Load, dtype, {p.address, p.index}, p.displacement, p.lane_stride);
  depth = std::max(depth, depth_of(*guards.mask));
  return tree_.add(depth, Op::Load, dtype, {p.address, p.index, *guards.mask}, p.displacement,
                   p.lane_stride);
}

// What must hold for an access to be in range: an index is not negative, and below its axis's size.
// `of_places`: for the indices that are Places alone.
void Lineariser::add_range_conditions(const UOp& access, bool of_places, std::vector<UOp>& to) {
  const ViewArg& view = access.view_arg();
  const auto keep = [&to](const UOp& e) {
    if (std::ranges::find(to, e) == to.end()) to.push_back(e);
  };
  Graph& graph = access.graph();
  const size_t first = access.op() == Op::Store ? 2 : 1;
  size_t symbolic = first + view.shape.size();
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const UOp& e = access.src(first + i);
    const UOp size =
        view.shape[i] == kSymbolicDim ? UOp(access.src(symbolic++)) : graph.integer(view.shape[i]);
    if (of_places && e.op() != Op::Place) continue;
    // Mostly the bounds say it, and nothing need be made.
    const Interval range = bounds_.of(e);
    if (range.lo < 0 && !prove_nonnegative(e, {}, bounds_)) keep(e);
    if (size.is_const() && range.hi < size.const_int()) continue;
    const UOp room = add(sub(size, e), -1);
    if (!prove_nonnegative(room, {}, bounds_)) keep(room);
  }
}

// Whether a load is of what steps before this one may have stored.
bool Lineariser::is_read_in_step(const UOp& load) const {
  return std::ranges::any_of(load.src().subspan(1),
                             [](const UOp& e) { return e.op() == Op::Place; });
}

LinearId Lineariser::load(const UOp& node) {
  const int64_t lanes = lanes_in(free_of(node));
  std::vector<Condition> conditions;
  for (const UOp& e : conditions_below(node)) conditions.push_back(condition(e, lanes));
  Guards guards = guards_of(conditions, lanes);
  if (guards.never) return constant(node.dtype().with_lanes(lanes), 0);
  const IndexForm& form = form_of(flat_index(node, 1));
  if (lanes == 1) return guards.scalar ? chosen_load(node, guards) : masked_load(node, guards, 1);
  if (form.lane != 0 || form.vector_atom) {
    if (guards.scalar) guards.mask = widened(*guards.scalar, lanes);
    guards.scalar.reset();
    return masked_load(node, guards, lanes);
  }
  // Every lane reads the same element: one load, and the lanes that are out of range are zeroed.
  std::vector<Condition> uniform;
  for (const Condition& c : conditions)
    if (c.kind != Condition::Lanes) uniform.push_back(c);
  Guards one = guards_of(uniform, 1);
  const LinearId value = one.scalar ? chosen_load(node, one) : masked_load(node, one, 1);
  if (!guards.mask) return value;
  const LinearId chosen[] = {*guards.mask, value, constant(node.dtype(), 0)};
  return elementwise_op(Op::Where, node.dtype(), chosen);
}

// One lane under a condition: the index is made safe, and the value chosen afterwards.
LinearId Lineariser::chosen_load(const UOp& node, const Guards& guards) {
  const LinearId base = value_of(node.src(0));
  const LinearId safe_of[] = {*guards.scalar, value_of(flat_index(node, 1)), index_constant(0)};
  const LinearId safe = elementwise_op(Op::Where, kInt64, safe_of);
  const size_t depth = is_read_in_step(node)
                           ? tree_.depth()
                           : std::max({guards.depth, depth_of(base), depth_of(safe)});
  const LinearId value = tree_.add(depth, Op::Load, node.dtype(), {base, safe});
  const LinearId chosen[] = {*guards.scalar, value, constant(node.dtype(), 0)};
  return elementwise_op(Op::Where, node.dtype(), chosen);
}

LinearId Lineariser::read_stage(const UOp& node) {
  const UOp& stage = node.src(0);
  const LinearId* base = tree_.find(key_of(stage));
  invariant(base != nullptr, "a stage is filled before it is read");
  UOp& flat = flat_[node.node()];
  if (!flat) {
    flat = flat_stage_index(node);
    kept_.push_back(node);
  }
  const Place p = place(*base, flat, node.dtype().bytes());
  const size_t depth = std::max(depth_of(p.address), depth_of(p.index));
  return tree_.add(depth, Op::Load, node.dtype().with_lanes(lanes_in(free_of(node))),
                   {p.address, p.index}, p.displacement, p.lane_stride);
}

void Lineariser::store(const UOp& node, LinearId base, const UOp& flat, LinearId value,
                       std::optional<LinearId> mask, int64_t lanes) {
  relied_on_ = 0;
  if (lanes > 1)
    if (const auto places = places_apart(flat); !places.empty())
      return store_apart(base, places, widened(value, lanes), mask);
  const Place p =
      place(base, flat, node.dtype() == kVoid ? node.src(1).dtype().bytes() : node.dtype().bytes());
  value = widened(value, lanes);
  if (mask) {
    tree_.add(tree_.depth(), Op::Store, kVoid, {p.address, p.index, value, *mask}, p.displacement,
              p.lane_stride);
    return;
  }
  const LinearId stored = tree_.add(tree_.depth(), Op::Store, kVoid, {p.address, p.index, value},
                                    p.displacement, p.lane_stride);
  // What is read again by the next trip of a reduction stays.
  const bool is_final = node.op() == Op::Store && !outer_;
  if (is_final && lanes > 1 && p.lane_stride == 1 &&
      kernel_.params[static_cast<size_t>(node.src(0).int_arg())].bypass)
    tree_.set_bypass(stored);
}

// What a Store's place holds; zero in lanes that are masked.
LinearId Lineariser::load_destination(const UOp& node, std::optional<LinearId> mask,
                                      int64_t lanes) {
  const DType dtype = node.src(1).dtype().with_lanes(lanes);
  const UOp flat = flat_index(node, 2);
  if (const auto places = places_of_wide(flat, lanes); !places.empty())
    return load_apart(value_of(node.src(0)), places, dtype.element(), mask);
  const Place p = place(value_of(node.src(0)), flat, node.src(1).dtype().bytes());
  if (!mask)
    return tree_.add(tree_.depth(), Op::Load, dtype, {p.address, p.index}, p.displacement,
                     p.lane_stride);
  return tree_.add(tree_.depth(), Op::Load, dtype, {p.address, p.index, *mask}, p.displacement,
                   p.lane_stride);
}

}  // namespace tiny

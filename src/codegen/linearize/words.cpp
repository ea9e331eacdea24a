// Words: the steps of a sum that one instruction multiplies and adds.  A word is loaded at once
// where its steps lie side by side and all are there, else joined from its steps.
#include <bit>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/linearize/lineariser.h"
#include "ir/build.h"
#include "ir/dot.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

constexpr uint64_t kWordUse = 1;  // of an instance: the word of the node's steps

DType unsigned_of(DType element) {
  return element.bytes() == 1 ? kUInt8 : kUInt16;
}

}  // namespace

// The steps that the value depends on and that have no coordinate yet.
std::optional<size_t> Lineariser::dot_range_of(const UOp& value) {
  const RangeSet open = free_of(value) & dots_ & ~fixed_;
  if (!open) return std::nullopt;
  invariant(std::has_single_bit(open), "a value has the steps of one word");
  return static_cast<size_t>(std::countr_zero(open));
}

void Lineariser::accumulate_words(Task& task, LinearId acc, const Guards& guards) {
  const DType dtype = tree_.op(acc).dtype;
  const std::optional<DotProduct> product = dot_product(task.node);
  invariant(product.has_value(), "the steps of a word are those of a sum of products");
  const std::vector<UOp> facts = word_facts(task);
  const auto word = [&](const UOp& operand, bool is_guarded) {
    const LinearId id = widened(
        word_of(operand, is_guarded ? std::span(facts) : std::span<const UOp>()), dtype.lanes);
    if (!guards.mask || !is_guarded) return id;
    const LinearId chosen[] = {*guards.mask, id, constant(kUInt32.with_lanes(dtype.lanes), 0)};
    return elementwise_op(Op::Where, kUInt32, chosen);
  };
  // What lies where a guard does not hold may be anything: 0 * x is no 0 of every float.
  const LinearId a = word(product->a, true);
  const LinearId b = word(product->b, product->kind == DotKind::Bf16);
  const size_t here = tree_.depth();
  const LinearId sum =
      tree_.add(here, Op::Dot, dtype, {a, b, acc}, 0, static_cast<int32_t>(product->kind));
  tree_.add(here, Op::Set, kVoid, {acc, sum});
}

// A stage whose innermost dimension is a word.
void Lineariser::fill_words(Task& task, const UOp& flat, const Guards& guards, int64_t lanes) {
  const UOp& value = task.node.src(0);
  const LinearId word = widened(word_of(value, word_facts(task)), lanes);
  const auto range = static_cast<size_t>(std::countr_zero(task.own & dots_));
  relied_on_ = 0;
  const std::optional<Place> p =
      word_place(task.accumulators.front(), flat, range, value.dtype().bytes());
  invariant(p.has_value(), "a stage's words lie side by side");
  if (guards.mask)
    tree_.add(tree_.depth(), Op::Store, kVoid, {p->address, p->index, word, *guards.mask},
              p->displacement, p->lane_stride);
  else
    tree_.add(tree_.depth(), Op::Store, kVoid, {p->address, p->index, word}, p->displacement,
              p->lane_stride);
}

// The word of a value's steps; a step for which a fact does not hold is zero.
LinearId Lineariser::word_of(const UOp& value, std::span<const UOp> facts) {
  InstanceKey key = key_of(value);
  key.use = kWordUse;
  const size_t before = relied_on_;
  if (const BlockTree::Remembered* known = tree_.recall(key)) {
    relied_on_ = std::max(before, known->depth);
    return known->id;
  }
  relied_on_ = 0;
  const std::optional<size_t> range = dot_range_of(value);
  invariant(range.has_value(), "a word has steps");
  const std::optional<LinearId> loaded = load_word(value, facts);
  const LinearId word = loaded ? *loaded : join_steps(value, *range, facts);
  tree_.remember(key, word, relied_on_);
  relied_on_ = std::max(before, relied_on_);
  return word;
}

LinearId Lineariser::join_steps(const UOp& value, size_t range, std::span<const UOp> facts) {
  const int64_t steps = kernel_.ranges[range].range.src(0).const_int();
  const int64_t bits = 32 / steps;
  LinearId word = constant(kUInt32, 0);
  for (int64_t s = 0; s < steps; ++s) {
    fix(range, s);
    LinearId step = value_of(value);
    step = elementwise_op(Op::Bitcast, unsigned_of(value.dtype()), std::span(&step, 1));
    step = elementwise_op(Op::Cast, kUInt32, std::span(&step, 1));
    for (const UOp& fact : facts) {
      const int64_t lanes = lanes_in(free_of(fact) | free_of(value));
      const Condition c = condition(fact, lanes);
      relied_on_ = std::max(relied_on_, c.depth);
      if (c.kind == Condition::True) continue;
      const LinearId chosen[] = {bool_of(c, lanes), step, constant(kUInt32, 0)};
      step = elementwise_op(Op::Where, kUInt32, chosen);
    }
    if (s > 0) {
      const LinearId shifted[] = {step, constant(kUInt32, static_cast<uint64_t>(s * bits))};
      step = elementwise_op(Op::Shl, kUInt32, shifted);
    }
    const LinearId both[] = {word, step};
    word = s == 0 ? step : elementwise_op(Op::Or, kUInt32, both);
  }
  release(range);
  return word;
}

// Where the word lies whose steps `range` counts and `flat` indexes, in elements of `bytes`; none
// if they do not lie side by side, or lanes are no whole words apart.
std::optional<Lineariser::Place> Lineariser::word_place(LinearId base, const UOp& flat,
                                                        size_t range, int64_t bytes) {
  const UOp& r = kernel_.ranges[range].range;
  const int64_t steps = r.src(0).const_int();
  const std::optional<Affine> sum = affine(flat);
  if (!sum || sum->coefficient(r) != 1) return std::nullopt;
  Affine elements{sum->constant, {}};
  Affine words{0, {}};
  bool is_whole = true;
  for (const AffineTerm& term : sum->terms) {
    if (term.atom == r) continue;
    if (free_of(term.atom) & (RangeSet{1} << range)) return std::nullopt;
    is_whole = is_whole && term.coefficient % steps == 0;
    elements.terms.push_back(term);
    words.terms.push_back({term.atom, term.coefficient / steps});
  }
  const IndexForm form = form_of(to_uop(flat.graph(), elements));
  if (form.vector_atom || form.lane % steps != 0) return std::nullopt;
  const int64_t displaced = checked_mul(sum->constant, bytes, "a displacement");
  if (is_whole && displaced == static_cast<int32_t>(displaced)) {
    Place p = place(base, to_uop(flat.graph(), words), kWordBytes);
    const int64_t whole = p.displacement + displaced;
    if (whole == static_cast<int32_t>(whole)) {
      p.displacement = whole;
      return p;
    }
  }
  // Rows that are no whole words long: the address is that of a byte.
  const LinearId offset = scalar_of(form);
  const size_t depth = std::max(depth_of(offset), depth_of(base));
  const LinearId address = tree_.add(depth, Op::Address, kAddress, {base, offset}, bytes);
  return Place{address, index_constant(0), 0, static_cast<int32_t>(form.lane / steps)};
}

// The word as one load; none if a step of it may not be there.
std::optional<LinearId> Lineariser::load_word(const UOp& value, std::span<const UOp> facts) {
  const bool is_stage = value.op() == Op::Index;
  if (value.op() != Op::Load && !is_stage) return std::nullopt;
  const size_t range = *dot_range_of(value);
  const int64_t lanes = lanes_in(free_of(value));
  std::vector<UOp> all(facts.begin(), facts.end());
  if (!is_stage)
    for (const UOp& e : conditions_below(value)) all.push_back(e);
  std::vector<Condition> conditions;
  size_t relied_on = 0;
  for (const UOp& e : all) {
    if (const auto depth = proven(e)) {
      relied_on = std::max(relied_on, *depth);
      continue;
    }
    if (free_of(e) & dots_) return std::nullopt;
    conditions.push_back(condition(e, lanes));
  }
  const Guards found = guards_of(conditions, lanes);
  if (found.never || (found.scalar && lanes == 1)) return std::nullopt;
  UOp flat;
  LinearId base = 0;
  if (is_stage) {
    const UOp& stage = value.src(0);
    const LinearId* filled = tree_.find(key_of(stage));
    invariant(filled != nullptr, "a stage is filled before it is read");
    base = *filled;
    flat = value.graph().integer(0);
    for (size_t i = 0; i + 1 < value.src().size(); ++i)
      flat = add(flat, mul(value.src(i + 1), stage.ints()[i]));
    flat = simplify_index(flat);
  } else {
    base = value_of(value.src(0));
    flat = flat_index(value, 1);
  }
  const std::optional<Place> p = word_place(base, flat, range, value.dtype().bytes());
  if (!p) return std::nullopt;
  std::optional<LinearId> mask = found.mask;
  if (found.scalar) mask = widened(*found.scalar, lanes);
  if (mask && p->lane_stride == 0) return std::nullopt;
  relied_on_ = std::max(relied_on_, relied_on);
  const DType dtype = kUInt32.with_lanes(p->lane_stride == 0 ? 1 : lanes);
  size_t depth = std::max({relied_on, depth_of(p->address), depth_of(p->index)});
  if (!mask)
    return tree_.add(depth, Op::Load, dtype, {p->address, p->index}, p->displacement,
                     p->lane_stride);
  depth = std::max(depth, depth_of(*mask));
  return tree_.add(depth, Op::Load, dtype, {p->address, p->index, *mask}, p->displacement,
                   p->lane_stride);
}

}  // namespace tiny

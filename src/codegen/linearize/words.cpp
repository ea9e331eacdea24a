#include "codegen/linearize/words.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "ir/dot.h"

namespace tiny {

namespace {

constexpr uint64_t kWordUse = 1;  // of an instance: the word of the node's steps

DType unsigned_of(DType element) {
  return element.bytes() == 1 ? kUInt8 : kUInt16;
}

}  // namespace

// The steps that the value depends on and that have no coordinate yet.
std::optional<size_t> Words::range_of(const UOp& value) {
  const RangeSet open = nest_.free_of(value) & nest_.words() & ~nest_.fixed();
  if (!open) return std::nullopt;
  invariant(std::has_single_bit(open), "a value has the steps of one word");
  return static_cast<size_t>(std::countr_zero(open));
}

void Words::accumulate(const Task& task, LinearId accumulator, const Guards& guards) {
  const DType dtype = emit_.op(accumulator).dtype;
  const std::optional<DotProduct> product = dot_product(task.node);
  invariant(product.has_value(), "the steps of a word are those of a sum of products");
  const std::vector<UOp> facts = conditions_.word_facts(task);
  const auto word = [&](const UOp& operand, bool is_guarded) {
    const LinearId id = emit_.widened(
        word_of(operand, is_guarded ? std::span(facts) : std::span<const UOp>()), dtype.lanes);
    if (!guards.mask || !is_guarded) return id;
    const LinearId nothing = emit_.constant(kUInt32.with_lanes(dtype.lanes), 0);
    return emit_.elementwise(Op::Where, kUInt32, {*guards.mask, id, nothing});
  };
  // What lies where a guard does not hold may be anything: 0 * x is no 0 of every float.
  const LinearId a = word(product->a, true);
  const LinearId b = word(product->b, product->kind == DotKind::Bf16);
  const size_t here = emit_.depth();
  const LinearId sum =
      emit_.add(here, Op::Dot, dtype, {a, b, accumulator}, 0, static_cast<int32_t>(product->kind));
  emit_.add(here, Op::Set, kVoid, {accumulator, sum});
}

void Words::fill(const Task& task, const Guards& guards, int64_t lanes) {
  const UOp& value = task.node.src(0);
  const LinearId word = emit_.widened(word_of(value, conditions_.word_facts(task)), lanes);
  const auto position = static_cast<size_t>(std::countr_zero(task.own & nest_.words()));
  emit_.set_relied_on(0);
  const std::optional<Place> p = addresses_.word_place(
      task.accumulators.front(), forms_.flat_index(task.node), position, value.dtype().bytes());
  invariant(p.has_value(), "a stage's words lie side by side");
  if (guards.mask)
    emit_.add(emit_.depth(), Op::Store, kVoid, {p->address, p->index, word, *guards.mask},
              p->displacement, p->lane_stride);
  else
    emit_.add(emit_.depth(), Op::Store, kVoid, {p->address, p->index, word}, p->displacement,
              p->lane_stride);
}

LinearId Words::word_of(const UOp& value, std::span<const UOp> facts) {
  InstanceKey key = nest_.key_of(value);
  key.use = kWordUse;
  if (const BlockTree::Remembered* known = emit_.recall(key)) {
    emit_.rely_on(known->depth);
    return known->id;
  }
  const size_t before = emit_.start_value();
  const std::optional<size_t> position = range_of(value);
  invariant(position.has_value(), "a word has steps");
  const std::optional<ByteBits> bits = byte_bits(value);
  const std::optional<LinearId> loaded = bits ? bits_of(*bits, facts) : load(value, facts);
  const LinearId word = loaded ? *loaded : join(value, *position, facts);
  emit_.remember(key, word, emit_.relied_on());
  emit_.rely_on(before);
  return word;
}

LinearId Words::bits_of(const ByteBits& bits, std::span<const UOp> facts) {
  constexpr uint64_t kEachByte = 0x01010101;
  LinearId word = word_of(bits.bytes, facts);
  if (bits.shift) {
    const LinearId by = values_.value_of(bits.shift);
    const LinearOp& shift = emit_.op(by);
    if (shift.op != Op::Const || shift.imm != 0)
      word =
          emit_.elementwise(Op::Shr, kUInt32, {word, emit_.elementwise(Op::Cast, kUInt32, {by})});
  }
  const LinearId mask = emit_.constant(kUInt32, bits.mask * kEachByte);
  return emit_.elementwise(Op::And, kUInt32, {word, mask});
}

LinearId Words::join(const UOp& value, size_t position, std::span<const UOp> facts) {
  const int64_t steps = nest_.extent(position);
  const int64_t bits = 32 / steps;
  LinearId word = emit_.constant(kUInt32, 0);
  for (int64_t s = 0; s < steps; ++s) {
    nest_.fix(position, s);
    LinearId step = values_.value_of(value);
    step = emit_.elementwise(Op::Bitcast, unsigned_of(value.dtype()), {step});
    step = emit_.elementwise(Op::Cast, kUInt32, {step});
    for (const UOp& fact : facts) {
      const int64_t lanes = nest_.lanes_in(nest_.free_of(fact) | nest_.free_of(value));
      const Condition c = predicates_.condition(fact, lanes);
      emit_.rely_on(c.depth);
      if (c.kind == Condition::True) continue;
      const LinearId holds = predicates_.bool_of(c, lanes);
      step = emit_.elementwise(Op::Where, kUInt32, {holds, step, emit_.constant(kUInt32, 0)});
    }
    if (s > 0) {
      const LinearId shift = emit_.constant(kUInt32, static_cast<uint64_t>(s * bits));
      step = emit_.elementwise(Op::Shl, kUInt32, {step, shift});
    }
    word = s == 0 ? step : emit_.elementwise(Op::Or, kUInt32, {word, step});
  }
  nest_.release(position);
  return word;
}

// The word as one load; none if a step of it may not be there.
std::optional<LinearId> Words::load(const UOp& value, std::span<const UOp> facts) {
  const bool is_staged = value.op() == Op::Index;
  if (value.op() != Op::Load && !is_staged) return std::nullopt;
  const size_t position = *range_of(value);
  const int64_t lanes = nest_.lanes_of(value);
  std::vector<UOp> all(facts.begin(), facts.end());
  for (const UOp& e : conditions_.of_read(value)) all.push_back(e);
  std::vector<Condition> conditions;
  size_t relied_on = 0;
  for (const UOp& e : all) {
    if (const auto depth = prover_.proven(e)) {
      relied_on = std::max(relied_on, *depth);
      continue;
    }
    if (nest_.free_of(e) & nest_.words()) return std::nullopt;
    conditions.push_back(predicates_.condition(e, lanes));
  }
  const Guards found = predicates_.all_of(conditions, lanes);
  if (found.never || (found.scalar && lanes == 1)) return std::nullopt;
  const LinearId base =
      is_staged ? accesses_.base_of(value.src(0)) : values_.value_of(value.src(0));
  const std::optional<Place> p =
      addresses_.word_place(base, forms_.flat_index(value), position, value.dtype().bytes());
  if (!p) return std::nullopt;
  std::optional<LinearId> mask = found.mask;
  if (found.scalar) mask = emit_.widened(*found.scalar, lanes);
  if (mask && p->lane_stride == 0) return std::nullopt;
  emit_.rely_on(relied_on);
  const DType dtype = kUInt32.with_lanes(p->lane_stride == 0 ? 1 : lanes);
  return accesses_.load_at(*p, std::max(relied_on, addresses_.depth_of(*p)), dtype, mask);
}

}  // namespace tiny

#include "codegen/linearize/accesses.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace tiny {

namespace {

// Whether a load is of what steps before this one may have stored.
bool is_read_in_step(const UOp& load) {
  return std::ranges::any_of(load.src().subspan(1),
                             [](const UOp& e) { return e.op() == Op::Place; });
}

}  // namespace

// In the block at `depth`, or further in where the mask is made.
LinearId Accesses::load_at(const Place& p, size_t depth, DType dtype,
                           std::optional<LinearId> mask) {
  depth = std::max(depth, emit_.least_depth());
  if (!mask)
    return emit_.add(depth, Op::Load, dtype, {p.address, p.index}, p.displacement, p.lane_stride);
  return emit_.add(std::max(depth, emit_.depth_of(*mask)), Op::Load, dtype,
                   {p.address, p.index, *mask}, p.displacement, p.lane_stride);
}

LinearId Accesses::masked_load(const UOp& node, const Guards& guards, int64_t lanes,
                               std::optional<LinearId> whole) {
  const DType dtype = node.dtype().with_lanes(lanes);
  const LinearId base = memory_of(node);
  const UOp& flat = forms_.flat_index(node);
  if (const auto places = apart_.places_of_wide(flat, lanes); !places.empty())
    return apart_.load(base, places, node.dtype(), guards.mask);
  const int64_t bytes = node.dtype().bytes();
  const Place p = whole ? addresses_.place_where(*whole, base, flat, bytes)
                        : addresses_.place(base, flat, bytes);
  const size_t depth =
      is_read_in_step(node) ? emit_.depth() : std::max(guards.depth, addresses_.depth_of(p));
  return load_at(p, depth, dtype, guards.mask);
}

LinearId Accesses::memory_of(const UOp& node) {
  return node.op() == Op::Index ? base_of(node.src(0)) : values_.value_of(node.src(0));
}

LinearId Accesses::read(const UOp& node) {
  const int64_t lanes = nest_.lanes_of(node);
  std::vector<Condition> conditions;
  for (const UOp& e : conditions_.of_read(node))
    conditions.push_back(predicates_.condition(e, lanes));
  Guards guards = predicates_.all_of(conditions, lanes);
  if (guards.never) return emit_.constant(node.dtype().with_lanes(lanes), 0);
  const IndexForm& form = forms_.form_of(forms_.flat_index(node));
  if (lanes == 1) return guards.scalar ? chosen_load(node, guards) : masked_load(node, guards, 1);
  const auto of_all_lanes = [&] {
    std::erase_if(conditions, [](const Condition& c) { return c.kind == Condition::Lanes; });
    return predicates_.all_of(conditions, 1);
  };
  if (form.lane != 0 || form.vector_atom) {
    if (guards.scalar) guards.mask = emit_.widened(*guards.scalar, lanes);
    guards.scalar.reset();
    // Masks keep lanes from being read, but an address that no page has takes hundreds of cycles
    // also where all are off.
    std::optional<LinearId> whole;
    if (guards.mask && addresses_.is_far_outside(node)) whole = of_all_lanes().scalar;
    return masked_load(node, guards, lanes, whole);
  }
  // Every lane reads the same element: one load, and the lanes that are out of range are zeroed.
  const Guards one = of_all_lanes();
  const LinearId value = one.scalar ? chosen_load(node, one) : masked_load(node, one, 1);
  if (!guards.mask) return value;
  return emit_.elementwise(Op::Where, node.dtype(),
                           {*guards.mask, value, emit_.constant(node.dtype(), 0)});
}

// One lane under a condition: the index is made safe, and the value chosen afterwards.
LinearId Accesses::chosen_load(const UOp& node, const Guards& guards) {
  const LinearId base = memory_of(node);
  const LinearId index = values_.value_of(forms_.flat_index(node));
  const LinearId safe =
      emit_.elementwise(Op::Where, kInt64, {*guards.scalar, index, emit_.index_constant(0)});
  const size_t depth = is_read_in_step(node)
                           ? emit_.depth()
                           : std::max({guards.depth, emit_.depth_of(base), emit_.depth_of(safe)});
  const LinearId value = emit_.add(depth, Op::Load, node.dtype(), {base, safe});
  return emit_.elementwise(Op::Where, node.dtype(),
                           {*guards.scalar, value, emit_.constant(node.dtype(), 0)});
}

LinearId Accesses::base_of(const UOp& stage) {
  const LinearId* base = emit_.find(nest_.key_of(stage));
  invariant(base != nullptr, "a stage is filled before it is read");
  return *base;
}

void Accesses::store(const UOp& node, LinearId base, const UOp& flat, LinearId value,
                     std::optional<LinearId> mask, int64_t lanes) {
  emit_.set_relied_on(0);
  if (lanes > 1)
    if (const auto places = apart_.places_of(flat); !places.empty())
      return apart_.store(base, places, emit_.widened(value, lanes), mask);
  const DType element = node.dtype() == kVoid ? node.src(1).dtype() : node.dtype();
  const Place p = addresses_.place(base, flat, element.bytes());
  value = emit_.widened(value, lanes);
  if (mask) {
    emit_.add(emit_.depth(), Op::Store, kVoid, {p.address, p.index, value, *mask}, p.displacement,
              p.lane_stride);
    return;
  }
  const LinearId stored = emit_.add(emit_.depth(), Op::Store, kVoid, {p.address, p.index, value},
                                    p.displacement, p.lane_stride);
  // What is read again by the next trip of a reduction stays.
  const bool is_final = node.op() == Op::Store && are_final_;
  if (is_final && lanes > 1 && p.lane_stride == 1 &&
      nest_.kernel().params[static_cast<size_t>(node.src(0).int_arg())].bypass)
    emit_.set_bypass(stored);
}

LinearId Accesses::load_destination(const UOp& node, std::optional<LinearId> mask, int64_t lanes) {
  const DType element = node.src(1).dtype();
  const UOp& flat = forms_.flat_index(node);
  if (const auto places = apart_.places_of_wide(flat, lanes); !places.empty())
    return apart_.load(values_.value_of(node.src(0)), places, element, mask);
  const Place p = addresses_.place(values_.value_of(node.src(0)), flat, element.bytes());
  return load_at(p, emit_.depth(), element.with_lanes(lanes), mask);
}

}  // namespace tiny

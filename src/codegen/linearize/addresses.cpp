#include "codegen/linearize/addresses.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "ir/dot.h"

namespace tiny {

size_t Addresses::depth_of(const Place& p) const {
  return std::max(emit_.depth_of(p.address), emit_.depth_of(p.index));
}

// What belongs to the innermost loop is the index, what is outside of it the address, so that the
// loop adds nothing that it need not.
Place Addresses::place(LinearId base, const UOp& flat, int64_t element_bytes) {
  Place p;
  const IndexForm& form = forms_.form_of(flat);
  if (form.vector_atom) return {base, values_.value_of(flat), 0, 0};
  p.displacement = checked_mul(form.constant, element_bytes, "a displacement");
  p.lane_stride = static_cast<int32_t>(form.lane);
  if (p.displacement != static_cast<int32_t>(p.displacement) || form.lane != p.lane_stride) {
    const LinearId index = values_.scalar_of(form);
    require(form.lane == p.lane_stride, Status::Limit, "a stride is beyond 2^31 elements");
    return {base, index, 0, p.lane_stride};
  }
  if (form.terms.empty()) return {base, emit_.index_constant(0), p.displacement, p.lane_stride};
  p.address = base;
  p.index = values_.value_of(form.inner);
  if (!form.outer) return p;
  InstanceKey key = nest_.key_of(form.outer);
  key.use = (uint64_t{base} + 1) << 8 | static_cast<uint64_t>(element_bytes);
  if (const LinearId* known = emit_.find(key)) {
    p.address = *known;
    return p;
  }
  const LinearId offset = values_.value_of(form.outer);
  const size_t depth = std::max(emit_.depth_of(offset), emit_.depth_of(base));
  p.address = emit_.add(depth, Op::Address, kAddress, {base, offset}, element_bytes);
  emit_.remember(key, p.address, emit_.relied_on());
  return p;
}

std::optional<Place> Addresses::word_place(LinearId base, const UOp& flat, size_t position,
                                           int64_t bytes) {
  const UOp& r = nest_.range(position);
  const int64_t steps = nest_.extent(position);
  const std::optional<Affine> sum = affine(flat);
  if (!sum || sum->coefficient(r) != 1) return std::nullopt;
  Affine elements{sum->constant, {}};
  Affine words{0, {}};
  bool is_whole = true;
  for (const AffineTerm& term : sum->terms) {
    if (term.atom == r) continue;
    if (nest_.free_of(term.atom) & bit(position)) return std::nullopt;
    is_whole = is_whole && term.coefficient % steps == 0;
    elements.terms.push_back(term);
    words.terms.push_back({term.atom, term.coefficient / steps});
  }
  const IndexForm form = forms_.form_of(to_uop(flat.graph(), elements));
  if (form.vector_atom || form.lane % steps != 0) return std::nullopt;
  const int64_t displaced = checked_mul(sum->constant, bytes, "a displacement");
  // Threads of a group read words at multiples of their size alone.
  if (nest_.is_grouped() && (!is_whole || displaced % kWordBytes != 0)) return std::nullopt;
  if (is_whole && displaced == static_cast<int32_t>(displaced)) {
    Place p = place(base, to_uop(flat.graph(), words), kWordBytes);
    const int64_t whole = p.displacement + displaced;
    if (whole == static_cast<int32_t>(whole)) {
      p.displacement = whole;
      return p;
    }
  }
  // Rows that are no whole words long: the address is that of a byte.
  const LinearId offset = values_.scalar_of(form);
  const size_t depth = std::max(emit_.depth_of(offset), emit_.depth_of(base));
  const LinearId address = emit_.add(depth, Op::Address, kAddress, {base, offset}, bytes);
  return Place{address, emit_.index_constant(0), 0, static_cast<int32_t>(form.lane / steps)};
}

LinearId Addresses::lanes_of_index(const UOp& expression, int64_t lanes) {
  const IndexForm& form = forms_.form_of(expression);
  if (form.vector_atom) return emit_.widened(values_.value_of(expression), lanes);
  const int64_t step = form.lane;
  const LinearId base = values_.scalar_of(form);
  if (step == 0) return emit_.widened(base, lanes);
  return emit_.add(emit_.depth(), Op::Ramp, kInt64.with_lanes(lanes), {base}, step);
}

LinearId Addresses::cast_index(const UOp& cast) {
  const UOp& index = cast.src(0);
  const DType dtype = cast.dtype();
  const IndexForm& form = forms_.form_of(index);
  invariant(!form.vector_atom, "an index made of ranges has no vector atom");
  const int64_t step = form.lane;
  const int64_t lanes = nest_.lanes_of(cast);
  const Interval values = prover_.bounds_of(index);
  const bool narrow = dtype != kInt64 && dtype != kUInt64 && dtype != kFloat64 &&
                      values.lo >= INT32_MIN && values.hi <= INT32_MAX;
  LinearId base = values_.scalar_of(form);
  const DType ramp = narrow ? kInt32 : kInt64;
  if (narrow) base = emit_.elementwise(Op::Cast, kInt32, {base});
  const LinearId wide =
      emit_.add(emit_.depth_of(base), Op::Ramp, ramp.with_lanes(lanes), {base}, step);
  return dtype == ramp ? wide : emit_.elementwise(Op::Cast, dtype, {wide});
}

}  // namespace tiny
